"""Address spaces over time: the mapped files of each process, by address and time.

Fed by /proc/PID/maps texts and by the MMAP2, COMM, FORK and EXIT records of perf events, it keeps
answering after a process has executed another program or has exited, when /proc no longer does.

A process is a row of generations, one a program it executed. A child starts with its parent's
mappings, by reference: neither side copies until it maps something new. A mapping is 32 bytes and
each file is stored once, so that a machine full of short-lived shells stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, KeysView
from itertools import count
from typing import Any

from purebpf.symbols.frame import Address, FileOffset
from purebpf.symbols.proc_maps import MappedFile, Mapping, mapped_file, parse_maps
from purebpf.symbols.process_history import (
    LAST,
    ROW_FIELDS,
    Generation,
    MappingRow,
    ProcessHistory,
)
from purebpf.tuples import NamedTuple
from purebpf.wire.perf_records import Comm, Exit, Fork, Mmap, Mmap2

__all__ = ["AddressSpaces", "Earlier", "MappedCode", "code_of"]

_PROT_EXEC = 4
_KERNEL = 0xFFFFFFFF  # the pid of the kernel's own mappings
_KEEP_EXITED = 8192
_KEEP_FILES = 4096
_ASIDE = 1 << 40
"""Numbers above are no processes: see `AddressSpaces.keep_aside`."""
_ANCESTORS = 4
"""Of a process, that `Symbolizer` asks for: their mount namespaces may have its files."""


class Earlier(NamedTuple):
    """The mappings of a process from `since` up to `until`, by address."""

    mappings: list[Mapping]
    since: int
    until: int


class MappedCode(NamedTuple):
    """A process mapped code: an `Mmap2` record of it, with the file that many such share."""

    pid: int
    start: int
    end: int
    offset: int
    file: MappedFile
    time: int

    @property
    def mapping(self) -> Mapping:
        """The file or memory that was mapped."""
        start, end = Address(self.start), Address(self.end)
        return Mapping(start, end, FileOffset(self.offset), self.file)


class AddressSpaces:
    """The executable mappings of processes, now and earlier.

    Args:
        keep_exited: processes to remember after their exit; more than that, and the one that
            exited first is forgotten.

    Attributes:
        forgotten: how many processes were.
        since: the begin of the time that questions are about, on the clock of the records, in ns.
        unread: processes whose records have not been decoded yet. `read` decodes the records of one
            process; it is called before any answer about that process.
    """

    def __init__(self, *, keep_exited: int = _KEEP_EXITED) -> None:
        self.forgotten = 0
        self.since = 0
        self.unread: Container[int] = ()
        self.read: Callable[[int], object] = bool
        self._keep_exited = keep_exited
        self._processes: dict[int, ProcessHistory] = {}
        self._versions = count(1)  # no two processes have one, not even of the same number
        self._exited: dict[int, None] = {}  # in the order of their exit
        self._leaving: dict[int, int] = {}  # those of the last `forget_exited`, by version
        self._files: list[MappedFile] = []
        self._numbers: dict[MappedFile, int] = {}
        self._free: list[int] = []  # numbers of files that no process has or had mapped any more
        self._most_files = _KEEP_FILES
        self._handlers: dict[type, Callable[[Any], None]] = {
            Mmap: self._on_mmap,
            Mmap2: self._on_mmap,
            MappedCode: self.add_code,
            Comm: self._on_comm,
            Fork: self._on_fork,
            Exit: self._on_exit,
        }

    def __repr__(self) -> str:
        return f"AddressSpaces({len(self._processes)} processes)"

    def snapshot(self, pid: int, maps_text: str, comm: str = "", time: int = 0) -> None:
        """Take in a /proc/PID/maps text.

        Args:
            pid: the process (thread group).
            maps_text: all of the file.
            comm: its name, from /proc/PID/comm.
            time: when it was read, in ns on the clock of the records. Records that are older add
                nothing. 0: unknown, so every record counts.
        """
        self._known(pid)
        process = self._process(pid)
        process.since = max(process.since, time)
        rows = [self._row(mapping) for mapping in parse_maps(maps_text)]
        known = process.generations[-1]
        if known.mappings and rows and not any(known.find(row.start) == row for row in rows):
            process.begin(Generation(()))  # not one mapping in common: it executed something
        current = process.generations[-1]
        fresh = [row for row in rows if current.find(row.start) != row]
        for row in fresh:
            current.add(row, time)
        current.name(comm)
        if fresh:
            process.change()

    def feed(self, record: object) -> None:
        """Take in a record of `purebpf.wire.perf_records`; those about other things are ignored.

        Records of one process must come in the order of their times.
        """
        handler = self._handlers.get(type(record))
        if handler is not None:
            handler(record)

    def find(self, pid: int, address: int, comm: str | None = None) -> Mapping | None:
        """Return the mapping at an address of a process, also if it is gone since.

        Args:
            pid: the process (thread group).
            address: in its address space.
            comm: the name of the thread that used the address; generations with this name are
                searched first, then all of them, the newest first.
        """
        process = self._known(pid)
        if process is None:
            return None
        for generation in process.by_likelihood(comm):
            record = generation.find(address)
            if record is not None:
                return self._mapping(record)
        return None

    def span(self, pid: int, address: int, comm: str | None = None) -> tuple[int, int] | None:
        """Return the range around an address that `find` maps to the same file; None: unknown."""
        process = self._known(pid)
        generation = next(process.by_likelihood(comm), None) if process else None
        span = generation.span(address) if generation else None
        if process is None or generation is None or span is None:
            return span
        start, end = span
        parts = [*generation.contested(self.since, self._differ).overlapping(start, end)]
        for earlier in process.with_name(comm, self.since):
            if earlier is not generation:
                parts += earlier.differing(generation, span, self._differ)
        for first, behind, _ in parts:
            if behind <= address:
                start = max(start, behind)
            elif first > address:
                end = min(end, first)
        return start, end

    def is_contested(self, pid: int, address: int, comm: str | None = None) -> bool:
        """Return True if an address showed the code of several files since `since`.

        A process may load a library where another one was, or execute a program of the same name.
        `find` answers with the last file; which one a stack passed through is not known. The
        arguments are those of `find`.
        """
        process = self._known(pid)
        for generation in process.by_likelihood(comm) if process else ():
            newest = generation.find(address)
            if newest is not None:
                break
        else:
            return False
        if generation.contested(self.since, self._differ).owner(address) >= 0:
            return True
        assert process is not None
        for earlier in process.with_name(comm, self.since):
            other = None if earlier is generation else earlier.find(address)
            if other is not None and self._differ(other, newest):
                return True
        return False

    def begin(self, since: int) -> None:
        """Questions are about a later time from now on: the next window of a long run."""
        before, self.since = self.since, since
        for process in self._processes.values():
            contested = [each for each in process.generations if each.is_contested]
            for generation in contested:
                generation.forget_contested()
            has_executed = any(before <= each.since < since for each in process.generations[1:])
            if contested or has_executed:
                process.change()

    def replaces(self, record: Mmap | Mmap2 | Comm) -> bool:
        """Return True if a record takes addresses of its process that showed another file, or
        executes a program of the same name.
        """
        process = self._processes.get(record.pid)
        if process is None:
            return False
        if isinstance(record, Comm):
            return record.exec and record.comm in process.generations[-1].names
        mapping = code_of(record)
        if mapping is None:
            return False
        return process.generations[-1].replaces(self._row(mapping), self._differ)

    def settle(self, pid: int) -> None:
        """No stack of a process is older than its mappings so far."""
        process = self._processes.get(pid)
        if process is not None:
            process.settle()

    def keep_aside(self, pid: int) -> int:
        """Keep what is mapped now, under another number; return that."""
        process = self._process(pid)
        copy = ProcessHistory(self._versions)
        copy.parent, copy.since = process.parent, process.since
        copy.generations = [generation.child() for generation in process.generations]
        if process.settled in process.generations:
            copy.settled = copy.generations[process.generations.index(process.settled)]
        number = _ASIDE + next(self._versions)
        self._processes[number] = copy
        return number

    def earlier(self, pid: int, time: int) -> Earlier | None:
        """Return the mappings of a process at a time; None if they are unknown.

        Mappings that the same program made later are included, and hide the ranges that they cover.

        Args:
            pid: the process (thread group).
            time: on the clock of the records, in ns.
        """
        process = self._known(pid)
        until = LAST
        for generation in process.generations[::-1] if process else ():
            if generation.since <= time:
                mappings = [self._mapping(row) for row in generation.visible()]
                return Earlier(mappings, generation.since, until)
            until = generation.since
        return None

    def find_current(self, pid: int, address: int) -> Mapping | None:
        """The same of the program that the process executes now, by the records so far."""
        process = self._known(pid)
        record = process.generations[-1].find(address) if process else None
        return None if record is None else self._mapping(record)

    def files(self, pid: int) -> list[Mapping]:
        """A mapping of each file that a process has or had mapped, the newest program's first."""
        process = self._known(pid)
        rows: dict[int, MappingRow] = {}
        for generation in process.generations[::-1] if process else ():
            for row in generation.rows():
                rows.setdefault(row.file, row)
        return [self._mapping(row) for row in rows.values()]

    def knows(self, pid: int) -> bool:
        """Return True if any mapping of the process was seen."""
        process = self._known(pid)
        return process is not None and any(
            generation.mappings for generation in process.generations
        )

    def has_exited(self, pid: int) -> bool:
        """Return True if an EXIT record was seen."""
        self._known(pid)
        return pid in self._exited

    @property
    def exited(self) -> KeysView[int]:
        """Processes that have exited, by the records decoded so far."""
        return self._exited.keys()

    def forget_exited(self, keep: Container[int]) -> list[int]:
        """Forget processes that had exited at the last call already.

        So a run that goes on for days does not grow with each process that came and went unseen.

        Args:
            keep: processes of later look-ups. Their four nearest parents stay as well.

        Returns: The forgotten processes; `forgotten` does not count them.
        """
        leaving = {
            pid
            for pid, version in self._leaving.items()
            if pid in self._exited and self._processes[pid].version == version and pid not in keep
        }
        gone = sorted(leaving - self._ancestors(self._processes.keys() - leaving))
        for pid in gone:
            del self._exited[pid], self._processes[pid]
        self._leaving = {pid: self._processes[pid].version for pid in self._exited}
        if gone and len(self._numbers) > self._most_files:
            self._forget_files()
        return gone

    def note_living(self, living: Container[int]) -> None:
        """All other processes have exited: EXIT records may have been lost."""
        for pid in self._processes:
            if pid not in living:
                self._exited.setdefault(pid)

    @property
    def processes(self) -> KeysView[int]:
        """Every known process, including those that exited."""
        return self._processes.keys()

    def _ancestors(self, pids: Iterable[int]) -> set[int]:
        ancestors: set[int] = set()
        for pid in pids:
            process = self._processes[pid]
            for _ in range(_ANCESTORS):
                ancestors.add(process.parent)
                parent = self._processes.get(process.parent)
                if parent is None:
                    break
                process = parent
        return ancestors

    def _forget_files(self) -> None:
        """Give the numbers of files that no process has or had mapped to others."""
        used: set[int] = set()
        for process in self._processes.values():
            for generation in process.generations:
                used.update(generation.mappings[ROW_FIELDS - 1 :: ROW_FIELDS])
        for file, number in list(self._numbers.items()):
            if number not in used:
                del self._numbers[file]
                self._free.append(number)
        self._most_files = max(_KEEP_FILES, 2 * len(used))

    def parent(self, pid: int) -> int:
        """The process that forked it, or 0 when no FORK record said so."""
        process = self._known(pid)
        return process.parent if process else 0

    def family(self, pid: int) -> tuple[int, ...]:
        """The process and the nearest of those that forked it."""
        family = [pid]
        while len(family) < _ANCESTORS and (pid := self.parent(pid)) not in (0, *family):
            family.append(pid)
        return tuple(family)

    def version(self, pid: int) -> int:
        """A number that changes whenever an answer about the process may change."""
        process = self._known(pid)
        return process.version if process else 0

    def _known(self, pid: int) -> ProcessHistory | None:
        """Return a process, after decoding all of its records."""
        if pid in self.unread:
            self.read(pid)
        return self._processes.get(pid)

    def _process(self, pid: int) -> ProcessHistory:
        process = self._processes.get(pid)
        if process is None:
            process = self._processes[pid] = ProcessHistory(self._versions)
        return process

    def _mapping(self, row: MappingRow) -> Mapping:
        file = self._files[row.file]
        return Mapping(Address(row.start), Address(row.end), FileOffset(row.offset), file)

    def _differ(self, one: MappingRow, other: MappingRow) -> bool:
        """Return True if two overlapping mappings show different code of files."""
        if one.file != other.file:
            files = self._files[one.file], self._files[other.file]
            if not all(file.path.startswith("/") and not file.is_anonymous for file in files):
                return False
            if not _is_one_file(*files):
                return True
        return one.offset - one.start != other.offset - other.start

    def _row(self, mapping: Mapping) -> MappingRow:
        number = self._numbers.get(mapping.file)
        if number is None:
            number = self._numbers[mapping.file] = self._take_number(mapping.file)
        return MappingRow(mapping.start, mapping.end, mapping.offset, number)

    def _take_number(self, file: MappedFile) -> int:
        if self._free:
            number = self._free.pop()
            self._files[number] = file
            return number
        self._files.append(file)
        return len(self._files) - 1

    def _current(self, pid: int, time: int) -> ProcessHistory | None:
        """The process a record is about; None if a later snapshot contains it."""
        process = self._process(pid)
        return None if 0 < time < process.since else process

    def _on_mmap(self, record: Mmap | Mmap2) -> None:
        mapping = code_of(record)
        if mapping is not None:
            self._map(record, mapping)

    def add_code(self, record: MappedCode) -> None:
        """`feed` of the most frequent record."""
        pid, start, end, offset, file, time = record
        process = self._processes.get(pid) or self._process(pid)
        if pid == _KERNEL or 0 < time < process.since:
            return
        number = self._numbers.get(file)
        if number is None:
            number = self._numbers[file] = self._take_number(file)
        process.generations[-1].add((start, end, offset, number), time)
        process.change()

    def _map(self, record: Mmap | Mmap2, mapping: Mapping) -> None:
        process = self._current(record.pid, record.time) if record.pid != _KERNEL else None
        if process is not None:
            process.generations[-1].add(self._row(mapping), record.time)
            process.change()

    def _on_comm(self, record: Comm) -> None:
        process = self._current(record.pid, record.time)
        if process is None:
            return
        if record.exec:
            process.begin(Generation((record.comm,), since=record.time))
        else:
            process.generations[-1].name(record.comm)
        process.change()

    def _on_fork(self, record: Fork) -> None:
        if record.pid == record.ppid:
            return
        process = self._current(record.pid, record.time)
        if process is not None:
            self._exited.pop(record.pid, None)
            process.parent = record.ppid
            parent = self._processes.get(record.ppid)
            generation = parent.generations[-1].child() if parent else Generation(())
            generation.since = record.time
            process.begin(generation)

    def _on_exit(self, record: Exit) -> None:
        if record.pid != record.tid or record.pid not in self._processes:
            return
        if self._current(record.pid, record.time) is None:
            return
        self._exited[record.pid] = None
        if len(self._exited) > self._keep_exited:
            oldest = next(iter(self._exited))
            del self._exited[oldest], self._processes[oldest]
            self.forgotten += 1


def _is_one_file(one: MappedFile, other: MappedFile) -> bool:
    """Return True if two descriptions are of one file, also where one lacks the inode."""
    if one.build_id and other.build_id:
        return one.build_id == other.build_id
    if one.inode and other.inode:
        return (one.major, one.minor, one.inode) == (other.major, other.minor, other.inode)
    return one.path == other.path


def code_of(record: Mmap | Mmap2) -> Mapping | None:
    """The mapping in a record; None if it is data."""
    if isinstance(record, Mmap):
        return None if record.is_data else _mapping(record, mapped_file(record.filename))
    if not record.prot & _PROT_EXEC:
        return None
    where = (record.maj, record.min, record.ino, record.build_id.hex())
    return _mapping(record, mapped_file(record.filename, *where))


def _mapping(record: Mmap | Mmap2, file: MappedFile) -> Mapping:
    start, offset = Address(record.addr), FileOffset(record.pgoff)
    return Mapping(start, Address(min(start + record.length, LAST)), offset, file)
