"""HotSpot JVMs of live processes: their descriptions of themselves, and the frames of threads."""
