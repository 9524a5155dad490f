"""Object files: `read_object` turns one into an ObjectSpec."""

from purebpf.elf.reader import read_object

__all__ = ["read_object"]
