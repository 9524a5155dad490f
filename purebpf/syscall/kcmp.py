"""kcmp(2): which resources two tasks share (Linux 3.5, CONFIG_KCMP)."""

from __future__ import annotations

from purebpf.syscall.call_by_number import call_by_number

__all__ = ["share_directory", "share_files"]

_NUMBERS = {"x86_64": 312, "aarch64": 272}
_KCMP_FILES, _KCMP_FS = 2, 3


def share_files(task: int, other: int) -> bool | None:
    """Return True if two tasks have the same table of descriptors; None where it is not known."""
    return _is_same(task, other, _KCMP_FILES)


def share_directory(task: int, other: int) -> bool | None:
    """Return True if two tasks have the same current directory for good; None as above."""
    return _is_same(task, other, _KCMP_FS)


def _is_same(task: int, other: int, kind: int) -> bool | None:
    answer = call_by_number(_NUMBERS, task, other, kind, 0, 0)
    return None if answer is None or answer < 0 else answer == 0
