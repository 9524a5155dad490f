"""Explains EMFILE and ENFILE: which limit was reached, and how to raise it.

Imported before that, since an import needs one.
"""

from __future__ import annotations

import errno
import resource

__all__ = ["NONE_LEFT", "explanation"]

NONE_LEFT = frozenset({errno.EMFILE, errno.ENFILE})
"""The limit of this process, or that of the machine."""


def explanation(number: int) -> tuple[str, str]:
    """Why, on this host, and what would help; `number` is one of NONE_LEFT."""
    if number == errno.ENFILE:
        return (
            "the system has reached fs.file-max, its limit of open files",
            "close some, or raise it",
        )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    why = f"this process has reached {soft} open files (RLIMIT_NOFILE, hard limit {hard})"
    return why, "close some, or raise it: ulimit -n" if soft == hard else f"ulimit -n {hard}"
