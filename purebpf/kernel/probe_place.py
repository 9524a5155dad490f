"""Where a uprobe goes: `file:function` to a path and an offset into that file.

A symbol says where code is in memory, and the PT_LOAD segment that holds it says where that is in
the file: the section's own offset is not the same in files that were linked with a large alignment
(libbpf-rs issue 1110).
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import NamedTuple

from purebpf.errors import AttachError
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_names import functions_named
from purebpf.symbols.frame import FileOffset

__all__ = ["Place", "find_file", "function_offsets", "opened_image", "parse_place"]

_PLACE = re.compile(r"(.+):([^:+]+?)(?:\+(0[xX][0-9a-fA-F]+|\d+))?")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|\d+")
_LIBRARY = re.compile(r"\.so(\.|$)")


class Place(NamedTuple):
    """A file, a function of it or a pattern of functions ("" for none), and bytes beyond it."""

    file: str
    function: str
    offset: int


def parse_place(text: str) -> Place:
    """`"libc.so.6:malloc+4"`, `"/bin/bash:0x1234"`.

    Raises:
        ValueError: it is neither.
    """
    found = _PLACE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no place in a file: that is 'file:function' or 'file:0x123'")
    file, function, offset = found.groups()
    if _NUMBER.fullmatch(function):
        return Place(file, "", int(function, 0) + int(offset or "0", 0))
    return Place(file, function, int(offset or "0", 0))


def find_file(name: str, what: str) -> str:
    """The path of a file that may be named without one; `what` is for the error.

    Raises:
        AttachError: ENOENT, it is nowhere.
    """
    if "/" in name:
        folders = [""]
    elif _LIBRARY.search(name):
        folders = list(_library_folders())
    else:
        folders = os.environ.get("PATH", os.defpath).split(":")
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return os.path.realpath(path)
    searched = f" in {', '.join(folders)}" if folders != [""] else ""
    raise AttachError("open", errno.ENOENT, what, why=f"there is no file {name}{searched}")


def _library_folders() -> Iterator[str]:
    """Where ld.so(8) looks, but for what /etc/ld.so.conf adds."""
    yield from filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    for folder in ("/usr/lib64", "/usr/lib", "/lib64", "/lib"):
        if not folder.endswith("64"):
            yield f"{folder}/{os.uname().machine}-linux-gnu"
        yield folder


@contextmanager
def opened_image(path: str) -> Iterator[ElfImage]:
    """The ELF file at `path`, inside the `with` block.

    Raises:
        FormatError: no ELF file, or a damaged one.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        fd = file.fileno()
        size = os.fstat(fd).st_size
        yield ElfImage(lambda offset, count: os.pread(fd, count, offset), size, path)


def function_offsets(path: str, pattern: str) -> dict[str, FileOffset]:
    """The functions of a file whose names match, and where in the file they start.

    Raises:
        FormatError: no ELF file, or a damaged one.
        OSError: it cannot be read.
    """
    with opened_image(path) as image:
        if not set(pattern) & set("*?"):
            return functions_named(image, lambda name: name == pattern)
        return functions_named(image, lambda name: fnmatchcase(name, pattern))
