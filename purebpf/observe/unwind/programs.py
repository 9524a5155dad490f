"""`Programs`: the programs of processes, and their mappings, at the time of samples.

A copied stack is read some time after its sample. By then its process may have executed another
program, or ended, and its number may belong to another process; so every question here names a
process and a time. The methods report the records, in the order of time; without them, the mappings
are /proc's at the time of reading.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, KeysView

from purebpf.errors import KernelError
from purebpf.observe.symbols.process_maps import read_maps
from purebpf.observe.unwind.code_files import CodeFiles
from purebpf.observe.unwind.native_machine import native_machine
from purebpf.symbols.address_spaces import Earlier
from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.syscall import host_clock, proc
from purebpf.tuples import NamedTuple
from purebpf.unwind.address_space import AddressSpace
from purebpf.unwind.machine import I386, X86_64, Machine
from purebpf.unwind.shared_rules import SharedRules
from purebpf.unwind.unwinder import MAX_FRAMES, Unwinder

__all__ = ["EarlierLookup", "Met", "Program", "Programs", "live_mappings"]

_MOST_RUNNING = 4096
_MOST_ENDED = 512
_MOST_BEGUN = 1 << 16
_MOST_OVER = 1 << 13
_MOST_SHARED_AT_REST = 1 << 13
"""Addresses with rules: some 2 MB."""
_NOW = 1 << 64
_TICK_NS = 10**7
"""USER_HZ is 100 on every machine: proc_pid_stat(5), starttime."""


EarlierLookup = Callable[[int, int], Earlier | None]
"""What a process had mapped at a time; `AddressSpaces.earlier` is one."""


class Program(NamedTuple):
    """An address space and its unwinders. Times are CLOCK_MONOTONIC, in ns.

    Attributes:
        unwinder, compat: of its stacks; of those of 32-bit code on x86-64.
        since_ns: when the process executed it, or was forked, or mapped the last of `space`; 0: not
            known.
        read_ns: the mappings are of that time.
    """

    space: AddressSpace
    unwinder: Unwinder
    compat: Unwinder | None
    since_ns: int
    read_ns: int


class Met(NamedTuple):
    """A process that has a sample.

    Attributes:
        is_over: it has ended since, or executed something else.
        mappings: its executable mappings, if they were just read from /proc, and are not empty.
    """

    is_over: bool
    mappings: list[Mapping] | None = None


class _Ended(NamedTuple):
    """A program that a process executed, with those mappings, `until_ns`."""

    program: Program
    until_ns: int


def live_mappings(pid: int) -> Iterable[Mapping]:
    """The executable mappings of a process in /proc; none when it is gone, or not ours to read."""
    try:
        return parse_maps(read_maps(pid) or "")
    except KernelError:
        return ()


class Programs:
    """Programs by process: 4096 that run, and the last 512 that ended.

    Args:
        files: the mapped files.
        mappings: returns the present executable mappings of a process; empty when it is gone.
        earlier: returns the mappings of a process at a time; for processes that are gone.
        catch_up: calls the methods below for all records up to now.
        max_frames: how long a trace can be.
    """

    def __init__(
        self,
        files: CodeFiles,
        mappings: Callable[[int], Iterable[Mapping]] = live_mappings,
        *,
        earlier: EarlierLookup | None = None,
        catch_up: Callable[[], object] | None = None,
        max_frames: int = MAX_FRAMES,
    ) -> None:
        self._files = files
        self._mappings = mappings
        self._earlier = earlier
        self._catch_up = catch_up
        self._max_frames = max_frames
        self._running: dict[int, Program] = {}
        self._ended: dict[int, _Ended] = {}
        self._begun: dict[int, int] = {}
        self._over: set[int] = set()
        self._shared = SharedRules()
        self._mapped: dict[int, list[tuple[int, Mapping]]] = {}
        self._just_read: list[Mapping] | None = None

    # What happened

    def forked(self, parent: int, child: int, time_ns: int) -> None:
        """Handle a new process, with the mappings of its parent."""
        self._end(child, time_ns)
        self._begin(child, time_ns)
        self._over.discard(child)
        program = self._running.get(parent)
        if program is not None and program.since_ns <= time_ns:
            self._keep(child, program._replace(since_ns=time_ns))
            if parent in self._mapped:
                self._mapped[child] = self._mapped[parent].copy()

    def executed(self, tgid: int, time_ns: int) -> None:
        """A process executes another program: all mappings are new."""
        self._end(tgid, time_ns)
        self._begin(tgid, time_ns)

    def exited(self, tgid: int, time_ns: int) -> None:
        """A process ended; its number may be used again."""
        self._end(tgid, time_ns)
        self._begun.pop(tgid, None)
        if len(self._over) >= _MOST_OVER:
            self._over.clear()
        self._over.add(tgid)

    @property
    def followed(self) -> Container[int]:
        """Processes whose next mapping matters: their other mappings are stored."""
        return self._running

    @property
    def running_now(self) -> KeysView[int]:
        """The same, as a set."""
        return self._running.keys()

    def mapped(self, tgid: int, time_ns: int, mapping: Mapping) -> None:
        """A process mapped code, over whatever was there."""
        program = self._running.get(tgid)
        if program is not None and program.read_ns < time_ns:
            self._mapped.setdefault(tgid, []).append((time_ns, mapping))

    def forget(self, tgid: int) -> None:
        """Read the mappings of a process again with its next copy."""
        self._running.pop(tgid, None)
        self._mapped.pop(tgid, None)

    # What was there

    @property
    def remapped(self) -> list[int]:
        """Processes that mapped code since they were last asked about."""
        return list(self._mapped)

    def running(self, tgid: int, time_ns: int = _NOW) -> Program | None:
        """Return the program of a process by all records up to a time.

        None if it was not asked about before.
        """
        program, mapped = self._running.get(tgid), self._mapped.get(tgid, [])
        if program is None or not mapped or mapped[0][0] > time_ns:
            return program
        mapped_ns = mapped[0][0]
        count = sum(at_ns <= time_ns for at_ns, _ in mapped)
        newer = [self._files.mapping(mapping, tgid) for _, mapping in mapped[:count]]
        del mapped[:count]
        if not mapped:
            del self._mapped[tgid]
        self._keep_ended(tgid, _Ended(program, mapped_ns))
        program = self._program(program.space.overlaid(newer), mapped_ns, program.read_ns)
        self._running[tgid] = program
        return program

    def meet(self, tgid: int, time_ns: int) -> Met:
        """Find the program of a process at a time. Raises as `at`."""
        self._just_read = None
        self.at(tgid, time_ns)
        mappings, self._just_read = self._just_read, None
        return Met(self._has_ended(tgid, time_ns), mappings or None)

    def at(self, tgid: int, time_ns: int) -> Program | None:
        """Return the program of a process at a time; None if it is gone and unknown.

        Raises:
            OverBudgetError: reading the headers of its files costs too much.
        """
        program = self.running(tgid, time_ns)
        if program is not None and program.since_ns <= time_ns:
            return program
        ended = self._ended.get(tgid)
        if ended is not None and ended.program.since_ns <= time_ns < ended.until_ns:
            return ended.program
        return self.read(tgid, time_ns)

    def read(self, tgid: int, time_ns: int) -> Program | None:
        """The same, from /proc if it is still there. Raises as `at` does."""
        if self._earlier is not None and self._is_over(tgid, time_ns):
            return self._read_earlier(tgid, time_ns, self._earlier)
        read_ns = host_clock.monotonic_ns()
        space = None
        if not _began_after(tgid, time_ns):
            self._just_read = list(self._mappings(tgid))
            space = self._space(tgid, self._just_read)
        if self._catch_up is not None:
            self._catch_up()
        since_ns = self._begun.get(tgid, 0)
        if space is not None and since_ns <= time_ns:
            self._mapped.pop(tgid, None)
            return self._keep(tgid, self._program(space, since_ns, read_ns))
        return None if self._earlier is None else self._read_earlier(tgid, time_ns, self._earlier)

    def _is_over(self, tgid: int, time_ns: int) -> bool:
        """Return True if a process's program at a time has ended, so that /proc need not be
        read.
        """
        if self._catch_up is not None:
            self._catch_up()
        return self._has_ended(tgid, time_ns)

    def _has_ended(self, tgid: int, time_ns: int) -> bool:
        return tgid in self._over or self._begun.get(tgid, 0) > time_ns

    def _read_earlier(self, tgid: int, time_ns: int, find: EarlierLookup) -> Program | None:
        earlier = find(tgid, time_ns)
        space = self._space(tgid, earlier.mappings) if earlier else None
        if earlier is None or space is None:
            return None
        program = self._program(space, earlier.since, time_ns)
        self._keep_ended(tgid, _Ended(program, earlier.until))
        return program

    def _space(self, tgid: int, mappings: Iterable[Mapping]) -> AddressSpace | None:
        code_mappings = [self._files.mapping(mapping, tgid) for mapping in mappings]
        return AddressSpace(code_mappings) if code_mappings else None

    def _program(self, space: AddressSpace, since_ns: int, read_ns: int) -> Program:
        machine = native_machine()
        native = self._unwinder(machine, space)
        compat = self._unwinder(I386, space) if machine is X86_64 else None
        return Program(space, native, compat, since_ns, read_ns)

    def _unwinder(self, machine: Machine, space: AddressSpace) -> Unwinder:
        frames, shared = self._max_frames, self._shared
        return Unwinder(machine, space, self._files.find, max_frames=frames, shared=shared)

    def _keep(self, tgid: int, program: Program) -> Program:
        self._running.pop(tgid, None)
        if len(self._running) >= _MOST_RUNNING:
            self.forget(next(iter(self._running)))
        self._running[tgid] = program
        return program

    def _begin(self, tgid: int, time_ns: int) -> None:
        if len(self._begun) >= _MOST_BEGUN:
            self._begun.clear()
        self._begun[tgid] = time_ns

    def _end(self, tgid: int, time_ns: int) -> None:
        program = self._running.pop(tgid, None)
        self._mapped.pop(tgid, None)
        if program is not None and program.since_ns < time_ns:
            self._keep_ended(tgid, _Ended(program, time_ns))

    def _keep_ended(self, tgid: int, ended: _Ended) -> None:
        self._ended.pop(tgid, None)
        if len(self._ended) >= _MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        self._ended[tgid] = ended

    def rest(self) -> None:
        """Forget programs that ended, and the memory of unwinders except for the shared part."""
        self._ended.clear()
        self._over.clear()
        if len(self._shared) > _MOST_SHARED_AT_REST:
            self._shared.clear()
        for program in self._running.values():
            program.unwinder.rest()
            if program.compat is not None:
                program.compat.rest()

    def clear(self) -> None:
        """Forget everything."""
        for table in (self._running, self._ended, self._begun, self._mapped, self._shared):
            table.clear()
        self._over.clear()


def _began_after(tgid: int, time_ns: int) -> bool:
    """Return True if the process that has a number now began after a time, as far as /proc
    tells.
    """
    ticks = proc.start_ticks(tgid)
    if ticks is None:
        return True
    asleep_ns = host_clock.boottime_ns() - host_clock.monotonic_ns()
    return ticks * _TICK_NS > time_ns + asleep_ns
