"""Forked children of a test, which share its descriptors and end without its cleanup."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

__all__ = ["finish", "in_child", "start"]


def start(body: Callable[[], None]) -> int:
    """Run `body` in a forked child; its pid."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        body()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def finish(child: int) -> None:
    """Wait for a child; its body must have returned."""
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def in_child(body: Callable[[], None]) -> None:
    """Run `body` in a forked child; it must return."""
    finish(start(body))
