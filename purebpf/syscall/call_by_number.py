"""System calls that libc has no function for, by their numbers on each machine."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping

__all__ = ["call_by_number"]


def call_by_number(numbers: Mapping[str, int], *arguments: int) -> int | None:
    """Make a system call; return its result, -1 for an error.

    None: its number on this machine is not known.

    Args:
        numbers: the numbers of the call, by the machine of uname(2).
        arguments: numbers.
    """
    number = numbers.get(os.uname().machine)
    if number is None:
        return None
    syscall = ctypes.CDLL(None).syscall
    syscall.restype = ctypes.c_long
    syscall.argtypes = [ctypes.c_long] * (1 + len(arguments))
    return int(syscall(number, *arguments))
