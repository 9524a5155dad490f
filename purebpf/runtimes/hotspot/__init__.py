"""HotSpot from outside: the parts of a JVM that its own description of its structs names. Pure."""
