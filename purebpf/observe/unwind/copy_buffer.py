"""`CopyBuffer`: registers and copied stacks, as `bpf_src/stack_copy.bpf.c` sends them.

The program's record is followed by the event's addition: bytes of the user stack from its stack
pointer up, as far as the stack reaches (PERF_SAMPLE_STACK_USER, Linux 3.7, commit c5ebcedb566e,
"perf: Add ability to attach user stack dump to sample"). Copies hold memory of the processes: never
write them to files, and never show them to other users.
"""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from purebpf.closable import Closing
from purebpf.errors import FormatError
from purebpf.loader.rings.record_types import RecordMap, decoder
from purebpf.observe.unwind.copied_stack import CopiedStack
from purebpf.observe.unwind.copy_rings import LARGEST_COPY, SAMPLE_TYPE, CopyRings
from purebpf.observe.unwind.native_machine import native_machine
from purebpf.unwind.sent_registers import NAMES, read_registers
from purebpf.wire.perf_format import RecordFormat
from purebpf.wire.perf_records import Lost, Sample

__all__ = ["LARGEST_COPY", "CopyBuffer"]


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
        with ExitStack() as undo:
            self._rings = undo.enter_context(
                CopyRings(source, stack_bytes=stack_bytes, pages=pages)
            )
            self._decode = decoder(source, "stack_copy").one
            self._format = RecordFormat(SAMPLE_TYPE)
            self._machine = native_machine()
            self._epoll = undo.enter_context(select.epoll())
            for fd in self._rings.fds:
                self._epoll.register(fd, select.EPOLLIN)
            self._closing = undo.pop_all()

    @property
    def lost(self) -> int:
        """Copies that found no room: counted by the kernel, exactly from Linux 6.0 on."""
        return self._rings.lost

    def fileno(self) -> int:
        """An epoll descriptor over every CPU's ring."""
        return self._epoll.fileno()

    def drain(self) -> Iterator[CopiedStack]:
        """Yield the present content of the rings, CPU after CPU; `lost` counts records other
        than copies.
        """
        for sample in self.samples():
            try:
                copy = self.copied(sample)
            except FormatError as error:
                self._rings.skip(error)
            else:
                yield copy

    def samples(self) -> Iterator[Sample]:
        """Yield them as records of perf: `raw` is the program's data."""
        for data in self._rings.consume():
            for record in self._format.iter_decode(data, None, self._rings.skip):
                if isinstance(record, Sample):
                    yield record
                elif isinstance(record, Lost):
                    self._rings.lost_records += record.lost

    def copied(self, sample: Sample) -> CopiedStack:
        """The copy in a record.

        Raises:
            FormatError: it is not the program's form.
        """
        if not sample.raw:
            raise FormatError("copied stack", "sample", "no record of the program")
        record: Any = self._decode(sample.raw)
        words = [getattr(record.registers, name) for name in NAMES]
        registers = read_registers(self._machine, words)
        return CopiedStack(
            record.time_ns,
            record.cpu,
            record.tgid,
            record.tid,
            record.comm,
            bool(record.is_compat),
            registers.pc,
            registers.values,
            sample.stack_user,
        )

    def close(self) -> None:
        """Unmap the rings and close the events; again is harmless."""
        self._closing.close()
