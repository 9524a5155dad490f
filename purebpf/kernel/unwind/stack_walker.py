"""`StackWalker`: whole user stacks of samples, as bpf_src/stack_walk.bpf.c walks them.

What BPF could not finish comes as a copy, is finished here, and the tables that were missing are
published, so that the next walk does without.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import NamedTuple

from purebpf.closable import Closing
from purebpf.errors import FormatError
from purebpf.kernel.rings.record_types import RecordMap
from purebpf.kernel.rings.ring_buffer import RingBuffer
from purebpf.kernel.unwind.copy_buffer import CopyBuffer
from purebpf.kernel.unwind.process_stacks import ProcessStacks
from purebpf.kernel.unwind.walk_tables import WalkTables
from purebpf.symbols.budget import OverBudgetError
from purebpf.unwind.reason import Reason
from purebpf.unwind.unwinder import Unwound

__all__ = ["StackWalker", "WalkedStack"]

_SAMPLE = struct.Struct("<QIIII168x16s")
_WALK = struct.Struct("<QIHBB")
_FRAMES_AT = _SAMPLE.size + _WALK.size
_WORD = (1 << 64) - 1
_MOST_PROCESSES = 4096
"""Of which it is remembered what they execute; then all are asked about anew."""


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


class WalkedStack(NamedTuple):
    """A sample.

    Attributes:
        time_ns: CLOCK_MONOTONIC.
        cpu, tgid, tid, comm: where and what it was; numbers are those of our pid namespace.
        trace: the stack, as `Unwinder.unwind` gives it.
        walked: how far the walk in BPF came by itself, and why it ended there.
        is_copied: whether the stack was copied; then `trace` was made from the copy.
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
    """Reads what the program sends, and fills its tables.

    Args:
        maps: those of the object, by name; they must stay open.
        stacks: finishes the copies; closed with the walker.
        stack_bytes, pages: of the copies, see `CopyBuffer`.

    Attributes:
        tables: what was published.

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
        self._identities: dict[int, int] = {}
        self._published: dict[int, object] = {}
        with ExitStack() as undo:
            self._stacks = undo.enter_context(ProcessStacks() if stacks is None else stacks)
            self.tables = undo.enter_context(WalkTables(maps))
            self._copies = undo.enter_context(
                CopyBuffer(maps["copies"], stack_bytes=stack_bytes, pages=pages)
            )
            self._walked = undo.enter_context(RingBuffer(maps["walked"], bytes))
            self._closing = undo.pop_all()

    @property
    def lost_copies(self) -> int:
        """Copies that found no room in the ring of their CPU, as the kernel counts them."""
        return self._copies.lost

    def filenos(self) -> tuple[int, int]:
        """Descriptors that poll as readable when there is something to drain."""
        return self._copies.fileno(), self._walked.fileno()

    def drain(self) -> Iterator[WalkedStack]:
        """What the rings hold now.

        Raises:
            FormatError: a record is not what the program sends.
            KernelError: a table could not be filled.
        """
        for sample in self._copies.samples():
            record = _record(sample.raw or b"")
            self._check_identity(record)
            copy = self._copies.copied(sample)
            found = self._stacks.unwind(copy)
            if record.trace.reason is not Reason.COMPAT32:
                self._publish(record, found)
            if found.reason is Reason.COMPLETE and not record.trace.reason.is_whole:
                found = found._replace(reason=Reason.FINISHED)
            yield WalkedStack(*record[:5], found, record.trace, is_copied=True)
        for raw in self._walked.drain():
            record = _record(raw)
            yield WalkedStack(*record[:5], record.trace, record.trace, is_copied=False)

    def _check_identity(self, record: _Record) -> None:
        """Forget what was known of a process that executed another program, or of an earlier one
        with its number.
        """
        if self._identities.get(record.tgid) != record.identity:
            if len(self._identities) >= _MOST_PROCESSES:
                self._identities.clear()
                self._published.clear()
            self._stacks.forget(record.tgid)
            self._identities[record.tgid] = record.identity

    def _publish(self, record: _Record, found: Unwound) -> None:
        """Give BPF what it lacked for this stack."""
        space = self._stacks.space(record.tgid)
        if space is None:
            return
        try:
            with self._stacks.on_behalf(record.tgid):
                if self._published.get(record.process) is not space:
                    self.tables.publish(record.process, record.identity, space, self._stacks.file)
                    self._published[record.process] = space
                for number, frame in enumerate(found.frames):
                    address = frame - bool(number)
                    mapping = space.find(address)
                    cfi = self._stacks.file(mapping.file) if mapping and mapping.file else None
                    if mapping is not None and cfi is not None:
                        own = address - mapping.bias & _WORD
                        self.tables.build(mapping.file, cfi, own)
                        if record.trace.reason is Reason.READ_FAULT and number:
                            self.tables.confirm_call(mapping.file, own + 1)
        except OverBudgetError:
            return

    def close(self) -> None:
        """Close rings, tables and files; again is harmless."""
        self._closing.close()


def _record(raw: bytes) -> _Record:
    if len(raw) < _FRAMES_AT:
        raise FormatError("walked stack", f"{len(raw)} bytes", f"a record has {_FRAMES_AT}")
    time_ns, cpu, tgid, tid, _, comm = _SAMPLE.unpack_from(raw)
    identity, process, reason, depth, guessed = _WALK.unpack_from(raw, _SAMPLE.size)
    if _FRAMES_AT + 8 * depth > len(raw):
        raise FormatError("walked stack", f"{len(raw)} bytes", f"it says {depth} frames")
    frames = list(struct.unpack_from(f"<{depth}Q", raw, _FRAMES_AT))
    name = comm.split(b"\0", 1)[0].decode(errors="replace")
    trace = Unwound(frames, Reason(reason), guessed)
    return _Record(time_ns, cpu, tgid, tid, name, identity, process, trace)
