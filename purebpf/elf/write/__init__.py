"""Writes objects: `write_object` turns an ObjectSpec into a file that any loader loads."""

from purebpf.elf.write.object_file import write_object

__all__ = ["write_object"]
