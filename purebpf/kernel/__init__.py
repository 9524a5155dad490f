"""The live room: what loads, attaches, reads and explains."""
