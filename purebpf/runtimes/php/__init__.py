"""PHP as it lies in memory: the functions that run, their names and lines. Pure."""
