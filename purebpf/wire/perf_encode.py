"""Perf records from values to bytes: the inverse of `perf_format`, for records of our own making.

A tool that writes perf.data adds records for facts that the kernel did not record: the processes
that existed before (MMAP2, COMM, FORK), and measurements by other means (SAMPLE).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.abi.perf import perf_event_type as kind
from purebpf.errors import NotSupportedError
from purebpf.wire.perf_format import (
    MISC_COMM_EXEC,
    MISC_LOST_SAMPLES_BPF,
    MISC_MMAP_BUILD_ID,
    MISC_MMAP_DATA,
    TRAILER,
)
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
    Sample,
)
from purebpf.wire.perf_ring import HEADER
from purebpf.wire.perf_samples import PREFIX

__all__ = ["HOST_KERNEL", "MISC_KERNEL", "MISC_USER", "RecordEncoder"]

MISC_KERNEL, MISC_USER = 1, 2
"""PERF_RECORD_MISC_*: which kind of address a sample has, or which mapping it reports."""

HOST_KERNEL = 0xFFFFFFFF
"""The pid of the kernel's own mappings."""

_REGS_ABI_64 = 2
"""PERF_SAMPLE_REGS_ABI_64 of enum perf_sample_regs_abi; 0: a task without user registers."""
_U32_MASK = 0xFFFFFFFF
_LONGEST = 0xFFF8  # the size of a record is 16 bits

_WORDS = (
    (bit.PERF_SAMPLE_WEIGHT | bit.PERF_SAMPLE_WEIGHT_STRUCT, "weight"),
    (bit.PERF_SAMPLE_DATA_SRC, "data_src"),
    (bit.PERF_SAMPLE_TRANSACTION, "transaction"),
    (bit.PERF_SAMPLE_PHYS_ADDR, "phys_addr"),
    (bit.PERF_SAMPLE_CGROUP, "cgroup"),
    (bit.PERF_SAMPLE_DATA_PAGE_SIZE, "data_page_size"),
    (bit.PERF_SAMPLE_CODE_PAGE_SIZE, "code_page_size"),
)

_UNSUPPORTED = (
    bit.PERF_SAMPLE_READ
    | bit.PERF_SAMPLE_BRANCH_STACK
    | bit.PERF_SAMPLE_REGS_INTR
    | bit.PERF_SAMPLE_AUX
)

Getter = Callable[[Any], tuple[int, ...]]


class RecordEncoder:
    """Makes records in the layout of one event.

    Args:
        sample_type: `attr.sample_type`, bits of enum perf_event_sample_format.
        sample_id_all: `attr.sample_id_all`: records other than samples end with when and where.

    Raises:
        NotSupportedError: for samples with counter values, registers of the kernel, branches or
            AUX data.
    """

    def __init__(self, sample_type: int, *, sample_id_all: bool = True) -> None:
        unknown = sample_type & (_UNSUPPORTED | -bit.PERF_SAMPLE_MAX)
        if unknown:
            raise NotSupportedError(
                "encoding samples", f"unsupported sample_type bits {unknown:#x}"
            )
        self._type = sample_type
        prefix = [(code, names) for mask, code, names in PREFIX if sample_type & mask]
        self._prefix = struct.Struct("=" + "".join(code for code, _ in prefix))
        self._prefix_of = _getter([name for _, names in prefix for name in names])
        self._words_of = _getter([name for mask, name in _WORDS if sample_type & mask])
        parts = [part for part in TRAILER if sample_id_all and sample_type & part[0]]
        self._trailer = struct.Struct("=" + "".join(code for _, code, _ in parts))
        names = [name for _, _, names in parts for name in names]
        self._trailer_names = ["id" if name == "stream_id" else name for name in names]

    def encode(self, record: Record, *, misc: int | None = None) -> bytes:
        """The record with its header.

        Args:
            record: any but THROTTLE and SWITCH records, which only the kernel has reasons for.
            misc: the header's flags; by default the flags that the record implies: a mapping of
                `HOST_KERNEL` is the kernel's. A sample has its own.

        Raises:
            NotSupportedError: a record of another kind.
            ValueError: it is longer than the 65,528 bytes that a record can have.
        """
        if isinstance(record, Sample):
            return _frame(kind.PERF_RECORD_SAMPLE, record.misc, self._sample(record))
        type_, implied, body = _body(record)
        return _frame(type_, implied if misc is None else misc, body + self._place(record))

    def _sample(self, sample: Sample) -> bytes:
        parts = [self._prefix.pack(*self._prefix_of(sample))]
        if self._type & bit.PERF_SAMPLE_CALLCHAIN:
            depth = len(sample.callchain)
            parts.append(struct.pack(f"={1 + depth}Q", depth, *sample.callchain))
        if self._type & bit.PERF_SAMPLE_RAW:
            padding = -(4 + len(sample.raw)) % 8
            size = len(sample.raw) + padding
            parts.append(struct.pack("=I", size) + sample.raw + bytes(padding))
        if self._type & bit.PERF_SAMPLE_REGS_USER:
            values = sample.regs_user
            abi = _REGS_ABI_64 if values else 0
            parts.append(struct.pack(f"={1 + len(values)}Q", abi, *values))
        if self._type & bit.PERF_SAMPLE_STACK_USER:
            parts.append(_stack(sample.stack_user))
        words = self._words_of(sample)
        parts.append(struct.pack(f"={len(words)}Q", *words))
        return b"".join(parts)

    def _place(self, record: Record) -> bytes:
        """The trailer; a record about no thread is of thread 0."""
        values = [getattr(record, name, 0) & _BOUNDS[name] for name in self._trailer_names]
        return self._trailer.pack(*values)


def _stack(data: bytes) -> bytes:
    """Return the reserved room, the bytes, and their number."""
    padded = data + bytes(-len(data) % 8)
    if not padded:
        return struct.pack("=Q", 0)
    return struct.pack("=Q", len(padded)) + padded + struct.pack("=Q", len(data))


_BOUNDS = {"pid": _U32_MASK, "tid": _U32_MASK, "cpu": _U32_MASK, "time": -1, "id": -1}
"""A CPU of -1 is 32 bits set, as the kernel writes one that it does not know."""


def _getter(names: list[str]) -> Getter:
    """All the values of those names, as a tuple also when it is one or none."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


def _body(record: Record) -> tuple[int, int, bytes]:
    """(type, flags, body without the trailer)."""
    match record:
        case Mmap():
            where = struct.pack("=IIQQQ", *record[:5])
            data = MISC_MMAP_DATA if record.is_data else 0
            return kind.PERF_RECORD_MMAP, _mode(record.pid) | data, where + _name(record.filename)
        case Mmap2():
            return _mmap2(record)
        case Comm():
            body = struct.pack("=II", record.pid, record.tid) + _name(record.comm)
            return kind.PERF_RECORD_COMM, MISC_COMM_EXEC if record.exec else 0, body
        case Fork() | Exit():
            type_ = kind.PERF_RECORD_FORK if isinstance(record, Fork) else kind.PERF_RECORD_EXIT
            return type_, 0, struct.pack("=IIIIQ", *record[:5])
        case Lost():
            return kind.PERF_RECORD_LOST, 0, struct.pack("=QQ", record.lost_id, record.lost)
        case LostSamples():
            misc = MISC_LOST_SAMPLES_BPF if record.by_bpf else 0
            return kind.PERF_RECORD_LOST_SAMPLES, misc, struct.pack("=Q", record.lost)
        case Other():
            return record.type, record.misc, record.body
        case _:
            raise NotSupportedError(
                "unknown record {}", f"{type(record).__name__} is not one of us"
            )


def _mmap2(record: Mmap2) -> tuple[int, int, bytes]:
    misc = _mode(record.pid)
    if record.build_id:
        misc |= MISC_MMAP_BUILD_ID
        size = len(record.build_id)
        file = struct.pack("=B3x20s", size, record.build_id)
    else:
        file = struct.pack("=IIQQ", record.maj, record.min, record.ino, 0)
    where = struct.pack("=IIQQQ", *record[:5])
    flags = struct.pack("=II", record.prot, record.flags)
    return kind.PERF_RECORD_MMAP2, misc, where + file + flags + _name(record.filename)


def _mode(pid: int) -> int:
    return MISC_KERNEL if pid == HOST_KERNEL else MISC_USER


def _name(text: str) -> bytes:
    """NUL-terminated, and filled up to 8 bytes."""
    data = text.encode("utf-8", "surrogateescape")
    return data + bytes(8 - len(data) % 8)


def _frame(type_: int, misc: int, body: bytes) -> bytes:
    size = HEADER.size + len(body)
    if size > _LONGEST:
        raise ValueError(f"a perf record of {size} bytes exceeds the maximum of {_LONGEST}")
    return HEADER.pack(type_, misc, size) + body
