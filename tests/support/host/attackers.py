"""Users who attack while root works: what they do, and what root then sees."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from purebpf.observe.filters import pinned_slots
from tests.support.host.users import as_user

__all__ = ["begun", "doing", "refused", "swap", "whole_slots"]

_LIBC = ctypes.CDLL(None, use_errno=True)
_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE


@contextmanager
def doing(uid: int, work: Callable[[], Any]) -> Iterator[None]:
    """Let a user do something, for as long as the block lasts; it has begun when the block does."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        os.dup2(writer, 0)
        with contextlib.suppress(OSError):
            work()
        os.write(writer, b"x")
        os._exit(0)
    try:
        assert select.select([reader], [], [], 20)[0]
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)


def begun() -> None:
    """Let the block of `doing` begin."""
    os.write(0, b"x")


def swap(first: str, second: str) -> bool:
    """Exchange two names at once; whether both were there."""
    done = _LIBC.renameat2(_HERE, first.encode(), _HERE, second.encode(), _EXCHANGE)
    return bool(done == 0)


def refused(attempts: list[Callable[[], Any]]) -> list[str]:
    """What becomes of each attempt."""
    results = []
    for attempt in attempts:
        try:
            attempt()
        except OSError as error:
            results.append(errno.errorcode[error.errno or 0])
        else:
            results.append("it worked")
    return results


def whole_slots(bpffs: str, *users: int) -> list[list[bool]]:
    """Which slots of each user are whole, as root sees them, in a child that may crash."""

    def work() -> list[list[bool]]:
        shown = []
        for uid in users:
            try:
                shown.append([not each.faults for each in pinned_slots.slots(uid, bpffs)])
            except OSError:
                shown.append([])
        return shown

    found = as_user(0, work)
    assert isinstance(found, list)
    return found
