"""Address spaces over time: the mapped files of each process, by address and time.

Fed by /proc/PID/maps texts and by the MMAP2, COMM, FORK and EXIT records of perf events, it keeps
answering after a process has executed another program or has exited, when /proc no longer does.

A process is a row of generations, one a program it executed. A child starts with its parent's
mappings, by reference: neither side copies until it maps something new. A mapping is 32 bytes and
each file is stored once, so that a machine full of short-lived shells stays small.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterable, Iterator, KeysView
from itertools import count
from typing import Any

from purebpf.symbols.frame import Address, FileOffset
from purebpf.symbols.intervals import Segments, flatten
from purebpf.symbols.proc_maps import MappedFile, Mapping, mapped_file, parse_maps
from purebpf.tuples import NamedTuple
from purebpf.wire.perf_records import Comm, Exit, Fork, Mmap, Mmap2

__all__ = ["AddressSpaces", "Earlier", "MappedCode", "code_of"]

_PROT_EXEC = 4
_KERNEL = 0xFFFFFFFF  # the pid of the kernel's own mappings
_KEEP_EXITED = 8192
_KEEP_GENERATIONS = 16
_KEEP_NAMES = 64
_KEEP_MAPPINGS = 1 << 16
_KEEP_FILES = 4096
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
        unread: processes whose records have not been decoded yet. `read` decodes the records of one
            process; it is called before any answer about that process.
    """

    def __init__(self, *, keep_exited: int = _KEEP_EXITED) -> None:
        self.forgotten = 0
        self.unread: Container[int] = ()
        self.read: Callable[[int], object] = bool
        self._keep_exited = keep_exited
        self._processes: dict[int, _Process] = {}
        self._versions = count(1)  # no two processes have one, not even of the same number
        self._exited: dict[int, None] = {}  # in the order of their exit
        self._leaving: dict[int, int] = {}  # those of the last `forget_exited`, by version
        self._files: list[MappedFile] = []
        self._numbers: dict[MappedFile, int] = {}
        self._free: list[int] = []  # numbers of files that no process has or had mapped any more
        self._most_files = _KEEP_FILES
        self._handlers: dict[type, Callable[[Any], None]] = {
            Mmap: self._on_mmap,
            Mmap2: self._on_mmap2,
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
            process.begin(_Generation(()))  # not one mapping in common: it executed something
        current = process.generations[-1]
        fresh = [row for row in rows if current.find(row.start) != row]
        for row in fresh:
            current.add(row)
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
        return generation.span(address) if generation else None

    def earlier(self, pid: int, time: int) -> Earlier | None:
        """Return the mappings of a process at a time; None if they are unknown.

        Mappings that the same program made later are included, and hide the ranges that they cover.

        Args:
            pid: the process (thread group).
            time: on the clock of the records, in ns.
        """
        process = self._known(pid)
        until = _LAST
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
        rows: dict[int, _Row] = {}
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
                used.update(generation.mappings[_FIELDS - 1 :: _FIELDS])
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

    def _known(self, pid: int) -> _Process | None:
        """Return a process, after decoding all of its records."""
        if pid in self.unread:
            self.read(pid)
        return self._processes.get(pid)

    def _process(self, pid: int) -> _Process:
        process = self._processes.get(pid)
        if process is None:
            process = self._processes[pid] = _Process(self._versions)
        return process

    def _mapping(self, row: _Row) -> Mapping:
        file = self._files[row.file]
        return Mapping(Address(row.start), Address(row.end), FileOffset(row.offset), file)

    def _row(self, mapping: Mapping) -> _Row:
        number = self._numbers.get(mapping.file)
        if number is None:
            number = self._numbers[mapping.file] = self._take_number(mapping.file)
        return _Row(mapping.start, mapping.end, mapping.offset, number)

    def _take_number(self, file: MappedFile) -> int:
        if self._free:
            number = self._free.pop()
            self._files[number] = file
            return number
        self._files.append(file)
        return len(self._files) - 1

    def _current(self, pid: int, time: int) -> _Process | None:
        """The process a record is about; None if a later snapshot contains it."""
        process = self._process(pid)
        return None if 0 < time < process.since else process

    def _on_mmap(self, record: Mmap) -> None:
        if not record.is_data:
            self._map(record, _mapping(record, mapped_file(record.filename)))

    def _on_mmap2(self, record: Mmap2) -> None:
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
        process.generations[-1].add((start, end, offset, number))
        process.change()

    def _map(self, record: Mmap | Mmap2, mapping: Mapping) -> None:
        process = self._current(record.pid, record.time) if record.pid != _KERNEL else None
        if process is not None:
            process.generations[-1].add(self._row(mapping))
            process.change()

    def _on_comm(self, record: Comm) -> None:
        process = self._current(record.pid, record.time)
        if process is None:
            return
        if record.exec:
            process.begin(_Generation((record.comm,), since=record.time))
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
            generation = parent.generations[-1].child() if parent else _Generation(())
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


def code_of(record: Mmap2) -> Mapping | None:
    """The mapping in a record; None if it is data."""
    if not record.prot & _PROT_EXEC:
        return None
    where = (record.maj, record.min, record.ino, record.build_id.hex())
    return _mapping(record, mapped_file(record.filename, *where))


def _mapping(record: Mmap | Mmap2, file: MappedFile) -> Mapping:
    start, offset = Address(record.addr), FileOffset(record.pgoff)
    return Mapping(start, Address(min(start + record.length, _LAST)), offset, file)


class _Row(NamedTuple):
    """A mapping with its file's number, as the array of a generation stores it."""

    start: int
    end: int
    offset: int
    file: int


_FIELDS = len(_Row._fields)
_LAST = (1 << 64) - 1


class _Process:
    """A process id and the programs that ran under it; `since` is the time of the last snapshot."""

    __slots__ = ("_versions", "generations", "parent", "since", "version")

    def __init__(self, versions: count[int]) -> None:
        self._versions = versions
        self.generations = [_Generation(())]
        self.parent = 0
        self.since = 0
        self.change()

    def change(self) -> None:
        """Answers about it may be others from now on."""
        self.version = next(self._versions)

    def begin(self, generation: _Generation) -> None:
        if not self.generations[-1].mappings:
            self.generations.pop()
        self.generations.append(generation)
        del self.generations[:-_KEEP_GENERATIONS]
        self.change()

    def by_likelihood(self, comm: str | None) -> Iterator[_Generation]:
        """Return generations with a name first, the newest first; the first one is nearly always
        right.
        """
        for generation in reversed(self.generations):
            if comm is None or comm in generation.names:
                yield generation
        for generation in reversed(self.generations):
            if not (comm is None or comm in generation.names):
                yield generation


class _Generation:
    """One program image of a process: from an execve or fork at `since` to the next."""

    __slots__ = ("_index", "_shared", "mappings", "names", "since")

    def __init__(
        self, names: tuple[str, ...], mappings: array[int] | None = None, since: int = 0
    ) -> None:
        self.names = names
        self.since = since
        self.mappings = array("Q") if mappings is None else mappings
        self._shared = mappings is not None
        self._index: tuple[int, Segments, array[int]] | None = None

    def child(self) -> _Generation:
        """A copy for a forked process, made when one of the two adds a mapping."""
        self._shared = True
        child = _Generation(self.names, self.mappings)
        child._index = self._index  # noqa: SLF001
        return child

    def name(self, comm: str) -> None:
        """A thread of it is called that."""
        if comm and comm not in self.names:
            self.names = (*self.names[-_KEEP_NAMES:], comm)

    def add(self, row: tuple[int, int, int, int]) -> None:
        if self._shared:
            self.mappings = self.mappings[:]
            self._shared = False
        self.mappings.extend(row)
        if len(self.mappings) > _FIELDS * _KEEP_MAPPINGS:
            self._forget_hidden()

    def find(self, address: int) -> _Row | None:
        """The newest mapping of an address."""
        _, segments, order = self._indexed()
        owner = segments.owner(address)
        return self._row(order[owner]) if owner >= 0 else None

    def span(self, address: int) -> tuple[int, int] | None:
        """The addresses around one that have the same mapping."""
        return self._indexed()[1].span(address)

    def _indexed(self) -> tuple[int, Segments, array[int]]:
        if self._index is None or self._index[0] != len(self.mappings):
            self._index = self._build()
        return self._index

    def rows(self) -> Iterator[_Row]:
        """Every mapping, the newest first."""
        return map(self._row, range(len(self.mappings) // _FIELDS - 1, -1, -1))

    def visible(self) -> Iterator[_Row]:
        """Return the mappings by address, each part by its newest mapping."""
        segments, order = self._build()[1:]
        for start, end, owner in zip(*segments, strict=True):
            row = self._row(order[owner])
            yield row._replace(start=start, end=end, offset=row.offset + start - row.start)

    def _row(self, at: int) -> _Row:
        return _Row(*self.mappings[_FIELDS * at : _FIELDS * (at + 1)])

    def _build(self) -> tuple[int, Segments, array[int]]:
        starts, ends = self.mappings[::_FIELDS], self.mappings[1::_FIELDS]
        order = array("I", sorted(range(len(starts)), key=starts.__getitem__))
        segments = flatten([starts[at] for at in order], [ends[at] for at in order], order)
        return len(self.mappings), segments, order

    def _forget_hidden(self) -> None:
        """Drop mappings that newer ones hide; if that is not enough, the older half."""
        _, segments, order = self._build()
        seen = sorted({order[owner] for owner in segments.owners})
        rows = [self._row(at) for at in seen[-_KEEP_MAPPINGS // 2 :]]
        self.mappings = array("Q", (field for row in rows for field in row))
        self._index = None
