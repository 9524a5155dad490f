"""Instructions in, instructions out: CO-RE fix-ups, subprograms, map references."""

from purebpf.relocate.link import Linker
from purebpf.relocate.linked_program import LinkedProgram, Reference

__all__ = ["LinkedProgram", "Linker", "Reference"]
