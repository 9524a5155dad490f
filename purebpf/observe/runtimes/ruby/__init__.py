"""Ruby in live processes: the file that has its interpreter, and the frames of threads."""
