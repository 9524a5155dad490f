"""User stack traces of live processes: copied stacks, the code they return to, and the walk."""
