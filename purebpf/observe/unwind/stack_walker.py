"""`StackWalker`: whole user stacks of samples, as bpf_src/stack_walk.bpf.c walks them.

A stack that BPF could not finish comes as a copy, is finished here, and the missing tables are
published, so that the next walk does without.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from purebpf.closable import Closing
from purebpf.errors import FormatError
from purebpf.loader.rings.record_types import RecordMap
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.observe.unwind.copy_buffer import CopyBuffer
from purebpf.observe.unwind.process_stacks import ProcessStacks
from purebpf.observe.unwind.stack_finisher import is_cut_short
from purebpf.observe.unwind.table_filler import TableFiller, WalkEnd
from purebpf.tuples import NamedTuple
from purebpf.unwind.reason import Reason
from purebpf.unwind.unwinder import Unwound

__all__ = ["StackWalker", "WalkedStack"]

_SAMPLE = struct.Struct("<QIIII168x16s")
_WALK = struct.Struct("<QQQIHBBQ")
_FRAMES_AT = _SAMPLE.size + _WALK.size
_MOST_SLICES = 20
"""Of building in one `drain`; the rings are read between them."""


class _Record(NamedTuple):
    """struct stack_walk."""

    time_ns: int
    cpu: int
    tgid: int
    tid: int
    comm: str
    identity: int
    process: int
    trace: Unwound
    end: WalkEnd


class WalkedStack(NamedTuple):
    """A sample.

    Attributes:
        time_ns: CLOCK_MONOTONIC.
        cpu, tgid, tid, comm: the place and the task; numbers are from our pid namespace.
        trace: the stack, as `Unwinder.unwind` gives it.
        walked: how far the walk in BPF came by itself, and why it ended there.
        is_copied: True if the stack was copied; then `trace` comes from the copy.
    """

    time_ns: int
    cpu: int
    tgid: int
    tid: int
    comm: str
    trace: Unwound
    walked: Unwound
    is_copied: bool


class StackWalker(Closing):
    """Reads the program's records, and fills its tables.

    Args:
        maps: the object's maps, by name; they must stay open.
        stacks: finishes the copies; closed with the walker.
        stack_bytes, pages: of the copies, see `CopyBuffer`.

    Attributes:
        tables: the published tables.

    Raises:
        KernelError: the kernel refused an event, a ring, or an element of a map.
    """

    def __init__(
        self,
        maps: Mapping[str, RecordMap],
        stacks: ProcessStacks | None = None,
        *,
        stack_bytes: int = 16384,
        pages: int = 256,
    ) -> None:
        with ExitStack() as undo:
            self._stacks = undo.enter_context(ProcessStacks() if stacks is None else stacks)
            self._filler = undo.enter_context(TableFiller(maps, self._stacks))
            self.tables = self._filler.tables
            self._copies = undo.enter_context(
                CopyBuffer(maps["copies"], stack_bytes=stack_bytes, pages=pages)
            )
            self._walked = undo.enter_context(RingBuffer(maps["walked"], bytes))
            self._closing = undo.pop_all()

    def feed(self, record: object) -> None:
        """Handle a record of a process, as `SideBand` reports it: see `TableFiller`."""
        self._filler.feed(record)

    @property
    def lost_copies(self) -> int:
        """Copies that found no room in the ring of their CPU, as the kernel counts them."""
        return self._copies.lost

    def filenos(self) -> tuple[int, int]:
        """Descriptors that poll as readable when there is something to drain."""
        return self._copies.fileno(), self._walked.fileno()

    def drain(self) -> Iterator[WalkedStack]:
        """Yield the present content of the rings.

        Raises:
            FormatError: a record is not in the program's form.
            KernelError: a table could not be filled.
        """
        self._filler.update()
        for _ in range(_MOST_SLICES):
            yield from self._finish_copies()
            if not self._filler.work():
                break
        for raw in self._walked.drain():
            record = _record(raw)
            yield WalkedStack(*record[:5], record.trace, record.trace, is_copied=False)

    def _finish_copies(self) -> Iterator[WalkedStack]:
        for sample in self._copies.samples():
            record = _record(sample.raw or b"")
            self._filler.check_identity(record.tgid, record.identity)
            copy = self._copies.copied(sample)
            trace = self._stacks.unwind(copy)
            if record.trace.reason is not Reason.COMPAT32:
                where = (record.tgid, record.process, record.identity)
                is_fault = record.trace.reason is Reason.READ_FAULT
                self._filler.publish(*where, trace.frames, confirms=is_fault)
                if is_cut_short(trace, record.trace):
                    self._filler.publish(*where, record.trace.frames)
                if record.trace.reason is Reason.NOT_BUILT:
                    self._filler.publish_end(*where, record.end)
            if trace.reason is Reason.COMPLETE and not record.trace.reason.is_whole:
                trace = trace._replace(reason=Reason.FINISHED)
            yield WalkedStack(*record[:5], trace, record.trace, is_copied=True)

    def close(self) -> None:
        """Close rings, tables and files; again is harmless."""
        self._closing.close()


def _record(raw: bytes) -> _Record:
    if len(raw) < _FRAMES_AT:
        raise FormatError("walked stack", f"{len(raw)} bytes", f"a record has {_FRAMES_AT}")
    time_ns, cpu, tgid, tid, _, comm = _SAMPLE.unpack_from(raw)
    walk = _WALK.unpack_from(raw, _SAMPLE.size)
    identity, pc, fp, process, reason, depth, guessed, is_exact = walk
    if _FRAMES_AT + 8 * depth > len(raw):
        raise FormatError("walked stack", f"{len(raw)} bytes", f"it says {depth} frames")
    frames = list(struct.unpack_from(f"<{depth}Q", raw, _FRAMES_AT))
    name = comm.split(b"\0", 1)[0].decode(errors="replace")
    trace = Unwound(frames, Reason(reason), guessed)
    end = WalkEnd(pc, fp, bool(is_exact))
    return _Record(time_ns, cpu, tgid, tid, name, identity, process, trace, end)
