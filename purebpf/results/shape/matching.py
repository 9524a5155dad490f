"""Matches functions of two profiles, whatever the path or version of their file."""

from __future__ import annotations

import re

from purebpf.results.shape.functions import Function, function
from purebpf.symbols.frame import Frame, Unknown, is_unnamed_function

__all__ = ["Matching", "without_version"]

_LIBRARY = re.compile(r"(?:-\d+(?:\.\d+)*)?\.so(?:\.\d+)*$", re.ASCII)  # libc.so.6, libc-2.31.so
_PROGRAM = re.compile(r"(?:[-_]?\d+(?:\.\d+)+|-\d+)$", re.ASCII)  # python3.11, clang-19


class Matching:
    """Names functions for a comparison: a key for `purebpf.results.shape.functions.Functions`.

    Two functions match if they have one kind and name, in files of one name but for directories and
    versions. A function without a symbol only matches in the same build of its file.

    Attributes:
        shown: the displayed function for each key: the one that came last.
    """

    def __init__(self) -> None:
        self.shown: dict[Function, Function] = {}

    def __call__(self, entry: Frame | Unknown) -> Function:
        """The key of the function an address belongs to."""
        own = function(entry)
        key = own._replace(module=without_version(own.module))
        if is_unnamed_function(entry):
            build = f"build ID {entry.build_id}" if entry.build_id else entry.module
            key = key._replace(why=build)
        self.shown[key] = own
        return key


def without_version(module: str) -> str:
    """The name of a module without its directory and version."""
    name = module.rpartition("/")[2]
    if _LIBRARY.search(name):
        return _LIBRARY.sub(".so", name)
    return _PROGRAM.sub("", name) or name
