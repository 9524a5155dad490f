"""`InterpreterTable`: processes that run Python, PHP or Ruby, for python_frames.h."""

from __future__ import annotations

import errno
import math
import struct
import time
from collections.abc import Callable, Collection, Container, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from purebpf.closable import Closing
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.rings.record_types import RecordMap
from purebpf.observe.runtimes.cpython.later_looks import LaterLooks
from purebpf.observe.runtimes.cpython.python_process import (
    FileKey,
    KnownFiles,
    PythonProcess,
    find_python,
)
from purebpf.observe.runtimes.cpython.running import program_path, running, runs_python
from purebpf.observe.runtimes.script_file import script_language
from purebpf.observe.runtimes.script_process import ScriptProcess
from purebpf.runtimes.cpython.layout import NONE
from purebpf.runtimes.cpython.thread_slot import ThreadSlot, find_slot
from purebpf.symbols.budget import Budget, OverBudgetError
from purebpf.symbols.code_range import CodeRange
from purebpf.symbols.proc_maps import Mapping
from purebpf.syscall import bpf, proc
from purebpf.syscall.process_memory import STUCK
from purebpf.tuples import NamedTuple
from purebpf.unwind.identity import is_older
from purebpf.wire.perf_records import Comm, Exit, Fork

if TYPE_CHECKING:
    from purebpf.observe.runtimes.cpython.task_table import TaskTable

__all__ = ["Interpreter", "InterpreterTable"]

_PROCESS = struct.Struct("<QQiIBBBB26H2I2Q4H4xB3x24x")
_POINTER = 8
_MOST_PROCESSES = 4096  # of the map `pythons`


class Interpreter(NamedTuple):
    """An interpreter of a published process, Python's, PHP's or Ruby's.

    Attributes:
        path: of its file.
        program: of the program's, perhaps the same; "" if that is not known.
        slot: where its threads have their state, if it is Python's.
    """

    tgid: int
    version: tuple[int, int]
    loop: tuple[CodeRange, ...]
    path: str
    program: str
    process: PythonProcess | ScriptProcess
    slot: ThreadSlot | None


class InterpreterTable(Closing):
    """Publishes how to read the interpreter of each process, and forgets those that have ended.

    Args:
        pythons: the map of that name; it must stay open.
        budget: pays for looking into processes.
        tasks: asyncio's, where these are wanted.

    Attributes:
        by_generation: the published interpreters, by the number in the names of their frames.
        skipped: why processes with an interpreter are not read.
    """

    def __init__(self, pythons: RecordMap, budget: Budget, tasks: TaskTable | None = None) -> None:
        self._table = pythons
        self._tasks = tasks
        self._budget = budget
        self._known: dict[int, Interpreter | None] = {}
        self._later = LaterLooks()
        self._unsure: set[int] = set()
        self._files = KnownFiles()
        self._slots: dict[FileKey, ThreadSlot] = {}
        self._executed: set[int] = set()
        self._forked: dict[int, int] = {}
        self._inherited: set[int] = set()
        self._identities: dict[int, int] = {}
        self._has_numbers = proc.in_first_pid_namespace()
        self._generation = 0
        self._published: dict[int, tuple[int, int]] = {}
        self._over: list[tuple[int, int]] = []
        self._free_threaded: dict[int, str] = {}
        self.by_generation: dict[int, Interpreter] = {}
        self.skipped: dict[int, str] = {}

    def of(self, tgid: int) -> Interpreter | None:
        """The interpreter that a process runs; None: none that is read."""
        return self._known.get(tgid)

    @property
    def published(self) -> Container[int]:
        """Processes with a published interpreter: `feed` needs their records."""
        return self._published

    def publish_running(
        self,
        pids: Iterable[int] = (),
        pause: Callable[[], object] = bool,
        limit_s: float | None = None,
    ) -> None:
        """Publish these processes, or all that run an interpreter by its name.

        Only in the initial PID namespace: in others, processes are published as they are met.

        Args:
            pids: these.
            pause: is called before each that is new: the first of a version takes ten milliseconds
                of CPU time, and rings fill in the meantime.
            limit_s: leave the remaining processes for a later call after this time; None: never.
        """
        if not self._has_numbers:
            return
        end = math.inf if limit_s is None else time.monotonic() + limit_s
        for pid in pids or running():
            if time.monotonic() > end:
                return
            if pid not in self._known:
                pause()
            self.publish(pid, pid)

    def publish(
        self,
        tgid: int,
        process: int,
        identity: int = 0,
        mappings: list[Mapping] | None = None,
        *,
        is_due: bool = False,
    ) -> None:
        """Say how to read the interpreter of a process, if it has one.

        Args:
            tgid: in our PID namespace.
            process: the same in the initial one.
            identity: of the program that it executed; 0: not known.
            mappings: its executable mappings, if they were just read.
            is_due: look even if the process was just not ready.

        Raises:
            KernelError: the kernel refused an element.
        """
        last = self._identities.get(tgid, 0)
        is_other = identity != last and bool(identity and last)
        if is_other and is_older(identity, last):  # what it ran before: the copy came late
            return
        is_stale = tgid in self._executed or tgid in self._inherited
        is_new = is_other or is_stale or tgid not in self._known
        if not (is_new or (tgid in self._unsure and (is_due or self._later.may_look(tgid)))):
            return
        if identity:
            self._identities[tgid] = identity
        self._executed.discard(tgid)
        self._inherited.discard(tgid)
        self._unsure.discard(tgid)
        try:
            with self._budget.on_behalf(run="", user=proc.owner(tgid), process=tgid):
                self._look_at(tgid, process, identity, mappings, is_new=is_new)
        except OverBudgetError as error:
            self.skipped[tgid] = str(error)
            self._known.setdefault(tgid, None)
            self._later.drop(tgid)

    def _look_at(
        self,
        tgid: int,
        process: int,
        identity: int,
        mappings: list[Mapping] | None,
        *,
        is_new: bool,
    ) -> None:
        language = ""
        try:
            python = find_python(tgid, self._files, mappings)
            if python is None:
                language = script_language(tgid, mappings)
                script = _find_script(language, tgid, mappings)
                if script is not None:
                    self._later.drop(tgid)
                    self.skipped.pop(tgid, None)
                    self._put(tgid, process, identity, script, None)
                    return
        except (KernelError, NotSupportedError) as error:
            self.skipped[tgid] = str(error)
            python = None
        if python is None:
            self._known.setdefault(tgid, None)
            if language == "ruby" or (tgid not in self.skipped and runs_python(tgid)):
                # its library is not mapped yet, or runs nothing yet
                self._look_later(tgid, process, identity)
            else:
                self._later.drop(tgid)
            return
        slot = _slot(python)
        if python.is_stuck:
            self.skipped[tgid] = STUCK
            self._known.setdefault(tgid, None)
            self._later.drop(tgid)
            python.close()
            return
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
        """Publish a child that runs its parent's program: no sample of it may ever be missed."""
        interpreter = self._known.get(parent)
        is_met = child in self._known and child not in self._executed
        if interpreter is None or is_met or parent in self._executed:
            return
        self._executed.discard(child)
        try:
            python = interpreter.process.in_child(child)
        except KernelError as error:
            self.skipped[child] = str(error)
            return
        if python is not None:
            self._inherited.add(child)
            self._identities.pop(child, None)
            self._put(child, child, 0, python, interpreter.slot)

    def _put(
        self,
        tgid: int,
        process: int,
        identity: int,
        python: PythonProcess | ScriptProcess,
        slot: ThreadSlot | None,
    ) -> None:
        """Publish an interpreter; it is closed with the program that runs it."""
        interpreter = Interpreter(
            tgid,
            python.version,
            python.loop,
            python.path,
            program_path(tgid),
            python,
            slot,
        )
        self._generation += 1
        if isinstance(python, ScriptProcess):
            packed = python.pack(identity, self._generation)
        else:
            assert slot is not None
            packed = _pack(python, slot, identity, self._generation)
        if self._tasks is not None and isinstance(
            python, PythonProcess
        ):  # first: no sample has the one without the other
            self._tasks.publish(tgid, process, self._generation, python)
        try:
            bpf.map_update_elem(self._table.fileno(), process.to_bytes(4, "little"), packed)
        except KernelError as error:
            python.close()
            if self._tasks is not None:
                self._tasks.forget(self._generation)
            if error.errno != errno.E2BIG:
                raise
            self.skipped[tgid] = f"{_MOST_PROCESSES} processes with an interpreter run already"
            return
        if tgid in self._published:
            self._over.append((tgid, self._published[tgid][1]))
        self._published[tgid] = process, self._generation
        if python.is_free_threaded:
            self._free_threaded[tgid] = ".".join(map(str, python.version))
        else:
            self._free_threaded.pop(tgid, None)
        self._known[tgid] = self.by_generation[self._generation] = interpreter

    def look_for_tasks(self, generation: int) -> None:
        """Look again for asyncio's tasks in a process that runs asyncio."""
        interpreter = self.by_generation.get(generation)
        if self._tasks is None or interpreter is None or not self._tasks.is_waiting(generation):
            return
        for tgid, (process, last) in self._published.items():
            if last == generation:
                if not isinstance(interpreter.process, PythonProcess):
                    return
                with (
                    suppress(OverBudgetError),
                    self._budget.on_behalf(run="", user=proc.owner(tgid), process=tgid),
                ):
                    self._tasks.publish(tgid, process, generation, interpreter.process)
                return

    def _look_later(self, tgid: int, process: int, identity: int) -> None:
        self._later.add(tgid, process, identity)
        self._unsure.add(tgid)

    def feed(self, record: object) -> None:
        """Read a record of a process, as `SideBand` reports it."""
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
        """Seconds until `look_again` is due, with or without records."""
        return self._later.next_s()

    def look_again(self) -> None:
        """Look again at processes that had just started, and at forked ones."""
        for tgid, process, identity in self._later.due():
            self._look_later(tgid, process, identity)  # or `publish` drops it
            self.publish(tgid, process, identity, is_due=True)
        forked, self._forked = self._forked, {}
        for child, parent in forked.items():
            self._inherit(parent, child)

    def take_ended(self) -> list[tuple[int, int]]:
        """The programs that have ended, for `forget`: (tgid, generation)."""
        over, self._over = self._over, []
        return over

    def forget(self, tgid: int, generation: int) -> None:
        """Give up the place and the memory of a program that has ended, as `take_ended` gave it.

        All names that it sent must have been read.
        """
        ended = self.by_generation.pop(generation, None)
        if ended is not None:
            ended.process.close()
        if self._tasks is not None:
            self._tasks.forget(generation)
        process, last = self._published.get(tgid, (0, 0))
        if last == generation:
            del self._published[tgid]
            with suppress(KernelError):  # ENOENT
                bpf.map_delete_elem(self._table.fileno(), process.to_bytes(4, "little"))

    def forget_but(self, keep: Container[int]) -> None:
        """Forget the facts about processes that are gone."""
        gone = {*self._known, *self.skipped} - self._published.keys()
        for tgid in gone:
            if tgid not in keep:
                self._known.pop(tgid, None)
                self.skipped.pop(tgid, None)
                self._free_threaded.pop(tgid, None)
        self._executed &= self._known.keys()  # the others are new anyway
        self._unsure &= self._known.keys()

    def hints(self, pids: Collection[int] | None) -> list[str]:
        """Return the reasons why some of the processes with an interpreter have no Python
        frames; None: all.
        """
        skipped = self.skipped.items()
        reasons = {why: pid for pid, why in skipped if pids is None or pid in pids}
        return [f"process {pid} has native frames only: {why}" for why, pid in reasons.items()]

    def without_gil(self, sampled: Container[int]) -> list[str]:
        """Return the processes that --gil leaves out, one of each version.

        Args:
            sampled: those with samples: PYTHON_GIL=1 gives a free-threaded build a GIL.
        """
        free = {version: pid for pid, version in self._free_threaded.items() if pid not in sampled}
        return [
            f"--gil leaves process {pid} out: its CPython {version} is built without a GIL"
            for version, pid in free.items()
        ]

    def close(self) -> None:
        """Close the memories; again is harmless."""
        for interpreter in self.by_generation.values():
            interpreter.process.close()


def _find_script(language: str, tgid: int, mappings: list[Mapping] | None) -> ScriptProcess | None:
    """The PHP or the Ruby of a process; None: it has ended, or runs nothing yet, or neither."""
    if language == "php":
        from purebpf.observe.runtimes.php.php_process import find_php

        return find_php(tgid, mappings)
    if language == "ruby":
        from purebpf.observe.runtimes.ruby.ruby_process import find_ruby

        return find_ruby(tgid, mappings)
    return None


def _slot(python: PythonProcess) -> ThreadSlot | None:
    """Return the place of its threads' state; None while there is none."""
    reading = python.look()
    few = reading.compared  # a thread that starts or ends may not have it
    slot = find_slot(reading.memory, few) or find_slot(reading.memory, few[-1:])
    distance = python.pointer_distance(reading)
    return None if slot is None or distance is None else slot._replace(distance=distance)


def _pack(python: PythonProcess, slot: ThreadSlot, identity: int, generation: int) -> bytes:
    """The struct python_process."""
    layout = python.layout
    style = 0 if python.version < (3, 11) else 1 if python.version < (3, 12) else 2
    name = layout.code_name if layout.code_qualname == NONE else layout.code_qualname
    code = (
        *(layout.code_filename, name, layout.code_first_line, layout.code_version),
        layout.code_lines,
    )
    code_start = min(field for field in code if field != NONE)
    frame = (layout.frame_code, layout.frame_previous, layout.frame_instruction)
    frame_end = max(*frame, layout.frame_owner) + _POINTER  # of which a flag is less
    fields = (
        *(layout.thread_id, layout.frame, layout.current),
        *(*frame, layout.frame_owner, min(layout.frame_size, frame_end)),
        *(code_start, *(field - code_start for field in code)),
        *(max(code) + _POINTER - code_start, layout.code_bytes),
        *(layout.ascii_size, layout.compact_size, layout.string_length, layout.string_state),
        *(layout.bytes_length, layout.bytes_data, layout.thread_interpreter),
        *(layout.gil_size, layout.gil_locked, layout.gil_holder, layout.gil_in_interpreter),
        layout.threads,
        python.runtime + layout.gil_in_runtime if layout.gil_in_runtime != NONE else 0,
        python.main_interpreter(),
        *(layout.thread_next, slot.distance, layout.frame_tlbc, layout.code_tlbc),
        layout.string_shift,
    )
    return _PROCESS.pack(
        *(identity, generation, slot.offset, max(0, slot.inner), slot.inner >= 0),
        *(layout.current != NONE, style, layout.code_version != NONE),
        *(max(0, field) for field in fields),
    )
