"""Readable C++ and Rust names, by the `demangle` package, which is imported at the first one."""

from __future__ import annotations

import sys
from functools import lru_cache

__all__ = ["MANGLED", "demangle"]

MANGLED = ("_Z", "__Z", "_R")
"""What mangled names begin with."""
_SCHEMES = ("itanium", "rust")


def demangle(name: str) -> str:
    """A symbol's name as its author wrote it: `_ZN3foo3barEv` is `foo::bar()`.

    Other names, and mangled ones that make no sense, come back as they are. The hash of a legacy
    Rust name (`::h0123456789abcdef`) is dropped. Equal names are one object.
    """
    return _demangle(name) if name.startswith(MANGLED) else sys.intern(name)


@lru_cache(maxsize=4096)
def _demangle(name: str) -> str:
    try:
        from demangle import demangle
    except ImportError:  # a distribution may leave it out: docs/dependencies.md
        return sys.intern(name)
    return demangle(name, language=_SCHEMES, style="gnu")
