"""The flags of open(2) by name. Pure: the numbers belong to the machine that measures."""

from __future__ import annotations

import os

__all__ = ["access", "names"]

_ACCESS = ("O_RDONLY", "O_WRONLY", "O_RDWR")
_LETTERS = ("r", "w", "rw")
_MASK = 0o3
_LARGEFILE = 0o100000
"""Set by the kernel's own 32-bit calls; of 64-bit ones it says nothing."""

# O_TMPFILE has the bits of O_DIRECTORY, and O_SYNC those of O_DSYNC: the wider ones come first
_FLAGS = [
    (name, getattr(os, name))
    for name in (
        *("O_CREAT", "O_EXCL", "O_NOCTTY", "O_TRUNC", "O_APPEND", "O_NONBLOCK"),
        *("O_SYNC", "O_DSYNC", "O_ASYNC", "O_DIRECT", "O_TMPFILE", "O_DIRECTORY"),
        *("O_NOFOLLOW", "O_NOATIME", "O_CLOEXEC", "O_PATH"),
    )
    if hasattr(os, name)
]


def access(flags: int) -> str:
    """Return the access mode in few letters: `r`, `w`, `rw`; `+` where open(2) may create the
    file.
    """
    mode = flags & _MASK
    letters = _LETTERS[mode] if mode < len(_LETTERS) else "?"
    return f"{letters}+" if flags & os.O_CREAT else letters


def names(flags: int) -> list[str]:
    """`["O_RDONLY", "O_CLOEXEC"]`; bits without a name come last, as a number."""
    mode = flags & _MASK
    flag_names = [_ACCESS[mode] if mode < len(_ACCESS) else f"{mode:#x}"]
    left = flags & ~_MASK & ~_LARGEFILE
    for name, bits in _FLAGS:
        if left & bits == bits:
            flag_names.append(name)
            left &= ~bits
    if left:
        flag_names.append(f"{left:#x}")
    return flag_names
