"""`PerfEvent`: an owned perf_event_open(2) descriptor."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from purebpf.abi.perf import PERF_EVENT_ATTR, perf_type_id
from purebpf.closable import Closing
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.perf import perf_attr
from purebpf.loader.perf.perf_names import Event, event_named
from purebpf.loader.perf.perf_ring import PerfRing
from purebpf.syscall import perf_event as sys
from purebpf.syscall.descriptor import Descriptor
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.wire.perf_format import RecordFormat
    from purebpf.wire.perf_records import Record

__all__ = ["Event", "PerfEvent", "Reading"]

_DEFAULT = "cpu-cycles"
_STAND_IN = "cpu-clock"


class HasFileno(Protocol):
    """Something with a file descriptor: a file, a Program, a Descriptor."""

    def fileno(self) -> int:
        """Its descriptor."""


class Reading(NamedTuple):
    """A count.

    The event was enabled for `time_enabled_ns` and on the hardware for `time_running_ns`: less
    when it shared a counter with others. `id` is the event's number in records. `lost` counts the
    records that did not fit into its ring; None before Linux 6.0 (commit 119a784c8127).
    """

    value: int
    time_enabled_ns: int
    time_running_ns: int
    id: int
    lost: int | None

    @property
    def scaled(self) -> int:
        """The count as if the event had run whenever it was enabled."""
        if self.time_running_ns == 0:
            return 0
        return self.value * self.time_enabled_ns // self.time_running_ns


class PerfEvent(Closing):
    """One perf event: it counts, or samples every so often.

    Made by `sampling`, `software`, `hardware`, `tracepoint`, `raw` or `open`; closed by `close()`,
    by `with`, or, with a ResourceWarning, by the collector. Where an event counts:

    - `pid`: a thread, 0 for the caller, -1 for every one;
    - `cpu`: a CPU, -1 for every one (only with a `pid`);
    - `cgroup`: the path of a directory of the cgroup file system, instead of `pid`;
    - `inherit=1` (an attr field): also the threads and children that `pid` makes later.

    Any field of struct perf_event_attr may be set by its name: `exclude_kernel=1`,
    `enable_on_exec=1, disabled=1`, `sample_max_stack=32`; the bit `cgroup` as `cgroup_records`.

    Attributes:
        event: the event that is really counted, and the reason if it is not the requested one.
        pid: the thread, or -1.
        cpu: the CPU, or -1.
        attr: the bytes of its struct perf_event_attr.
    """

    _counts_lost: ClassVar[bool] = True
    """Whether this kernel takes PERF_FORMAT_LOST; found out by the first event that is opened."""

    def __init__(
        self, descriptor: Descriptor, event: Event, attr: bytes, *, pid: int = -1, cpu: int = -1
    ) -> None:
        self._descriptor = descriptor
        self.event = event
        self.attr = attr
        self.pid = pid
        self.cpu = cpu
        self._format: RecordFormat | None = None
        self._ring: PerfRing | None = None
        self._unread: Iterator[Record] = iter(())

    @classmethod
    def open(
        cls,
        event: Event | str,
        *,
        pid: int = -1,
        cpu: int = -1,
        cgroup: str | None = None,
        group: PerfEvent | None = None,
        **attr: int,
    ) -> Self:
        """Open `event`, a name or `Event(name, type, config)`, enabled unless `disabled=1`.

        `group` is the leader of the event's group. The read format is purebpf's own.

        Raises:
            KernelError: the kernel refused; the text has the reason on this host and advice.
            TypeError: a field that struct perf_event_attr has not.
            ValueError: no event of that name; a value that its field cannot hold.
        """
        chosen = event_named(event) if isinstance(event, str) else event
        group_fd = -1 if group is None else group.fileno()
        if cgroup is None:
            return cls._open(chosen, attr, pid, cpu, group_fd=group_fd)
        from purebpf.loader.host import cgroups

        with cgroups.open_cgroup_directory(cgroup) as opened:
            fd = opened.fileno()
            return cls._open(chosen, attr, fd, cpu, group_fd=group_fd, cgroup=cgroup)

    @classmethod
    def _open(
        cls,
        event: Event,
        fields: Mapping[str, int],
        pid: int,
        cpu: int,
        *,
        group_fd: int,
        cgroup: str = "",
    ) -> Self:
        """Open the event, without the count of lost records where the kernel has none."""
        flags = sys.FLAG_FD_CLOEXEC | (sys.FLAG_PID_CGROUP if cgroup else 0)
        who = -1 if cgroup else pid
        first: KernelError | None = None
        for lost in (True, False) if PerfEvent._counts_lost else (False,):
            attr = perf_attr.pack_attr(event, fields, lost=lost)
            try:
                descriptor = sys.perf_event_open(attr, pid, cpu, group_fd, flags)
            except KernelError as error:
                from purebpf.loader.perf.perf_errors import OpenRequest, explain_open_error

                first = first or explain_open_error(
                    error, OpenRequest(event.name, attr, pid, cpu, cgroup)
                )
                if error.errno != errno.EINVAL:
                    break
            else:
                PerfEvent._counts_lost = lost
                return cls(descriptor, event, attr, pid=who, cpu=cpu)
        assert first is not None
        raise first

    @classmethod
    def sampling(
        cls,
        frequency: int | None = None,
        period: int | None = None,
        *,
        event: Event | str | None = None,
        pid: int = -1,
        cpu: int = -1,
        cgroup: str | None = None,
        group: PerfEvent | None = None,
        **attr: int,
    ) -> Self:
        """Sample `event` `frequency` times a second, or once every `period` of its counts.

        Without `event`, CPU cycles, or the software event cpu-clock (it counts ns) where
        the machine has no counter for them, as in most virtual machines: see `.event`.

        Raises:
            ValueError: unless exactly one of `frequency` (Hz) and `period` is present.
            KernelError: as `open`.
        """
        attr |= perf_attr.rate(frequency, period)
        if event is not None:
            return cls.open(event, pid=pid, cpu=cpu, cgroup=cgroup, group=group, **attr)
        try:
            return cls.open(_DEFAULT, pid=pid, cpu=cpu, cgroup=cgroup, group=group, **attr)
        except KernelError as error:
            if error.errno not in (errno.ENOENT, errno.EOPNOTSUPP):
                raise
            stand_in = event_named(_STAND_IN)._replace(asked=_DEFAULT, why_not=str(error))
        return cls.open(stand_in, pid=pid, cpu=cpu, cgroup=cgroup, group=group, **attr)

    @classmethod
    def software(cls, name: str, **options: Any) -> Self:
        """Count a software event: `software("page-faults", pid=0)`.

        Raises:
            ValueError: no software event of that name.
            KernelError: as `open`; it takes the same options.
        """
        return cls.open(_of_type(name, perf_type_id.PERF_TYPE_SOFTWARE), **options)

    @classmethod
    def hardware(cls, name: str, **options: Any) -> Self:
        """Count a hardware event; many virtual machines have none.

        Raises:
            ValueError: no hardware event of that name.
            KernelError: as `open`; it takes the same options.
        """
        return cls.open(_of_type(name, perf_type_id.PERF_TYPE_HARDWARE), **options)

    @classmethod
    def tracepoint(cls, tracepoint: int | str, **options: Any) -> Self:
        """Count passes of a tracepoint, by `"sched:sched_switch"` or by its number in tracefs.

        Raises:
            KernelError, NotSupportedError: as `open`; it takes the same options; and for a name
                that is not in tracefs.
        """
        if isinstance(tracepoint, str):
            return cls.open(tracepoint.replace("/", ":"), **options)
        name = f"tracepoint {tracepoint}"
        return cls.open(Event(name, perf_type_id.PERF_TYPE_TRACEPOINT, tracepoint), **options)

    @classmethod
    def raw(cls, config: int, **options: Any) -> Self:
        """Count a raw event of the CPU: the vendor's event select and unit mask.

        Raises:
            KernelError: as `open`; it takes the same options.
        """
        return cls.open(Event(f"r{config:x}", perf_type_id.PERF_TYPE_RAW, config), **options)

    def fileno(self) -> int:
        """The descriptor. Raises ValueError when closed."""
        return self._descriptor.fileno()

    def enable(self, *, group: bool = False) -> None:
        """Start counting; with `group`, every event of its group at once."""
        sys.enable(self.fileno(), group=group)

    def disable(self, *, group: bool = False) -> None:
        """Stop counting."""
        sys.disable(self.fileno(), group=group)

    def reset(self, *, group: bool = False) -> None:
        """Make the count 0; the times go on."""
        sys.reset(self.fileno(), group=group)

    def set_period(self, period: int) -> None:
        """A new period, or the new frequency in Hz of an event opened with `frequency`."""
        sys.set_period(self.fileno(), period)

    def set_bpf(self, program: HasFileno) -> None:
        """Run a BPF program of type PERF_EVENT at each sample (Linux 4.9); EEXIST: one runs."""
        sys.set_bpf(self.fileno(), program.fileno())

    def read(self) -> Reading:
        """The count so far.

        Raises:
            KernelError: read(2) failed.
        """
        value, enabled, running, number, *lost = sys.read(self.fileno(), 5)
        return Reading(value, enabled, running, number, lost[0] if lost else None)

    @property
    def format(self) -> RecordFormat:
        """The decoder of this event's records."""
        if self._format is None:
            self._format = perf_attr.record_format(self.attr)
        return self._format

    def map_ring(self, pages: int = 8) -> PerfRing:
        """The ring that the event's records go to, of `pages` data pages; closed with the event.

        Raises:
            KernelError: mmap(2) refused; EPERM: kernel.perf_event_mlock_kb is used up.
            NotSupportedError: an event with `write_backward`.
            ValueError: `pages` is not a power of two, or there is a ring already.
        """
        if PERF_EVENT_ATTR.unpack(self.attr).get("write_backward"):
            raise NotSupportedError(f"the ring of {self!r}", "a backward ring")
        if self._ring is not None:
            raise ValueError(f"{self!r} already has a ring")
        self._ring = PerfRing(self.fileno(), pages)
        return self._ring

    def records(self) -> Iterator[Record]:
        """The records that are in the ring now; each is yielded once, also across calls.

        Raises:
            FormatError: a record breaks its format.
            ValueError: no ring was mapped; the event is closed.
        """
        self.fileno()
        if self._ring is None:
            raise ValueError(f"{self!r} does not have a ring: call map_ring() first")
        for record in self._unread:
            yield record  # noqa: UP028 - `yield from` would close _unread when the caller breaks out
        self._unread = self.format.iter_decode(self._ring.consume())
        for record in self._unread:
            yield record  # noqa: UP028

    def close(self) -> None:
        """Unmap the ring and close the event; again is harmless."""
        if self._ring is not None:
            self._ring.close()
        self._descriptor.close()

    def __repr__(self) -> str:
        who = "" if self.pid < 0 else f", pid={self.pid}"
        cpu = "" if self.cpu < 0 else f", cpu={self.cpu}"
        state = ", closed" if self._descriptor.closed else ""
        return f"PerfEvent({self.event.name}{who}{cpu}{state})"


def _of_type(name: str, kind: perf_type_id) -> Event:
    event = event_named(name)
    if event.type != kind:
        raise ValueError(f"{name} is not an event of {kind.name}")
    return event
