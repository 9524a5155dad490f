"""Converts values to bytes and back, by BTF type."""
