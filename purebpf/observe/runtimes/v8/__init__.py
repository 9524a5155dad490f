"""V8 in live processes: its constants in the program, and the frames of threads."""
