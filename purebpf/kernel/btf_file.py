"""Kernel types from a file: bare BTF, as BTFHub has it, or an ELF file with a .BTF section."""

from __future__ import annotations

import os

from purebpf.btf.parse import Btf
from purebpf.errors import FormatError
from purebpf.symbols.elf_image import ElfImage

__all__ = ["read_btf_file"]

_ELF = b"\x7fELF"


def read_btf_file(path: str | os.PathLike[str]) -> Btf:
    """The types of a file: a vmlinux, an object, or BTF alone.

    Raises:
        OSError: the file cannot be read.
        FormatError: there is no BTF in it, or it is malformed.
    """
    name = os.fspath(path)
    with open(name, "rb") as file:
        start = file.read(len(_ELF))
        if start != _ELF:
            return Btf(start + file.read(), source=name)
        size = os.fstat(file.fileno()).st_size
        image = ElfImage(lambda offset, count: os.pread(file.fileno(), count, offset), size, name)
        section = image.section(".BTF")
        if section is None:
            raise FormatError(
                name, "section .BTF", "there is none; compile with -g, or see pahole -J"
            )
        return Btf(image.contents(section), source=name)
