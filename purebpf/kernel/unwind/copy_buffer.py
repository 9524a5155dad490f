"""`CopyBuffer`: registers and copied stacks, as `bpf_src/stack_copy.bpf.c` sends them.

The program's record is followed by what the event adds to it: bytes of the user stack from its
stack pointer up, as far as the stack reaches (PERF_SAMPLE_STACK_USER, Linux 3.7,
commit c5ebcedb566e, "perf: Add ability to attach user stack dump to sample"). Copies hold memory of
the processes: they are not for files, nor for other users.
"""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.closable import Closing
from purebpf.errors import FormatError
from purebpf.kernel.perf.perf_events import PerfEvents
from purebpf.kernel.rings.record_types import RecordMap, decoder
from purebpf.syscall import bpf
from purebpf.unwind.machine import X86_64
from purebpf.wire.perf_format import RecordFormat
from purebpf.wire.perf_records import Lost, Sample

__all__ = ["LARGEST_COPY", "CopiedStack", "CopyBuffer"]

LARGEST_COPY = 65528
"""Bytes: what a record can hold (perf_event_open(2), sample_stack_user)."""

_SAMPLE_TYPE = bit.PERF_SAMPLE_RAW | bit.PERF_SAMPLE_STACK_USER
_DWARF = (
    "ax",
    "dx",
    "cx",
    "bx",
    "si",
    "di",
    "bp",
    "sp",
    *(f"r{number}" for number in range(8, 16)),
)
"""The registers of x86_64 in the order of DWARF's numbers."""


class CopiedStack(NamedTuple):
    """A sample.

    Attributes:
        time_ns: CLOCK_MONOTONIC.
        cpu, tgid, tid, comm: where and what it was; numbers are those of our pid namespace.
        is_compat: a 32-bit task: its registers say nothing about 64-bit code.
        pc: the address that runs next in user space.
        registers: by DWARF's numbers.
        stack: the bytes from the stack pointer up; fewer than asked for where the stack ends.
    """

    time_ns: int
    cpu: int
    tgid: int
    tid: int
    comm: str
    is_compat: bool
    pc: int
    registers: tuple[int, ...]
    stack: bytes


class CopyBuffer(Closing):
    """Reads a ring for each online CPU, and owns the rings' events.

    Attributes:
        lost: copies that found no room in their ring.

    Args:
        source: the map `copies` of the object; it must stay open.
        stack_bytes: how much of a stack to copy, a multiple of 8 up to `LARGEST_COPY`.
        pages: data pages of each ring, a power of two: 256 hold about 60 full copies of 16 KiB.

    Raises:
        KernelError: the kernel refused an event, a ring, or an element of the map.
        ValueError: `stack_bytes` is not possible, or `pages` is not a power of two.
    """

    def __init__(self, source: RecordMap, *, stack_bytes: int = 16384, pages: int = 256) -> None:
        if not 0 < stack_bytes <= LARGEST_COPY or stack_bytes % 8:
            raise ValueError(
                f"cannot copy {stack_bytes} bytes of a stack: expected a multiple of 8 up to "
                f"{LARGEST_COPY}"
            )
        self._decode = decoder(source, "stack_copy").one
        self._format = RecordFormat(_SAMPLE_TYPE)
        self._lost_records = 0
        with ExitStack() as undo:
            self._events = undo.enter_context(
                PerfEvents.open(
                    "bpf-output",
                    sample_type=_SAMPLE_TYPE,
                    sample_stack_user=stack_bytes,
                    sample_period=1,
                    wakeup_events=1,
                )
            )
            self._epoll = undo.enter_context(select.epoll())
            self._rings = []
            for event in self._events:
                self._rings.append(event.map_ring(pages))
                self._epoll.register(event.fileno(), select.EPOLLIN)
                key, value = event.cpu.to_bytes(4, "little"), event.fileno().to_bytes(4, "little")
                bpf.map_update_elem(source.fileno(), key, value)
            self._closing = undo.pop_all()

    @property
    def lost(self) -> int:
        """Copies that found no room: counted by the kernel, exactly from Linux 6.0 on."""
        counted = self._events.lost
        return self._lost_records if counted is None else counted

    def fileno(self) -> int:
        """An epoll descriptor over every CPU's ring."""
        return self._epoll.fileno()

    def drain(self) -> Iterator[CopiedStack]:
        """What the rings hold now, CPU after CPU.

        Raises:
            FormatError: a record is not what the program sends.
        """
        for sample in self.samples():
            yield self.copied(sample)

    def samples(self) -> Iterator[Sample]:
        """The same as records of perf: `raw` is what the program sent."""
        for ring in self._rings:
            if len(ring):
                for record in self._format.iter_decode(ring.consume()):
                    if isinstance(record, Sample):
                        yield record
                    elif isinstance(record, Lost):
                        self._lost_records += record.lost

    def copied(self, sample: Sample) -> CopiedStack:
        """The copy in a record.

        Raises:
            FormatError: it is not what the program sends.
        """
        if not sample.raw:
            raise FormatError("copied stack", "sample", "no record of the program")
        record: Any = self._decode(sample.raw)
        registers = record.registers
        values = tuple(getattr(registers, name) for name in _DWARF)
        assert len(values) == X86_64.ra
        return CopiedStack(
            record.time_ns,
            record.cpu,
            record.tgid,
            record.tid,
            record.comm,
            bool(record.is_compat),
            registers.ip,
            values,
            sample.stack_user,
        )

    def close(self) -> None:
        """Unmap the rings and close the events; again is harmless."""
        self._closing.close()
