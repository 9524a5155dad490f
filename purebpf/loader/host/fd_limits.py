"""Explains EMFILE and ENFILE: which limit was reached, and how to raise it.

Imported before that, since an import needs one.
"""

from __future__ import annotations

import errno
import os

from purebpf.loader.host.process_limits import open_files

__all__ = ["NONE_LEFT", "count_left", "explain_too_few", "explanation"]

NONE_LEFT = frozenset({errno.EMFILE, errno.ENFILE})
"""The limit of this process, or that of the machine."""


def count_left() -> int:
    """Return how many more files this process may open; 0 if it cannot even find out."""
    soft, _ = open_files()
    try:
        return max(soft - len(os.listdir("/proc/self/fd")), 0)
    except OSError:
        return 0


def explain_too_few(needed: int) -> str:
    """Explain that too few files can be opened for a task, with advice."""
    soft, hard = open_files()
    fix = f"ulimit -n {hard}" if hard >= needed + soft - count_left() else "ulimit -n 1024"
    return (
        f"it needs {needed} more open files, and this process may have {soft} in all "
        f"(RLIMIT_NOFILE, hard limit {hard}). Raise it: {fix}"
    )


def explanation(number: int) -> tuple[str, str]:
    """Return the reason on this host, and advice; `number` is one of NONE_LEFT."""
    if number == errno.ENFILE:
        return (
            "the system has reached fs.file-max, its limit of open files",
            "close some, or raise it",
        )
    soft, hard = open_files()
    why = f"this process has reached {soft} open files (RLIMIT_NOFILE, hard limit {hard})"
    return why, "close some, or raise it: ulimit -n" if soft == hard else f"ulimit -n {hard}"
