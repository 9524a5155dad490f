"""Prints BTF types as C."""
