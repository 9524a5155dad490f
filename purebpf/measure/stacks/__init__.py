"""User stacks of a run: counted, or of events that are printed one by one."""
