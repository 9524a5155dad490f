"""Waits for running programs to end after counting was switched off."""

from __future__ import annotations

import time

from purebpf.syscall.membarrier import wait_for_all_cpus

__all__ = ["settle"]

_PAUSE_S = 0.01
"""Longer than a program runs, for kernels that do not say when all have ended."""


def settle() -> None:
    """Wait until the programs that run now have ended: they may not have seen a new setting."""
    if not wait_for_all_cpus():
        time.sleep(_PAUSE_S)
