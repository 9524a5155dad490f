"""Waiting for a ring until it is closed: in threads and on event loops, all woken by `Waiters`.

Event loops are asyncio's; trio has tasks instead (`purebpf.loader.rings.trio_waiters`).

Closing a descriptor does not wake its pollers, and the next file that is opened may have its
number. So a thread that waits also polls an eventfd for itself (`WakeEvent`), and an event loop
watches a duplicate, which is closed when the loop has let go of it (`Watch`).

A waiter joins first and then checks whether the ring is closed; a closer says so
first and wakes afterwards. So none is missed, and no lock is held that a signal handler or a
forked child could wait for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from purebpf.closable import Closing
from purebpf.loader.host.fork_guard import OwnerProcess
from purebpf.loader.rings.trio_waiters import TrioWaiters, runs_trio
from purebpf.syscall.descriptor import Descriptor, Fresh

if TYPE_CHECKING:
    import asyncio

__all__ = ["LONGEST_S", "Waiters", "WakeEvent"]

LONGEST_S = 86400.0
"""Poll for no longer at a time: the kernel counts milliseconds in 31 bits."""


class Waiters:
    """The threads and event loops that wait for one ring."""

    def __init__(self) -> None:
        self._wake_events: set[WakeEvent] = set()
        self._watches: dict[asyncio.AbstractEventLoop, Watch] = {}
        self._trio: TrioWaiters | None = None

    def wake_event(self) -> WakeEvent:
        """Return an object that wakes the calling thread, while the context lasts."""
        return WakeEvent(self._wake_events)

    def wake(self) -> None:
        """Wake all, from any thread, and end the watches of event loops: the ring is closed."""
        for wake_event in tuple(self._wake_events):
            wake_event.ring()
        for watch in tuple(self._watches.values()):
            watch.end_soon()
        if self._trio is not None:
            self._trio.wake()

    def pass_on(self) -> None:
        """Let every task look again: there may be records that no polling reports."""
        for watch in tuple(self._watches.values()):
            watch.wake_soon()
        if self._trio is not None:
            self._trio.wake()

    async def readable(self, fileno: Callable[[], int], came: Callable[[], bool]) -> None:
        """Until the ring is readable, or closed, or a task passes on.

        Args:
            fileno: the descriptor to watch; ValueError when closed.
            came: whether records are there that watching, once begun, may never report.

        Raises:
            OSError: EMFILE, there is no free descriptor to wait with.
            ValueError: the ring is closed.
        """
        if runs_trio():
            self._trio = self._trio or TrioWaiters()
            await self._trio.readable(fileno, came)
            return
        import asyncio  # costs 50 ms that synchronous readers need not pay

        loop = asyncio.get_running_loop()
        watch = self._watches.get(loop) or self._new_watch(loop, fileno)
        try:
            fileno()
            if came():
                await asyncio.sleep(0)  # the other tasks' turn, whatever the kernel's speed
            else:
                await watch.woken()
        finally:
            if not watch.tasks:
                if self._watches.get(loop) is watch:
                    del self._watches[loop]
                watch.end()

    def _new_watch(self, loop: asyncio.AbstractEventLoop, fileno: Callable[[], int]) -> Watch:
        try:
            loop_watch = self._watches[loop] = Watch(loop, fileno())
        except OSError:
            fileno()  # another thread may have closed it just before it was duplicated
            raise
        return loop_watch


class WakeEvent(Closing):
    """Wakes one thread: a descriptor that polls as readable once it was rung."""

    def __init__(self, others: set[WakeEvent]) -> None:
        self._others = others
        self._owner_process: OwnerProcess | None = None
        self._fd: Fresh | None = None

    def fileno(self) -> int:
        """The number, of an eventfd that is opened when it is first asked for.

        Raises:
            OSError: EMFILE, there is no free descriptor.
        """
        if self._fd is None:
            self._owner_process = OwnerProcess()
            self._fd = Fresh(os.eventfd(0))
            self._others.add(self)
        return self._fd

    def ring(self) -> None:
        """Wake the thread, from another one."""
        # It closes itself after its last use, so that no other file gets its number before.
        fd = self._fd
        if fd is not None and self._owner_process is not None and self._owner_process.is_here:
            os.eventfd_write(fd, 1)

    def close(self) -> None:
        """Be woken no more; again is harmless."""
        self._others.discard(self)
        self._fd = None


class Watch:
    """The watch of one event loop, for all its waiting tasks.

    Attributes:
        tasks: the futures they wait for.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int) -> None:
        self._loop = loop
        self._owner_process = OwnerProcess()
        self.tasks: set[asyncio.Future[None]] = set()
        self._copy = Descriptor(os.dup(fd))
        try:
            loop.add_reader(self._copy.fileno(), self._wake)
        except BaseException:
            self._copy.close()
            raise

    async def woken(self) -> None:
        """Until the descriptor is readable, or the watch ends."""
        future = self._loop.create_future()
        self.tasks.add(future)
        try:
            await future
        finally:
            self.tasks.discard(future)

    def wake_soon(self) -> None:
        """Wake the tasks, from any thread."""
        self._soon(self._wake)

    def end_soon(self) -> None:
        """`end`, from any thread."""
        if self._owner_process.is_here:
            self._soon(self.end)
        else:  # the loop is the parent's, and so is what it watches
            self._copy.close()

    def end(self) -> None:
        """Watch no more, and wake the tasks; again is harmless."""
        if self._copy.closed:
            return
        if not self._loop.is_closed():
            self._loop.remove_reader(self._copy.fileno())
            self._wake()
        self._copy.close()

    def _soon(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed, and its tasks have ended or never will
            if self._loop.is_running():
                self._loop.call_soon_threadsafe(callback)
            else:
                callback()

    def _wake(self) -> None:
        for future in self.tasks:
            if not future.done():
                future.set_result(None)
