"""Kernel types from a file: bare BTF, as BTFHub has it, or an ELF file with a .BTF section."""

from __future__ import annotations

import os

from purebpf.btf.types.parse import Btf
from purebpf.errors import FormatError
from purebpf.files.input_file import open_seekable
from purebpf.loader.host.debug_files import image_of

__all__ = ["read_btf_file"]

_ELF = b"\x7fELF"
_MOST = 1 << 28
"""Bytes of BTF alone: that of a kernel has six million."""


def read_btf_file(path: str | os.PathLike[str]) -> Btf:
    """The types of a file: a vmlinux, an object, or BTF alone.

    Raises:
        OSError: the file cannot be read.
        FormatError: there is no BTF in it, or it is malformed.
    """
    name = os.fspath(path)
    with open(name, "rb", opener=open_seekable) as file:
        start = file.read(len(_ELF))
        if start != _ELF:
            data = start + file.read(_MOST)
            if len(data) > _MOST:
                raise FormatError(name, "size", f"more than {_MOST >> 20} MiB are not BTF")
            return Btf(data, source=name)
        image = image_of(file.fileno(), name)
        section = image.section(".BTF")
        if section is None:
            raise FormatError(
                name,
                "section .BTF",
                "the section does not exist; compile with -g, or see pahole -J",
            )
        return Btf(image.contents(section), source=name)
