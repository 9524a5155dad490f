"""`PythonTables`: what bpf_src/include/python_frames.h needs to know, and what it sends."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Collection, Container, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Any

from purebpf.closable import Closing
from purebpf.cpython.code_objects import TRAMPOLINES, decode_string
from purebpf.cpython.frames import PythonFrame
from purebpf.cpython.layout import NONE, Layout
from purebpf.cpython.lines import LineTable
from purebpf.cpython.memory import Memory, UnreadableError
from purebpf.cpython.merge import merge
from purebpf.cpython.runtime_file import CodeRange
from purebpf.cpython.thread_slot import ThreadSlot, find_slot
from purebpf.errors import FormatError, KernelError, NotSupportedError
from purebpf.kernel.cpython.later_looks import LaterLooks
from purebpf.kernel.cpython.python_process import (
    FileKey,
    KnownFiles,
    PythonProcess,
    find_python,
)
from purebpf.kernel.rings.record_types import RecordMap
from purebpf.kernel.rings.ring_buffer import RingBuffer
from purebpf.kernel.types.task_offsets import fsbase_offset
from purebpf.results.model.loss import Cause, Loss
from purebpf.symbols.budget import PROCESS, RUN, USER, Allowance, Budget, OverBudgetError
from purebpf.symbols.frame import Address, Frame, Reason, Unknown
from purebpf.symbols.python_words import CODE_SHIFT, ENTRY, TAG
from purebpf.symbols.start_functions import is_start
from purebpf.syscall import bpf, proc
from purebpf.tuples import NamedTuple
from purebpf.unwind.identity import is_older
from purebpf.wire.perf_records import Comm, Exit, Fork

__all__ = ["PythonTables"]

_PROCESS = struct.Struct("<QQiIBBBB18HQIHH")
_CODE = struct.Struct("<5QQ6I256s256s")
_CODE_MASK, _INSTRUCTION_MASK = (1 << 28) - 1, (1 << 24) - 1
_MOST_THREADS = 8
"""Threads that must agree on where their state is."""

_MOST_FRAMES = 96  # PYTHON_FRAMES of python_frames.h
_MOST_TABLE, _MOST_TABLES = 1 << 19, 1 << 25
"""Bytes of tables of lines: of one code object, and of all."""

_MOST_PROCESSES = 4096  # of the map `pythons`
_ALLOWANCES = {
    PROCESS: Allowance(1 << 40, 3.0),
    USER: Allowance(1 << 40, 20.0),
    RUN: Allowance(1 << 40, 60.0),
}
"""What looking for interpreters may cost in ten minutes. One takes milliseconds of CPU time, or a
tenth of a second if its file was not seen before; what a process holds is its user's to decide."""
_CROWDED = 1 << 14
"""Names: some 10 MB."""
_OWN_PLACE = 3  # of the numbers of code objects: those that are given out here
_NOT_STARTED = 1 << 23  # of the instruction: its line is the code's first one

Answer = Frame | Unknown


class _Interpreter(NamedTuple):
    """Of a process that was published."""

    version: tuple[int, int]
    layout: Layout
    loop: tuple[CodeRange, ...]
    path: str
    process: PythonProcess
    slot: ThreadSlot


class _Code(NamedTuple):
    """A code object that BPF met; `name` is "" where it could not be read.

    `is_trampoline` is as in `code_objects.Code`.
    """

    name: str
    file: str
    first_line: int
    lines: LineTable
    version: tuple[int, int]
    is_trampoline: bool


class PythonTables(Closing):
    """Publishes interpreters, reads names, and merges Python frames with native ones.

    Args:
        maps: those of the object, by name; they must stay open.
        variables: its globals: gets an offset in the kernel's tasks.
        lines: whether lines are wanted.
        native: whether to keep the frames of the interpreter itself.
        budget: pays for looking into processes.

    Attributes:
        merges, inexact: stacks that were merged, and those of them that did not fit together.
        skipped: why processes with an interpreter are not read.
    """

    def __init__(
        self,
        maps: Mapping[str, RecordMap],
        variables: MutableMapping[str, Any],
        *,
        lines: bool = False,
        native: bool = False,
        budget: Budget | None = None,
    ) -> None:
        self._table = maps["pythons"]
        self._lines, self._native = lines, native
        self._known: dict[int, _Interpreter | None] = {}
        self._later = LaterLooks()
        self._unsure: set[int] = set()
        self._files: KnownFiles = {}
        self._slots: dict[FileKey, ThreadSlot] = {}
        self._executed: set[int] = set()
        self._forked: dict[int, int] = {}
        self._inherited: set[int] = set()
        self._identities: dict[int, int] = {}
        self._has_numbers = proc.in_first_pid_namespace()
        self._by_generation: dict[int, _Interpreter] = {}
        self._codes: dict[int, _Code] = {}
        self._numbers: dict[tuple[str, str, int], int] = {}
        self._tables_left = _MOST_TABLES
        self._budget = budget or Budget(_ALLOWANCES)
        self._generation = 0
        self._published: dict[int, tuple[int, int]] = {}
        self._over: list[tuple[int, int]] = []
        self.merges = self.inexact = 0
        self.skipped: dict[int, str] = {}
        try:
            offset = fsbase_offset()
        except NotSupportedError:
            offset = 0
        variables["fsbase_at"] = offset
        self._ring = RingBuffer(maps["python_names"], bytes)

    @property
    def fds(self) -> tuple[int, ...]:
        """Readable when `drain()` is due: names have come."""
        return (self._ring.fileno(),)

    def publish_running(self, pids: Iterable[int] = ()) -> None:
        """Publish these processes, or all that run an interpreter by its name.

        Only in the initial PID namespace: in others, processes are published as they are met.
        """
        if not self._has_numbers:
            return
        for pid in pids or [pid for pid in proc.pids() if _runs_python(pid)]:
            self.publish(pid, pid)

    def publish(self, tgid: int, process: int, identity: int = 0) -> None:
        """Say how to read the interpreter of a process, if it has one.

        Args:
            tgid: in our PID namespace.
            process: the same in the initial one.
            identity: of the program that it executed; 0: not known.

        Raises:
            KernelError: the kernel refused an element.
        """
        last = self._identities.get(tgid, 0)
        is_other = identity != last and bool(identity and last)
        if is_other and is_older(identity, last):  # what it ran before: the copy came late
            return
        is_stale = tgid in self._executed or tgid in self._inherited
        is_new = is_other or is_stale or tgid not in self._known
        if not is_new and tgid not in self._unsure:
            return
        if identity:
            self._identities[tgid] = identity
        self._executed.discard(tgid)
        self._inherited.discard(tgid)
        self._unsure.discard(tgid)
        try:
            with self._budget.on_behalf(run="", user=proc.owner(tgid), process=tgid):
                self._look_at(tgid, process, identity, is_new=is_new)
        except OverBudgetError as error:
            self.skipped[tgid] = str(error)
            self._known.setdefault(tgid, None)
            self._later.drop(tgid)

    def _look_at(self, tgid: int, process: int, identity: int, *, is_new: bool) -> None:
        try:
            python = _find(tgid, self._files)
        except (KernelError, NotSupportedError) as error:
            self.skipped[tgid] = str(error)
            python = None
        if python is None:
            self._known.setdefault(tgid, None)
            if tgid not in self.skipped and _runs_python(tgid):  # its library is not mapped yet
                self._look_later(tgid, process, identity)
            else:
                self._later.drop(tgid)
            return
        slot = _slot(python)
        if slot is None:  # it has just started: others that run this file had it there
            self._look_later(tgid, process, identity)
            slot = self._slots.get(python.file)
        else:
            self._later.drop(tgid)
            self._slots[python.file] = slot
        last = self._known.get(tgid)
        if slot is None or (not is_new and last is not None and last.slot == slot):
            python.close()
            return
        self._put(tgid, process, identity, python, slot)

    def _inherit(self, parent: int, child: int) -> None:
        """Publish a child that runs what its parent does: no sample of it may ever be missed."""
        known = self._known.get(parent)
        is_met = child in self._known and child not in self._executed
        if known is None or is_met or parent in self._executed:
            return
        self._executed.discard(child)
        try:
            python = known.process.in_child(child)
        except KernelError as error:
            self.skipped[child] = str(error)
            return
        if python is not None:
            self._inherited.add(child)
            self._identities.pop(child, None)
            self._put(child, child, 0, python, known.slot)

    def _put(
        self, tgid: int, process: int, identity: int, python: PythonProcess, slot: ThreadSlot
    ) -> None:
        """Publish an interpreter; it is closed with the program that runs it."""
        layout, loop = python.layout, python.loop
        known = _Interpreter(python.version, layout, loop, python.path, python, slot)
        self._generation += 1
        packed = _pack(python, slot, identity, self._generation)
        try:
            bpf.map_update_elem(self._table.fileno(), process.to_bytes(4, "little"), packed)
        except KernelError as error:
            python.close()
            if error.errno != errno.E2BIG:
                raise
            self.skipped[tgid] = f"{_MOST_PROCESSES} processes with an interpreter run already"
            return
        if tgid in self._published:
            self._over.append((tgid, self._published[tgid][1]))
        self._published[tgid] = process, self._generation
        self._known[tgid] = self._by_generation[self._generation] = known

    def _look_later(self, tgid: int, process: int, identity: int) -> None:
        self._later.add(tgid, process, identity)
        self._unsure.add(tgid)

    def feed(self, record: object) -> None:
        """Take in what a process did, as `SideBand` reports it."""
        if isinstance(record, Fork) and record.pid != record.ppid:
            if self._has_numbers:
                self._forked[record.pid] = record.ppid
        elif isinstance(record, Comm) and record.exec:
            self._forked.pop(record.pid, None)
            self._executed.add(record.pid)
        elif isinstance(record, Exit) and record.pid == record.tid:
            self._forked.pop(record.pid, None)
            self._identities.pop(record.pid, None)
            self._inherited.discard(record.pid)
            self._executed.add(record.pid)
            self._later.drop(record.pid)
            if record.pid in self._published:
                self._over.append((record.pid, self._published[record.pid][1]))

    def look_again_s(self) -> float:
        """Seconds until `drain()` is due, with or without records."""
        return self._later.next_s()

    def drain(self) -> None:
        """Take in the names that came, and look again at processes that had just started."""
        for tgid, process, identity in self._later.due():
            self._look_later(tgid, process, identity)  # or `publish` drops it
            self.publish(tgid, process, identity)
        forked, self._forked = self._forked, {}
        for child, parent in forked.items():
            self._inherit(parent, child)
        over, self._over = self._over, []
        for raw in self._ring.drain():
            self._add(raw)
        for tgid, generation in over:  # all names that it sent are taken in
            self._forget(tgid, generation)

    def _forget(self, tgid: int, generation: int) -> None:
        """Give up the place and the memory of a program that has ended."""
        ended = self._by_generation.pop(generation, None)
        if ended is not None:
            ended.process.close()
        process, last = self._published.get(tgid, (0, 0))
        if last == generation:
            del self._published[tgid]
            with suppress(KernelError):  # ENOENT
                bpf.map_delete_elem(self._table.fileno(), process.to_bytes(4, "little"))

    @property
    def is_crowded(self) -> bool:
        """Whether names take so much memory that `forget_names` is due."""
        return len(self._codes) > _CROWDED

    def forget_but(self, keep: Container[int]) -> None:
        """Forget what was said of processes that are gone."""
        gone = {*self._known, *self.skipped} - self._published.keys()
        for tgid in gone:
            if tgid not in keep:
                self._known.pop(tgid, None)
                self.skipped.pop(tgid, None)
        self._executed &= self._known.keys()  # the others are new anyway
        self._unsure &= self._known.keys()

    def forget_names(self) -> None:
        """Forget all names: the programs give out the numbers of code objects again.

        `python_codes` and `python_numbers` are empty, and no stack with an old number comes.
        """
        self._codes.clear()
        self._numbers.clear()
        self._tables_left = _MOST_TABLES

    def _add(self, raw: bytes) -> None:
        if len(raw) < _CODE.size:
            raise FormatError("python_names", f"{len(raw)} bytes", f"a record has {_CODE.size}")
        generation, _, name, path, first, table, number, *strings, names, paths = _CODE.unpack_from(
            raw
        )
        name_state, name_length, path_state, path_length, _ = strings
        known = self._by_generation.get(generation)
        if known is None:
            return
        memory = Memory(known.process.read)
        lines = self._read_table(memory, known.layout, table) if self._lines else b""
        self._codes[number] = _Code(
            _text(memory, known.layout, name, (names, name_state, name_length)),
            _text(memory, known.layout, path, (paths, path_state, path_length)),
            first,
            LineTable(known.version, lines, first),
            known.version,
            known.version >= TRAMPOLINES and name == path,
        )

    def _read_table(self, memory: Memory, layout: Layout, address: int) -> bytes:
        """A table of lines; b"" for one that is too long, or not there."""
        try:
            size = memory.number(address + layout.bytes_length)
            if size > min(_MOST_TABLE, self._tables_left):
                return b""
            self._tables_left -= size
            return memory.bytes(address + layout.bytes_data, size)
        except UnreadableError:
            return b""

    def read_sleeping(self, tgid: int, pthreads: Container[int]) -> dict[int, tuple[int, ...]]:
        """The words of threads that sleep, by their thread pointers; only of what is published.

        They are read from outside: the caller checks that the threads did not run in between.
        """
        known = self._known.get(tgid)
        if known is None:
            return {}
        words: dict[int, tuple[int, ...]] = {}
        try:
            with self._budget.on_behalf(run="", user=proc.owner(tgid), process=tgid):
                reading = known.process.look()
                for interpreter in reading.interpreters:
                    for thread in interpreter.threads:
                        if thread.pthread in pthreads and thread.pthread not in words:
                            stack = known.process.frames(reading, thread.address, _MOST_FRAMES)
                            words[thread.pthread] = tuple(
                                self._word(known, frame) for frame in stack.frames
                            )
        except OverBudgetError as error:
            self.skipped[tgid] = str(error)
        return words

    def _word(self, known: _Interpreter, frame: PythonFrame) -> int:
        """A word for a frame that was read here, with the line that it has now."""
        key = frame.name, frame.file, frame.line
        number = self._numbers.setdefault(key, len(self._numbers) << 2 | _OWN_PLACE)
        if number not in self._codes:
            no_lines = LineTable(known.version, b"", frame.line)
            self._codes[number] = _Code(*key, no_lines, known.version, is_trampoline=False)
        word = TAG | number << CODE_SHIFT | _NOT_STARTED
        return word | ENTRY if frame.is_entry else word

    def merge(
        self, tgid: int, addresses: Sequence[int], native: Sequence[Answer]
    ) -> Sequence[Answer]:
        """A user stack with its Python frames, innermost first.

        Args:
            tgid: its process.
            addresses: native ones, innermost first, then words of python_frames.h.
            native: the names of the former.
        """
        known = self._known.get(tgid)
        words = addresses[len(native) :]
        if known is None:
            return [*native, *map(self._unnamed, words)]
        is_loop = [
            any(part.start <= address - (at > 0) < part.end for part in known.loop)
            for at, address in enumerate(addresses[: len(native)])
        ]
        merged = merge(
            native, is_loop, [self._python(word) for word in words if self._is_real(word)]
        )
        self.merges += 1
        self.inexact += not merged.is_exact
        return [
            _frame(entry) if isinstance(entry, PythonFrame) else entry
            for entry in merged.frames
            if self._native or isinstance(entry, PythonFrame) or not _is_folded(entry, known.path)
        ]

    def hints(self, pids: Collection[int] | None) -> list[str]:
        """Why those of the processes with an interpreter have no Python frames; None: all."""
        skipped = self.skipped.items()
        reasons = {why: pid for pid, why in skipped if pids is None or pid in pids}
        return [f"process {pid} has native frames only: {why}" for why, pid in reasons.items()]

    def with_merging(self, loss: Loss) -> Loss:
        """The losses, and what could not be merged exactly: a note, as both lists are kept."""
        what = f"{self.inexact} user stacks of {self.merges} do not fit with their Python frames"
        cause = Cause("python_merge", self.inexact, what, is_note=True)
        return loss._replace(causes=(*loss.causes, cause))

    def counts(self) -> dict[str, int]:
        """What came of merging: stacks, and those of them that did not fit together."""
        return {"python_merged": self.merges, "python_inexact": self.inexact}

    def _python(self, word: int) -> PythonFrame:
        code = self._codes.get(word >> CODE_SHIFT & _CODE_MASK)
        is_entry = bool(word & ENTRY)
        if code is None:
            return PythonFrame("", "", 0, word, is_entry)
        line = 0
        if self._lines:
            line = _line(code, word & _INSTRUCTION_MASK)
        return PythonFrame(code.name, code.file, line, word, is_entry)

    def _is_real(self, word: int) -> bool:
        code = self._codes.get(word >> CODE_SHIFT & _CODE_MASK)
        return code is None or not code.is_trampoline

    def _unnamed(self, word: int) -> Answer:
        return _frame(self._python(word))

    def close(self) -> None:
        """Close the ring and the memories; again is harmless."""
        self._ring.close()
        for known in self._by_generation.values():
            known.process.close()


def _find(pid: int, files: KnownFiles) -> PythonProcess | None:
    python = find_python(pid, files)
    if python is not None and python.is_free_threaded:
        # its strings and instructions lie elsewhere: no layout for it was ever tried
        python.close()
        version = ".".join(map(str, python.version))
        raise NotSupportedError(f"Python frames of {python.path}", f"{version} without a GIL")
    return python


def _runs_python(pid: int) -> bool:
    try:
        return "python" in os.readlink(f"{proc.PROC}/{pid}/exe").rpartition("/")[2]
    except OSError:
        return False


def _slot(python: PythonProcess) -> ThreadSlot | None:
    """Where its threads have their state; None while there is none."""
    reading = python.look()
    threads = [thread for main in reading.interpreters[-1:] for thread in main.threads]
    return find_slot(reading.memory, threads[-1:])


def _pack(python: PythonProcess, slot: ThreadSlot, identity: int, generation: int) -> bytes:
    """The struct python_process."""
    layout = python.layout
    style = 0 if python.version < (3, 11) else 1 if python.version < (3, 12) else 2
    name = layout.code_name if layout.code_qualname == NONE else layout.code_qualname
    fields = (
        *(layout.thread_id, layout.frame, layout.current, layout.frame_code),
        *(layout.frame_previous, layout.frame_instruction, layout.frame_owner),
        *(layout.code_filename, name, layout.code_first_line, layout.code_lines),
        *(layout.code_bytes, layout.ascii_size, layout.compact_size, layout.string_length),
        layout.string_state,
        layout.thread_interpreter,
        layout.gil_size,
    )
    in_runtime = layout.gil_in_runtime
    gil = (
        python.runtime + in_runtime if in_runtime != NONE else 0,
        *(layout.gil_in_interpreter, layout.gil_locked, layout.gil_holder),
    )
    has_current = layout.current != NONE
    return _PROCESS.pack(
        *(identity, generation, slot.offset, max(0, slot.inner), slot.inner >= 0, has_current),
        *(style, 0, *(max(0, field) for field in (*fields, *gil))),
    )


def _text(memory: Memory, layout: Layout, address: int, read: tuple[bytes, int, int]) -> str:
    """A string that BPF read; one that it could not read whole, from the process."""
    text = decode_string(*read)
    if text is not None:
        return text
    from purebpf.cpython.code_objects import read_string

    try:
        return read_string(memory, layout, address, 1024)
    except UnreadableError:
        return ""


def _line(code: _Code, instruction: int) -> int:
    if instruction & _NOT_STARTED:  # below 0: called, and nothing executed yet
        return code.first_line
    scale = 2 if code.version == (3, 10) else 1
    return code.lines.at(instruction * scale)


def _frame(frame: PythonFrame) -> Answer:
    if not frame.name:
        return Unknown(Reason.PYTHON_UNNAMED, frame.file, Address(0), "python")
    source = (frame.file, frame.line) if frame.line else ("", 0)
    return Frame(frame.name, 0, frame.file, Address(0), "python", file=source[0], line=source[1])


def _is_folded(answer: Answer, interpreter: str) -> bool:
    """Whether a native frame is of the interpreter, or below a program's beginning."""
    return answer.module == interpreter or (isinstance(answer, Frame) and is_start(answer.name))
