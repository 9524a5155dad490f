"""Limits of this process that a big machine would run into."""

from __future__ import annotations

import resource

__all__ = ["raise_open_files"]


def raise_open_files() -> None:
    """Raise the soft RLIMIT_NOFILE to the hard one, which needs no privilege.

    Three descriptors a CPU go beyond the usual 1024 from some 330 CPUs on. A child that was forked
    before keeps its own limit: a command that uses select(2) does not see the greater numbers.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
