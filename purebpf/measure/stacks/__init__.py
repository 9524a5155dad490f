"""User stacks of a run: counted, or of events that are shown one by one."""
