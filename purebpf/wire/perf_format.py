"""Decoding the records of one perf event: its attr decides their layout, compiled once.

Every record but a sample may end with a `struct sample_id` (attr.sample_id_all): the thread, the
time, the CPU and the ids that `sample_type` asks for, in that order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Iterator
from operator import itemgetter

from purebpf.abi.perf import PERF_EVENT_ATTR
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.abi.perf import perf_event_type as kind
from purebpf.errors import FormatError
from purebpf.wire.perf_records import (
    Comm,
    Exit,
    Fork,
    Lost,
    LostSamples,
    Mmap,
    Mmap2,
    Other,
    Record,
    Switch,
    Throttle,
)
from purebpf.wire.perf_ring import Buffer, Skip, frames
from purebpf.wire.perf_samples import SampleLayout

MISC_MMAP_DATA = MISC_COMM_EXEC = MISC_SWITCH_OUT = 1 << 13
MISC_MMAP_BUILD_ID = MISC_SWITCH_OUT_PREEMPT = 1 << 14
MISC_LOST_SAMPLES_BPF = 1 << 15

TRAILER = (
    (bit.PERF_SAMPLE_TID, "II", ("pid", "tid")),
    (bit.PERF_SAMPLE_TIME, "Q", ("time",)),
    (bit.PERF_SAMPLE_ID, "Q", ("id",)),
    (bit.PERF_SAMPLE_STREAM_ID, "Q", ("stream_id",)),
    (bit.PERF_SAMPLE_CPU, "I4x", ("cpu",)),
    (bit.PERF_SAMPLE_IDENTIFIER, "Q", ("id",)),
)

_PID = struct.Struct("=I")
_ACTIONS = frozenset(
    (
        kind.PERF_RECORD_MMAP,
        kind.PERF_RECORD_MMAP2,
        kind.PERF_RECORD_COMM,
        kind.PERF_RECORD_FORK,
        kind.PERF_RECORD_EXIT,
    )
)
"""What a process did: its number comes first."""
_MMAP = struct.Struct("=IIQQQ")
_MMAP2 = struct.Struct("=IIQQQ24sII")
_FILE = struct.Struct("=IIQ8x")
_COMM = struct.Struct("=II")
_TASK = struct.Struct("=IIIIQ")
_TWO = struct.Struct("=QQ")
_ONE = struct.Struct("=Q")
_USUAL_SIZES = (16, 20)
"""Bytes of a build id: MD5 or a UUID, and SHA-1 (ld(1), --build-id)."""
_THREE = struct.Struct("=QQQ")

Place = tuple[int, int, int]
"""(time, cpu, id) of a record."""

Body = Callable[["RecordFormat", int, Buffer, int, int], Record]
"""(format, misc, data, start, end with the trailer) -> record."""


class RecordFormat:
    """Decodes the records of one event, or of several with the same attr.

    Args: the fields of struct perf_event_attr of the same names. `build_id` decides the meaning of
        PERF_RECORD_MISC_MMAP_BUILD_ID: the kernel leaves the bit in a header that all events share
        (perf_event_mmap_output() in kernel/events/core.c), so that the records of an event that did
        not ask have it, too, without a build id. None: it counts in records that look as if they
        had one.

    Raises:
        NotSupportedError: for samples that SampleLayout cannot decode.
    """

    def __init__(
        self,
        sample_type: int = 0,
        *,
        sample_id_all: bool = False,
        read_format: int = 0,
        sample_regs_user: int = 0,
        sample_regs_intr: int = 0,
        branch_sample_type: int = 0,
        build_id: bool | None = False,
    ) -> None:
        self.build_id = build_id
        self._samples = SampleLayout(
            sample_type,
            read_format=read_format,
            regs_user=sample_regs_user,
            regs_intr=sample_regs_intr,
            branches=branch_sample_type,
        )
        parts = [part for part in TRAILER if sample_id_all and sample_type & part[0]]
        self._trailer = struct.Struct("=" + "".join(code for _, code, _ in parts))
        self.trailer_size = self._trailer.size
        column_names = [name for _, _, names in parts for name in names]
        # A row is (0, -1, *trailer): a name that the trailer lacks takes one of the first two.
        places = {"cpu": 1} | {name: n + 2 for n, name in enumerate(column_names)}
        self._place = itemgetter(*(places.get(name, 0) for name in ("time", "cpu", "id")))
        self._thread = itemgetter(*(places.get(name, 0) for name in ("pid", "tid")))

    @classmethod
    def of_attr(cls, attr: bytes) -> RecordFormat:
        """Return the decoder of records of an event with this struct perf_event_attr.

        Raises NotSupportedError for a sample_type with parts that purebpf cannot decode.
        """
        fields = PERF_EVENT_ATTR.unpack(attr)
        registers = "sample_regs_user", "sample_regs_intr"
        names = ("sample_type", "read_format", *registers, "branch_sample_type")
        return cls(
            **{name: int(fields.get(name, 0)) for name in names},
            sample_id_all=bool(fields["sample_id_all"]),
            build_id=bool(fields.get("build_id")),
        )

    def iter_decode(
        self, data: Buffer, pids: Container[int] | None = None, skip: Skip | None = None
    ) -> Iterator[Record]:
        """The records of `data`, which starts and ends at a record.

        Args:
            data: the records.
            pids: skip records of other processes; None: keep all.
            skip: called with each record that breaks its format, and the iteration goes on. None:
                the first one raises.

        Raises:
            FormatError: at the first record that breaks its format, without `skip`.
        """
        for type_, misc, start, end in frames(data, 0, skip):
            if pids is not None and type_ in _ACTIONS and start + _PID.size <= end:
                (pid,) = _PID.unpack_from(data, start)
                if pid not in pids:
                    continue
            try:
                record = self.decode(type_, misc, data, start, end)
            except FormatError as error:
                if skip is None:
                    raise
                skip(error)
            else:
                yield record

    def decode(self, type_: int, misc: int, data: Buffer, start: int, end: int) -> Record:
        """The record of type `type_` with body `data[start:end]`."""
        if type_ == kind.PERF_RECORD_SAMPLE:
            return self._samples.decode(misc, data, start, end)
        body = _BODIES.get(type_)
        if body is None:
            stop = self.body_end(data, start, end, 0)
            return Other(type_, misc, bytes(data[start:stop]), *self.place(data, stop))
        return body(self, misc, data, start, end)

    def body_end(self, data: Buffer, start: int, end: int, fixed: int) -> int:
        """Return the start of the trailer; raise FormatError when fewer than `fixed` bytes
        precede it.
        """
        stop = end - self.trailer_size
        if stop - start < fixed:
            raise FormatError(
                "perf record",
                f"offset {start} of {len(data)}",
                f"{end - start} bytes cannot hold {fixed} and a trailer of {self.trailer_size}",
            )
        return stop

    def place(self, data: Buffer, stop: int) -> Place:
        """Time (ns), CPU and event id, from the trailer at `stop`."""
        row = (0, -1, *self._trailer.unpack_from(data, stop))
        time, cpu, number = self._place(row)
        return time, cpu, number

    def thread(self, data: Buffer, stop: int) -> tuple[int, int]:
        """Process and thread id, from the trailer at `stop`."""
        row = (0, -1, *self._trailer.unpack_from(data, stop))
        pid, tid = self._thread(row)
        return pid, tid


def _text(data: Buffer, start: int, stop: int) -> str:
    text, nul, _ = bytes(data[start:stop]).partition(b"\0")
    if not nul:
        raise FormatError("perf record", f"offset {start}", "a name without its NUL")
    return text.decode("utf-8", "surrogateescape")


def _mmap(form: RecordFormat, misc: int, data: Buffer, start: int, end: int) -> Mmap:
    stop = form.body_end(data, start, end, _MMAP.size)
    name = _text(data, start + _MMAP.size, stop)
    fields = _MMAP.unpack_from(data, start)
    return Mmap._make((*fields, name, bool(misc & MISC_MMAP_DATA), *form.place(data, stop)))


def _mmap2(form: RecordFormat, misc: int, data: Buffer, start: int, end: int) -> Mmap2:
    stop = form.body_end(data, start, end, _MMAP2.size)
    *where, file, prot, flags = _MMAP2.unpack_from(data, start)
    name = _text(data, start + _MMAP2.size, stop)
    is_named = _looks_named(file) if form.build_id is None else form.build_id
    if is_named and misc & MISC_MMAP_BUILD_ID:
        size = file[0]
        if size > 20:
            raise FormatError("mmap2 record", f"offset {start}", f"a build id of {size} bytes")
        identity = (0, 0, 0, file[4 : 4 + size])
    else:
        identity = (*_FILE.unpack(file), b"")
    return Mmap2._make((*where, name, *identity, prot, flags, *form.place(data, stop)))


def _looks_named(file: bytes) -> bool:
    """Return True for 24 bytes with a build id of a usual length.

    Without one, the first byte is the low one of a device's major number: no disk has 16 or 20.
    """
    size = file[0]
    return size in _USUAL_SIZES and not any(file[1:4]) and not any(file[4 + size :])


def _comm(form: RecordFormat, misc: int, data: Buffer, start: int, end: int) -> Comm:
    stop = form.body_end(data, start, end, _COMM.size)
    name = _text(data, start + _COMM.size, stop)
    pid, tid = _COMM.unpack_from(data, start)
    return Comm(pid, tid, name, bool(misc & MISC_COMM_EXEC), *form.place(data, stop))


def _fork(form: RecordFormat, _misc: int, data: Buffer, start: int, end: int) -> Fork:
    stop = form.body_end(data, start, end, _TASK.size)
    return Fork._make((*_TASK.unpack_from(data, start), *form.place(data, stop)[1:]))


def _exit(form: RecordFormat, _misc: int, data: Buffer, start: int, end: int) -> Exit:
    stop = form.body_end(data, start, end, _TASK.size)
    return Exit._make((*_TASK.unpack_from(data, start), *form.place(data, stop)[1:]))


def _lost(form: RecordFormat, _misc: int, data: Buffer, start: int, end: int) -> Lost:
    stop = form.body_end(data, start, end, _TWO.size)
    return Lost._make((*_TWO.unpack_from(data, start), *form.place(data, stop)))


def _lost_samples(form: RecordFormat, misc: int, data: Buffer, start: int, end: int) -> LostSamples:
    stop = form.body_end(data, start, end, _ONE.size)
    by_bpf = bool(misc & MISC_LOST_SAMPLES_BPF)
    return LostSamples._make((*_ONE.unpack_from(data, start), *form.place(data, stop), by_bpf))


def _throttle(form: RecordFormat, _misc: int, data: Buffer, start: int, end: int) -> Throttle:
    stop = form.body_end(data, start, end, _THREE.size)
    return Throttle._make((True, *_THREE.unpack_from(data, start), *form.place(data, stop)[1:]))


def _unthrottle(form: RecordFormat, misc: int, data: Buffer, start: int, end: int) -> Throttle:
    return _throttle(form, misc, data, start, end)._replace(stopped=False)


def _switch(form: RecordFormat, misc: int, data: Buffer, start: int, end: int) -> Switch:
    stop = form.body_end(data, start, end, 0)
    return _decode_switch(form, misc, data, stop, (0, 0))


def _switch_cpu_wide(form: RecordFormat, misc: int, data: Buffer, start: int, end: int) -> Switch:
    stop = form.body_end(data, start, end, _COMM.size)
    return _decode_switch(form, misc, data, stop, _COMM.unpack_from(data, start))


def _decode_switch(
    form: RecordFormat, misc: int, data: Buffer, stop: int, other: tuple[int, ...]
) -> Switch:
    out, preempted = bool(misc & MISC_SWITCH_OUT), bool(misc & MISC_SWITCH_OUT_PREEMPT)
    return Switch(
        out, preempted, other[0], other[1], *form.thread(data, stop), *form.place(data, stop)
    )


_BODIES: dict[int, Body] = {
    kind.PERF_RECORD_MMAP: _mmap,
    kind.PERF_RECORD_MMAP2: _mmap2,
    kind.PERF_RECORD_COMM: _comm,
    kind.PERF_RECORD_FORK: _fork,
    kind.PERF_RECORD_EXIT: _exit,
    kind.PERF_RECORD_LOST: _lost,
    kind.PERF_RECORD_LOST_SAMPLES: _lost_samples,
    kind.PERF_RECORD_THROTTLE: _throttle,
    kind.PERF_RECORD_UNTHROTTLE: _unthrottle,
    kind.PERF_RECORD_SWITCH: _switch,
    kind.PERF_RECORD_SWITCH_CPU_WIDE: _switch_cpu_wide,
}
