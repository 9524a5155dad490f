"""Loads a spec into the kernel: from an ObjectSpec to an Object."""
