"""`TableFiller`: publishes tables that the walk in BPF lacked, and follows processes for it."""

from __future__ import annotations

import time
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence

from purebpf.closable import Closing
from purebpf.loader.rings.record_types import RecordMap
from purebpf.observe.unwind.file_tables import WHOLE, Missing, TableFile
from purebpf.observe.unwind.live_frames import follow_live_frames
from purebpf.observe.unwind.process_records import feed
from purebpf.observe.unwind.process_stacks import ProcessStacks
from purebpf.observe.unwind.walk_tables import WalkTables
from purebpf.symbols.budget import OverBudgetError
from purebpf.symbols.proc_maps import Mapping as CodePlace
from purebpf.syscall import proc
from purebpf.tuples import NamedTuple
from purebpf.unwind.address_space import AddressSpace
from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.identity import forked_identity, is_child_of, is_older
from purebpf.unwind.machine import CALL_BYTES, ends_in_call

__all__ = ["TableFiller", "WalkEnd"]

_WORD = (1 << 64) - 1
_SLICE_S = 0.005
_MOST_PROCESSES = 4096
"""Of which it is remembered what they execute."""
_MOST_PREPARED = 4096
"""Files of which it is remembered that they were built ahead."""


class WalkEnd(NamedTuple):
    """The end of a walk in BPF.

    Attributes:
        pc: an address of code; a return address unless `is_exact`.
        fp: the frame pointer there; 0: not known.
    """

    pc: int
    fp: int
    is_exact: bool


class _Process(NamedTuple):
    """A process, as BPF knows it.

    Attributes:
        identity: its program, as the walk sends it.
        is_forked: that is not known exactly, see `forked_identity`.
        number: in the initial pid namespace.
        space: the mappings that were published.
    """

    identity: int
    is_forked: bool = False
    number: int = 0
    space: AddressSpace | None = None


class _Fork(NamedTuple):
    """A process that another one made; most end, or execute something, before `update`."""

    parent: int
    published: _Process
    time_ns: int


class _Job(NamedTuple):
    """Building something, in slices, on account of a process."""

    tgid: int
    slices: Iterator[None]


class TableFiller(Closing):
    """Publishes mappings and rules as stacks miss them.

    A follower of processes reports their records (`feed`, or `forked` to `mapped`), so that the
    tables are right before a walk misses something, and as small as can be. Without that they are
    filled as they are missed. Numbers of processes are from our pid namespace, times
    CLOCK_MONOTONIC in ns; all methods raise KernelError if a table cannot be filled.

    Args:
        maps: the object's maps, by name; they must stay open.
        stacks: knows the processes and their files.

    Attributes:
        tables: the published tables.
    """

    def __init__(self, maps: Mapping[str, RecordMap], stacks: ProcessStacks) -> None:
        self._stacks = stacks
        self._processes: dict[int, _Process] = {}
        self._forked: dict[int, _Fork] = {}
        self._jobs: dict[Missing, _Job] = {}
        self._rests: dict[Missing, _Job] = {}  # can wait
        self._ahead: dict[Missing, _Job] = {}  # when nothing else is to be done
        self._prepared: set[Hashable] = set()
        self._gets_ready = False
        self._has_numbers = proc.in_first_pid_namespace()
        self.tables = WalkTables(maps)

    # What processes do

    def forked(self, parent: int, child: int, time_ns: int) -> None:
        """Handle a new process, with the mappings of its parent; `update` publishes it."""
        self._withdraw(child)
        self._stacks.forked(parent, child, time_ns)
        waits = self._forked.get(parent)
        published = waits.published if waits else self._processes.get(parent)
        if published is not None and published.space is not None and self._has_numbers:
            self._forked[child] = _Fork(parent, published, time_ns)

    def executed(self, tgid: int, time_ns: int) -> None:
        """A process executes another program."""
        self._withdraw(tgid)
        self._stacks.executed(tgid, time_ns)

    def exited(self, tgid: int, time_ns: int) -> None:
        """A process ended."""
        self._withdraw(tgid)
        self._stacks.exited(tgid, time_ns)

    @property
    def followed(self) -> Container[int]:
        """Processes whose later mappings `mapped` must receive."""
        return self._stacks.followed

    def mapped(self, tgid: int, time_ns: int, mapping: CodePlace) -> None:
        """A process mapped code; `update` publishes it."""
        self._stacks.mapped(tgid, time_ns, mapping)

    def feed(self, record: object) -> None:
        """The same by a record of `purebpf.wire.perf_records`; others are ignored."""
        feed(self, record)

    # What is published

    def check_identity(self, tgid: int, identity: int) -> bool:
        """Check that a walk belongs to the present program of its process, by all records.

        Forgets the facts about a process that has executed another program since, or about an
        earlier one with its number.

        Args:
            tgid: in our pid namespace.
            identity: of the program that it executed.
        """
        published = self._processes.get(tgid)
        if published is not None:
            if published.identity == identity:
                return True
            if published.is_forked and is_child_of(identity, published.identity):
                self._processes[tgid] = published._replace(identity=identity, is_forked=False)
                return True
            if is_older(identity, published.identity):
                return False
            self._withdraw(tgid)
            self._stacks.forget(tgid)
        self._keep(tgid, _Process(identity))
        return True

    def update(self) -> None:
        """Publish the mappings of processes since their last publication."""
        forks, self._forked = self._forked, {}
        for child, fork in forks.items():
            self._publish_fork(child, *fork)
        for tgid in self._stacks.remapped:
            published = self._processes.get(tgid)
            try:
                with self._stacks.on_behalf(tgid):
                    space = self._stacks.space(tgid)
                    if space is None:
                        continue
                    if published is not None and published.space is not None:
                        self._publish_space(tgid, published, space)
                    elif self._gets_ready:
                        self._plan(tgid, space)
            except OverBudgetError:
                self._stacks.forget(tgid)

    def _publish_fork(self, child: int, parent: int, before: _Process, time_ns: int) -> None:
        """Publish a child, unless it is published by now, or its parent has changed since then."""
        now = self._processes.get(parent)
        if now is None or now.space is not before.space or child in self._processes:
            return
        identity = forked_identity(now.identity, time_ns)
        self.tables.fork(now.number, child, identity)
        self._keep(child, now._replace(identity=identity, is_forked=True, number=child))

    def publish(
        self,
        tgid: int,
        process: int,
        identity: int,
        frames: Sequence[int],
        *,
        confirms: bool = False,
    ) -> bool:
        """Publish the mappings for a walk of these frames; `work` builds the remaining parts.

        Args:
            tgid: in our pid namespace.
            process: the same in the initial one.
            identity: of the program that it executed.
            frames: of the stack, as `Unwinder.unwind` gives them.
            confirms: that calls have left them, see `WalkTables.confirm_call`.

        Returns:
            False: the process, or that program, is over.
        """
        published = self._processes.get(tgid)
        if published is None or published.identity != identity:
            return False
        try:
            with self._stacks.on_behalf(tgid):
                space = self._stacks.space(tgid)
                if space is None:
                    return False
                if published.space is not space:
                    self._publish_space(tgid, published._replace(number=process), space)
                self._want(tgid, space, frames, confirms=confirms)
        except OverBudgetError:
            pass
        return True

    def publish_end(self, tgid: int, process: int, identity: int, end: WalkEnd) -> None:
        """Publish the rules at the address where a walk ended for lack of them.

        The address may be on a stack of which there is no copy. The next walk would end one frame
        later, so the addresses to which frame pointers lead from there are published, too.

        Args:
            tgid: as of `publish`, and so are the next two.
            process: the number of the process.
            identity: its program.
            end: where the walk ended.
        """
        ahead = follow_live_frames(tgid, end.fp)
        address = end.pc - (not end.is_exact) & _WORD
        self.publish(tgid, process, identity, (address, *ahead))

    def get_ready(self, tgid: int, time_ns: int) -> None:
        """Have `work_ahead` build the rules of all files of a process.

        The same for each process that is published from now on: its next stacks may run through
        any of its files, and may be too many to be copied.

        Args:
            tgid: in our pid namespace.
            time_ns: when it is known to live.
        """
        self._gets_ready = True
        try:
            with self._stacks.on_behalf(tgid):
                space = self._stacks.space_at(tgid, time_ns)
        except OverBudgetError:
            return
        if space is not None:
            self._plan(tgid, space)

    def _plan(self, tgid: int, space: AddressSpace) -> None:
        if len(self._prepared) >= _MOST_PREPARED:
            self._prepared.clear()
        for mapping in space.mappings:
            if mapping.file is not None and mapping.file not in self._prepared:
                self._prepared.add(mapping.file)
                job = _Job(tgid, self._build_ahead(mapping.file))
                self._ahead[Missing(mapping.file, WHOLE)] = job

    def _build_ahead(self, key: Hashable) -> Iterator[None]:
        cfi = self._stacks.file(key)  # it may have been closed in between
        if cfi is not None:
            yield from self.tables.files.build_ahead(key, cfi)

    def learn(self, tgid: int, time_ns: int, frames: Sequence[int]) -> None:
        """Build the rules of files that a process had which is over, for others that map them.

        Args:
            tgid: in our pid namespace.
            time_ns: when it had the stack.
            frames: as of `publish`.
        """
        files = self.tables.files
        if not files.serves_new_processes:
            return
        try:
            with self._stacks.on_behalf(tgid):
                space = self._stacks.space_at(tgid, time_ns)
                if space is None:
                    return
                used: dict[Hashable, TableFile] = {}
                for frame in frames:
                    mapping = space.find(frame - 1)
                    if mapping is not None and mapping.file and mapping.file not in used:
                        cfi = self._stacks.file(mapping.file)
                        file = files.use(mapping.file, cfi) if cfi else None
                        if file is not None:
                            used[mapping.file] = file
                self._want(tgid, space, frames, confirms=False)
                files.leave(used)
        except OverBudgetError:
            return

    def _publish_space(self, tgid: int, published: _Process, space: AddressSpace) -> None:
        identity, is_forked, number, _ = published
        self.tables.publish(number, identity, space, self._stacks.file, is_forked=is_forked)
        self._processes[tgid] = published._replace(space=space)
        if self._gets_ready:
            self._plan(tgid, space)

    def _want(
        self, tgid: int, space: AddressSpace, frames: Sequence[int], *, confirms: bool
    ) -> None:
        files = self.tables.files
        for number, frame in enumerate(frames):
            address = frame - bool(number)
            mapping = space.find(address)
            cfi = self._stacks.file(mapping.file) if mapping and mapping.file else None
            if mapping is not None and cfi is not None:
                own = address - mapping.bias & _WORD
                missing = files.missing(mapping.file, cfi, own)
                if missing is not None and missing not in self._jobs:
                    self._jobs[missing] = _Job(tgid, files.build(missing, cfi))
                rest = files.missing_rest(mapping.file, cfi) if missing is not None else None
                if rest is not None:
                    self._rests[rest] = _Job(tgid, files.build(rest, cfi))
                if confirms and number:
                    self._confirm(mapping.file, cfi, own)

    def _confirm(self, key: Hashable, cfi: CfiFile, address: int) -> None:
        """Mark code that the walk could not see, before the address that follows or begins a
        function.
        """
        before = cfi.code(address - CALL_BYTES, CALL_BYTES)
        function = cfi.function(address)
        is_start = function is not None and function.start == address
        if is_start and before and cfi.machine and not ends_in_call(before, cfi.machine):
            self.tables.files.confirm_call(key, address, is_entry=True)
        else:
            self.tables.files.confirm_call(key, address + 1)

    def work(self, seconds: float = _SLICE_S) -> bool:
        """Build missing parts for a CPU time; return True if there is more to do.

        Rings are to be read in between: a large file takes many slices.
        """
        deadline = time.thread_time() + seconds
        while jobs := self._jobs or self._rests:
            if self._work_until(deadline, jobs):
                break
        return bool(self._jobs or self._rests)

    def work_ahead(self, seconds: float = _SLICE_S) -> bool:
        """Build the files of `get_ready` for a CPU time; return True if there are more."""
        deadline = time.thread_time() + seconds
        while self._ahead and not self._work_until(deadline, self._ahead):
            pass
        return bool(self._ahead)

    def _work_until(self, deadline: float, jobs: dict[Missing, _Job]) -> bool:
        """Work on the first of the jobs; return True if the time is over."""
        missing, job = next(iter(jobs.items()))
        try:
            with self._stacks.on_behalf(job.tgid):
                for _ in job.slices:
                    if time.thread_time() >= deadline:
                        return True
        except OverBudgetError:
            pass
        del jobs[missing]
        self._read_later(job.tgid)
        return time.thread_time() >= deadline

    def _read_later(self, tgid: int) -> None:
        """Have the code read that a job left; it can wait."""
        files = self.tables.files
        for missing, cfi in files.unread.items():
            self._rests[missing] = _Job(tgid, files.build(missing, cfi))
        files.unread.clear()

    def rest(self) -> None:
        """Drop data that can be read again, and files that no process has had mapped since the last
        call.

        And processes with a copy that came after their end: no record will report the end.
        """
        running = self._stacks.followed
        for tgid in [tgid for tgid in self._processes if tgid not in running]:
            self._withdraw(tgid)
        jobs = (*self._jobs, *self._rests, *self._ahead)
        self._stacks.rest({missing.key for missing in jobs})
        self.tables.rest()

    def _keep(self, tgid: int, process: _Process) -> None:
        if len(self._processes) >= _MOST_PROCESSES and tgid not in self._processes:
            self._withdraw(next(iter(self._processes)))
        self._processes[tgid] = process

    def _withdraw(self, tgid: int) -> None:
        self._forked.pop(tgid, None)
        published = self._processes.pop(tgid, None)
        if published is not None and published.space is not None:
            self.tables.withdraw(published.number)

    def close(self) -> None:
        """Unmap the tables; programs keep theirs. Again is harmless."""
        self.tables.close()
