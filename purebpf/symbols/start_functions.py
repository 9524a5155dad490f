"""Functions below main() and below a thread's first: the same in all stacks."""

from __future__ import annotations

import re

__all__ = ["is_start"]

_STARTS = re.compile(
    r"_start|__libc_start.*|start_thread|_{0,2}clone3?|_dl_start_user|thread_start"
)


def is_start(name: str) -> bool:
    """Whether a function is one of them, of glibc or musl."""
    return _STARTS.fullmatch(name) is not None
