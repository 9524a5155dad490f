"""PHP in live processes: the file that has its engine, and the frames of threads."""
