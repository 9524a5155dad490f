"""Framing of the kernel's streams, without I/O."""
