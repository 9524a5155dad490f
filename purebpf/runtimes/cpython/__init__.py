"""CPython as it lies in memory: interpreters, threads, frames, code objects. Pure."""
