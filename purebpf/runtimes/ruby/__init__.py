"""Ruby as it lies in memory: the methods and blocks that run, their names and lines. Pure."""
