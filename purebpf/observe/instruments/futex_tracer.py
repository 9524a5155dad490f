"""`FutexTracer`: the programs of bpf_src/futex.bpf.c, which add up waits in futex(2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from purebpf.btf.codec.codecs import codec
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.observe.instruments.stack_tracer import StackRequest, StackTracer
from purebpf.tuples import NamedTuple

__all__ = ["FutexSum", "FutexTracer", "SlowWait", "futex_request"]

_PROGRAMS = ("on_call_end", "on_call")
"""In this order the end of each wait that begins is seen."""
_COPIES, _PAGES = 1000, 512
"""Waits come in bursts, before a walk has its tables."""


class FutexSum(NamedTuple):
    """Waits of one stack for one lock.

    Attributes:
        stack: its number; waker_stack: of the thread that last let go, 0 if not asked for.
        address: of the lock, in the process.
        cgroup, tid, owner: 0 unless requested; `owner` comes from the words at the lock, and is
            right for mutexes of glibc.
        waits: that ended; `open`: that did not, until the end of the run.
        max_ns: of both, the longest.
        timeouts: of the waits, those that ended by the clock.
        woken, wake_ns: waits with a recorded waker, and the time from its call to their end.
        most_waiting: threads that waited for the lock at the same time.
        handed_on: waits that ended with the lock while others still waited for it.
        buckets: of nanoseconds.
    """

    comm: str
    pid: int
    tid: int
    cgroup: int
    owner: int
    address: int
    stack: int
    waits: int
    open: int
    total_ns: int
    max_ns: int
    timeouts: int
    woken: int
    wake_ns: int
    waker_stack: int
    most_waiting: int
    handed_on: int
    buckets: tuple[int, ...]


class SlowWait(NamedTuple):
    """One wait.

    Attributes:
        time_ns: of its end, on CLOCK_MONOTONIC.
        owner: as of `FutexSum`.
        stack, waker_stack: numbers, as of `FutexSum`.
        wake_ns: from the waker's call to the end; 0: it was not seen.
    """

    time_ns: int
    took_ns: int
    comm: str
    pid: int
    tid: int
    owner: int
    address: int
    stack: int
    waker_stack: int
    wake_ns: int


class FutexTracer(StackTracer):
    """Traces a request of `futex_request`, from `start()` to `stop()`."""

    def attach(self, links: ExitStack) -> None:
        """Attach to the ends and starts of system calls."""
        for name in _PROGRAMS:
            links.enter_context(self._object.programs[name].attach())
        slow_waits = self.maps["slow_waits"]
        assert slow_waits.btf is not None
        (type_id,) = slow_waits.btf.find("slow_wait")
        self._slow_wait = codec(slow_waits.btf, type_id)
        ring: Any = RingBuffer(slow_waits, bytes)  # outlives the links: it is read after the end
        self._ring: RingBuffer = ring

    def slow_waits(self) -> Iterator[SlowWait]:
        """The waits of `slower_ns` and more that ended since the last call."""
        for data in self._ring.drain():
            wait = self._slow_wait.decode(data)
            key = wait.key
            yield SlowWait(
                *(wait.time_ns, wait.took_ns, wait.comm, key.tgid, key.tid, key.owner),
                *(key.address, key.stack, wait.waker_stack, wait.wake_ns),
            )

    def close(self) -> None:
        """Detach and unload; again is harmless."""
        self._ring.close()
        super().close()

    def sums(self) -> Iterator[FutexSum]:
        """Return the counts, and the waits that have not ended.

        `resolve` gives the names of their stacks.

        Raises:
            KernelError: a map could not be read.
        """
        for key, row in self.maps["rows"].items():
            yield _sum(
                key,
                row.comm,
                waits=row.waits,
                open=0,
                total_ns=row.total_ns,
                max_ns=row.max_ns,
                timeouts=row.timeouts,
                woken=row.woken,
                wake_ns=row.wake_ns,
                waker_stack=row.waker_stack,
                most_waiting=row.most_waiting,
                handed_on=row.handed_on,
                buckets=tuple(row.buckets),
            )
        by_thread, by_owner = (self._object.globals[name] for name in ("by_thread", "by_owner"))
        for wait in self.maps["waits"].values():
            took_ns = max(0, self.ended_ns - wait.since_ns)
            key = wait.key._replace(
                tid=wait.key.tid if by_thread else 0, owner=wait.key.owner if by_owner else 0
            )
            yield _sum(
                key,
                wait.comm,
                waits=0,
                open=1,
                total_ns=took_ns,
                max_ns=took_ns,
                timeouts=0,
                woken=0,
                wake_ns=0,
                waker_stack=0,
                most_waiting=wait.position,
                handed_on=0,
                buckets=(),
            )


def futex_request(
    settings: Mapping[str, Any], sizes: Mapping[str, int], *, tree: bool
) -> StackRequest:
    """Return the request: constants of the object, max_entries of its maps, and the tree flag.

    Frames of the interpreter stay in stacks of Python: they say which lock it is.
    """
    return StackRequest(
        *("futex", _PROGRAMS, settings, sizes),
        native=True,
        tree=tree,
        copies=_COPIES,
        pages=_PAGES,
    )


def _sum(key: Any, comm: str, **counted: Any) -> FutexSum:
    return FutexSum(
        comm, key.tgid, key.tid, key.cgroup, key.owner, key.address, key.stack, **counted
    )
