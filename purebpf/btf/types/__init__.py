"""Parses BTF into types."""
