"""Calls that wait for the lock of another process's mappings, and how long.

Looking into /proc/PID/map_files takes that lock, and reading /proc/PID/maps does before Linux 6.17.
A thread of that process can hold it while it waits for a page that never comes, and its user may be
the one who runs the file system (FUSE) that does not bring it. Only SIGKILL ends such a wait:
mmap_read_lock_killable(). So another thread has to wait; it ends with this process.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["PATIENCE_S", "call_in_time"]

T = TypeVar("T")

PATIENCE_S = 1.0
"""How long a call may take: microseconds, if nothing is wrong."""
_MOST = 8
"""Users that may have a thread wait for a process of theirs."""
_waiting: dict[int, threading.Thread] = {}


def call_in_time(user: int, call: Callable[[], T], undo: Callable[[T], object]) -> T:
    """Return or raise the outcome of a call about a process of `user`.

    It is not made while an earlier one waits for a process of that user, or of eight others.

    Args:
        user: the owner of the process.
        call: waits, perhaps.
        undo: called with a result that comes too late.

    Raises:
        TimeoutError: ETIMEDOUT, it did not end in time.
        OSError: EAGAIN, there can be no more threads.
    """
    for owner, thread in list(_waiting.items()):
        if not thread.is_alive():
            _waiting.pop(owner, None)
    if user in _waiting or len(_waiting) >= _MOST:
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
    return _Call(call, undo).result(user)


class _Call(Generic[T]):
    """A call in a separate thread."""

    def __init__(self, call: Callable[[], T], undo: Callable[[T], object]) -> None:
        self._call, self._undo = call, undo
        self._lock = threading.Lock()
        self._results: list[T] = []
        self._errors: list[OSError] = []
        self._is_late = False

    def result(self, user: int) -> T:
        """Wait for it; see `call_in_time`."""
        thread = threading.Thread(target=self._run, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
        try:
            thread.join(PATIENCE_S)
        finally:  # Ctrl-C, too
            with self._lock:
                self._is_late = not (self._results or self._errors)
            if self._is_late:
                _waiting[user] = thread
        if self._errors:
            raise self._errors[0]
        if not self._results:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        return self._results[0]

    def _run(self) -> None:
        try:
            result = self._call()
        except OSError as error:
            self._errors.append(error)
            return
        with self._lock:
            if not self._is_late:
                self._results.append(result)
                return
        self._undo(result)
