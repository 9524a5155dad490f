"""Framing of what the kernel streams, without I/O."""
