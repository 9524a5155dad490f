"""`StackFinisher`: from the records of user_stacks.h to whole stacks."""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Iterator, Mapping, MutableMapping, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from purebpf.closable import Closing
from purebpf.errors import FormatError, NotSupportedError
from purebpf.loader.rings.record_types import RecordMap
from purebpf.loader.types.task_offsets import stack_offsets, task_offsets, uprobe_offsets
from purebpf.observe.symbols.mapped_files import Identity
from purebpf.observe.unwind.copied_stack import CopiedStack
from purebpf.observe.unwind.copy_rings import SAMPLE_TYPE
from purebpf.observe.unwind.live_files import tell_mappings
from purebpf.observe.unwind.native_machine import native_machine
from purebpf.observe.unwind.process_records import feed
from purebpf.observe.unwind.process_stacks import ProcessStacks
from purebpf.observe.unwind.programs import EarlierLookup, Met
from purebpf.observe.unwind.table_filler import TableFiller, WalkEnd
from purebpf.symbols.java_words import has_java
from purebpf.symbols.proc_maps import Mapping as CodePlace
from purebpf.symbols.python_words import DEEP_PYTHON_FRAMES, PYTHON_FRAMES, count_native
from purebpf.syscall import host_clock
from purebpf.tuples import NamedTuple
from purebpf.unwind.generated import GeneratedCode
from purebpf.unwind.machine import Machine
from purebpf.unwind.reason import Reason
from purebpf.unwind.sent_registers import NAMES, SentRegisters, read_registers
from purebpf.unwind.unwinder import MAX_FRAMES, Unwound
from purebpf.wire.perf_format import RecordFormat
from purebpf.wire.perf_records import Lost, Sample

__all__ = ["CopiedWalk", "MissedStack", "StackFinisher", "is_cut_short"]

_HEAD = struct.Struct("<QQ4I2HI64s4Q")
_REGISTERS = struct.Struct(f"<{len(NAMES)}Q")
_FRAMES_AT = _HEAD.size + _REGISTERS.size


class MissedStack(NamedTuple):
    """A sample that the walk in BPF could not finish.

    Attributes:
        copy: registers and stack.
        identity: of the program that the process executed; 0: not known.
        process: the tgid in the initial pid namespace.
        key: the key of its count.
        walked: how far the walk came, and why it ended there.
        python: words for the Python frames (`purebpf.symbols.python_words`).
        end: where the walk ended: pc, stack pointer, frame pointer, and whether pc is exact.
    """

    copy: CopiedStack
    identity: int
    process: int
    key: bytes
    walked: Unwound
    python: list[int]
    end: tuple[int, int, int, int]


class CopiedWalk(GeneratedCode, Protocol):
    """A walk through frames of generated code, which have words in place of addresses."""

    def with_words(self, frames: Sequence[int]) -> list[int]:
        """Return the addresses of a trace, with words for the frames that were left."""


class StackFinisher(Closing):
    """Unwinds copies, and fills the tables.

    Args:
        maps: the object's maps, by name; they must stay open.
        variables: its globals: gets the offsets in the kernel's tasks.
        tables: whether the program walks by tables.
        earlier, catch_up: see `ProcessStacks`.
        generated: returns a walk through generated code of a process, at the time of a copy.

    Attributes:
        lost_records: copies that were lost, as records in the rings say.
        unreadable: records that could not be read.
    """

    def __init__(
        self,
        maps: Mapping[str, RecordMap],
        variables: MutableMapping[str, Any],
        *,
        tables: bool,
        earlier: EarlierLookup | None = None,
        catch_up: Callable[[], object] | None = None,
        generated: Callable[[int, int], CopiedWalk | None] | None = None,
    ) -> None:
        self._generated = generated
        self._format = RecordFormat(SAMPLE_TYPE)
        self._machine = native_machine()
        self._variables = variables
        self._python_frames = _python_room(variables)
        self._knows_dropped = not tables
        self.lost_records = self.unreadable = 0
        with ExitStack() as undo:
            self._stacks = undo.enter_context(ProcessStacks(earlier=earlier, catch_up=catch_up))
            self._filler = None
            if tables:
                self._filler = undo.enter_context(TableFiller(maps, self._stacks))
                _identify(variables)
                _tell_uprobes(variables)
                tell_mappings(variables)
            self._closing = undo.pop_all()

    def feed(self, record: object) -> None:
        """Handle a record of a process, as `SideBand` reports it."""
        feed(self._stacks if self._filler is None else self._filler, record)

    @property
    def followed(self) -> Container[int]:
        """Processes for which `feed` needs the mappings, as of any later moment."""
        return self._stacks.followed

    def rest(self) -> None:
        """Drop data that can be read again."""
        if self._filler is not None:
            self._filler.rest()
        else:
            self._stacks.rest()

    def update(self) -> None:
        """Publish the mappings of processes since their last publication.

        Raises:
            KernelError: a table could not be filled.
        """
        if self._filler is not None:
            self._filler.update()

    def work(self) -> bool:
        """Build missing parts for 5 ms; return True if there is more to do. Raises as `update`."""
        return self._filler is not None and self._filler.work()

    def get_ready(self, tgid: int) -> None:
        """Have `work_ahead` build the rules of a process's files, see `TableFiller.get_ready`."""
        if self._filler is not None:
            self._filler.get_ready(tgid, host_clock.monotonic_ns())

    def work_ahead(self) -> bool:
        """The same as `work`, for parts that no stack has missed yet."""
        return self._filler is not None and self._filler.work_ahead()

    def records(self, data: bytes) -> Iterator[MissedStack]:
        """Yield the records of a ring; `unreadable` counts records in another form."""
        for record in self._format.iter_decode(data, None, self._skip):
            if isinstance(record, Sample):
                try:
                    missed = _missed(record, self._machine)
                except FormatError as error:
                    self._skip(error)
                else:
                    yield missed
            elif isinstance(record, Lost):
                self.lost_records += record.lost

    def _skip(self, _: FormatError) -> None:
        self.unreadable += 1

    def meet(self, missed: MissedStack) -> Met:
        """Read the mappings of a sample's process, while it is there."""
        return self._stacks.meet(missed.copy.tgid, missed.copy.time_ns)

    def announce(self, missed: MissedStack) -> None:
        """Publish the mappings of a sample's process, and queue the parts that its walk lacked.

        So the next walk does without a copy, however long it takes until this one is finished.

        Raises:
            KernelError: a table could not be filled.
        """
        copy, filler = missed.copy, self._filler
        if filler is not None and missed.identity:
            filler.check_identity(copy.tgid, missed.identity)
            where = (copy.tgid, missed.process, missed.identity)
            filler.publish(*where, missed.walked.frames)
            self._publish_end(missed)

    def finish(self, missed: MissedStack) -> Unwound:
        """Return the stack of a sample, and publish the parts that its walk lacked.

        Raises:
            KernelError: a table could not be filled.
        """
        copy, filler = missed.copy, self._filler
        if filler is not None and missed.identity:
            filler.check_identity(copy.tgid, missed.identity)
        if has_java(missed.walked.frames):
            return self._go_on(missed)
        if missed.walked.reason.is_whole:  # a process that has just begun: see live_mappings.h
            return self._tell(missed)
        trace = self._unwind(copy)
        if not ((trace.reason.is_whole and trace.frames[1:]) or self._knows_dropped):
            self._knows_dropped = True
            _tell_dropped(self._variables)
        if filler is not None and missed.identity:
            why = missed.walked.reason
            where = (copy.tgid, missed.process, missed.identity)
            if not filler.publish(*where, trace.frames, confirms=why is Reason.READ_FAULT):
                filler.learn(copy.tgid, copy.time_ns, trace.frames)
            if is_cut_short(trace, missed.walked):
                filler.publish(*where, missed.walked.frames)
            self._publish_end(missed)
        if trace.reason is Reason.COMPLETE:
            trace = trace._replace(reason=Reason.FINISHED)
        elif is_cut_short(trace, missed.walked):
            trace = trace._replace(frames=missed.walked.frames)
        room = MAX_FRAMES - len(missed.python)
        lacks_python = trace.reason.is_whole and len(missed.python) >= self._python_frames
        if len(trace.frames) > room or lacks_python:
            return Unwound([*trace.frames[:room], *missed.python], Reason.TOO_DEEP, trace.guessed)
        return trace._replace(frames=[*trace.frames, *missed.python])

    def _tell(self, missed: MissedStack) -> Unwound:
        """Publish the process of a whole stack, which BPF has walked by files of others."""
        walked, where = missed.walked, (missed.copy.tgid, missed.process, missed.identity)
        if self._filler is not None and missed.identity:
            self._filler.publish(*where, walked.frames)
        return walked._replace(frames=[*walked.frames, *missed.python])

    def _publish_end(self, missed: MissedStack) -> None:
        """Publish the rules for lack of which a walk ended."""
        pc, _, fp, is_exact = missed.end
        if self._filler is not None and missed.walked.reason is Reason.NOT_BUILT:
            where = (missed.copy.tgid, missed.process, missed.identity)
            self._filler.publish_end(*where, WalkEnd(pc, fp, bool(is_exact)))

    def _unwind(self, copy: CopiedStack, *, is_exact: bool = True) -> Unwound:
        """Unwind a copy, with words for frames of generated code."""
        walk = None if self._generated is None else self._generated(copy.tgid, copy.time_ns)
        if walk is None:
            return self._stacks.unwind(copy, is_exact=is_exact)
        trace = self._stacks.unwind(copy, walk, is_exact=is_exact)
        return trace._replace(frames=walk.with_words(trace.frames))

    def _go_on(self, missed: MissedStack) -> Unwound:
        """Return a stack with Java frames, which only BPF can leave, from where BPF ended on."""
        pc, sp, fp, is_exact = missed.end
        registers: list[int | None] = [None] * self._machine.registers
        registers[self._machine.sp], registers[self._machine.fp] = sp, fp
        first = missed.copy.registers[self._machine.sp] or 0
        stack = missed.copy.stack[max(0, sp - first) :]
        rest = missed.copy._replace(pc=pc, registers=tuple(registers), stack=stack)
        trace = self._unwind(rest, is_exact=bool(is_exact))
        if self._filler is not None and missed.identity:
            where = (rest.tgid, missed.process, missed.identity)
            self._filler.publish(*where, trace.frames)
        walked = missed.walked.frames
        if walked[-1:] == [pc + is_exact]:
            walked = walked[:-1]
        reason = Reason.FINISHED if trace.reason is Reason.COMPLETE else trace.reason
        frames = [*walked, *trace.frames][:MAX_FRAMES]
        return Unwound(frames, reason, trace.guessed + missed.walked.guessed)

    def unwind(self, pid: int, sent: SentRegisters, stack: bytes) -> Unwound:
        """The stack of a thread that sleeps."""
        now_ns = host_clock.monotonic_ns()
        where = sent.is_compat, sent.pc, sent.values
        return self._unwind(CopiedStack(now_ns, 0, pid, 0, "", *where, stack))

    def held(self, mapping: CodePlace, pid: int) -> int | None:
        """Return the open descriptor of a mapped file, see `CodeFiles.held`."""
        return self._stacks.held(mapping, pid)

    def noted(self, mapping: CodePlace, pid: int) -> Identity | None:
        """Return the identity of a mapped file, see `CodeFiles.noted`."""
        return self._stacks.noted(mapping, pid)

    def close(self) -> None:
        """Close tables and files; again is harmless."""
        self._closing.close()


def _python_room(variables: Mapping[str, Any]) -> int:
    """Return the number of Python frames that the program keeps: python_room() in C."""
    is_deep = "python_deep" in variables and variables["python_deep"]
    return PYTHON_FRAMES if not is_deep or variables["python_async"] else DEEP_PYTHON_FRAMES


def is_cut_short(trace: Unwound, walked: Unwound) -> bool:
    """Return True if a walk in BPF came further than its copy: over a switch of stacks, or deep."""
    return not trace.reason.is_whole and len(walked.frames) > len(trace.frames)


def _identify(variables: MutableMapping[str, Any]) -> None:
    """Set the offsets of a program's identity in tasks; without, every stack is copied."""
    try:
        offsets = task_offsets()
    except NotSupportedError:
        return
    for name, offset in offsets.items():
        if name != "group_leader":
            variables[f"{name}_at"] = offset
    if offsets:
        variables["group_leader_at"] = offsets["group_leader"]


def _tell_dropped(variables: MutableMapping[str, Any]) -> None:
    """Say where it shows that a process has no stack: it exits, or executes a program."""
    try:
        offsets = stack_offsets()
    except NotSupportedError:
        return
    if len(offsets) > 1:
        variables["mm_at"] = offsets["mm"]
        variables["end_code_at"] = offsets["end_code"]


def _tell_uprobes(variables: MutableMapping[str, Any]) -> None:
    """Say where a task has the addresses that uprobes put others in the place of."""
    try:
        offsets = uprobe_offsets()
    except NotSupportedError:
        return
    for name, offset in offsets.items():
        variables[f"{name}_at"] = offset


def _missed(sample: Sample, machine: Machine) -> MissedStack:
    raw = sample.raw or b""
    if len(raw) < _FRAMES_AT:
        raise FormatError("missed stack", f"{len(raw)} bytes", f"a record has {_FRAMES_AT}")
    head = _HEAD.unpack_from(raw)
    time_ns, identity, cpu, tgid, process, depth, reason, guessed, popped, key, *end = head
    registers = read_registers(machine, _REGISTERS.unpack_from(raw, _HEAD.size))
    if _FRAMES_AT + 8 * depth > len(raw):
        raise FormatError("missed stack", f"{len(raw)} bytes", f"it says {depth} frames")
    copy = CopiedStack(
        time_ns,
        cpu,
        tgid,
        0,
        "",
        registers.is_compat,
        registers.pc,
        registers.values,
        sample.stack_user[popped:],
    )
    frames = list(struct.unpack_from(f"<{depth}Q", raw, _FRAMES_AT))
    native = count_native(frames)
    walked = Unwound(frames[:native], Reason(reason), guessed)
    where = end[0], end[1], end[2], end[3]
    return MissedStack(copy, identity, process, key, walked, frames[native:], where)
