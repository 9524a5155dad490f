"""The address spaces of processes during a run, whether or not they live to the end."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import cached_property, partial
from typing import TYPE_CHECKING

from purebpf.closable import Closing
from purebpf.errors import KernelError
from purebpf.observe.processes.sideband import SideBand
from purebpf.observe.processes.unread_records import UnreadRecords
from purebpf.syscall import host_clock, proc

if TYPE_CHECKING:
    from purebpf.observe.processes.cgroup_labels import CgroupLabels
    from purebpf.observe.processes.copied_code import CopiedCode
    from purebpf.observe.processes.process_names import ProcessNames
    from purebpf.observe.symbols.copied_text import Copies
    from purebpf.results import Profile
    from purebpf.symbols.address_spaces import AddressSpaces, MappedCode
    from purebpf.symbols.proc_maps import Mapping

__all__ = ["Followed"]

_LONGEST_S = 3600.0
_SOON_S = 0.001
_PATIENCE_S = 0.1
"""See `CgroupLabels`."""


class Followed(Closing):
    """Keeps `spaces` up to date from the kernel's records.

    Attributes:
        tasks: the threads of `root` and its descendants, so far.
    """

    def __init__(
        self, root: int = 0, pids: Container[int] | None = None, *, is_patient: bool = False
    ) -> None:
        """Follow from now on.

        Args:
            root: a process; its descendants are counted.
            pids: follow only these; None: all.
            is_patient: as `SideBand`.

        Raises:
            KernelError: as `SideBand`.
        """
        self.tasks = 1
        self._family = {root}
        self._band = SideBand(pids=pids, threads=bool(root), is_patient=is_patient)
        self._lost_before = 0
        self._unread = UnreadRecords()
        self._asked: set[int] = set()
        self._tell: Callable[[object], object] | None = None
        self._followed: Container[int] = ()
        self._copied: CopiedCode | None = None
        self._window_ns = 0
        self._looked: list[MappedCode] = []  # by the last drain, to be passed on by the next one

    # Not imported before everything is attached:

    @cached_property
    def spaces(self) -> AddressSpaces:
        """The mappings of processes."""
        from purebpf.symbols.address_spaces import AddressSpaces

        spaces = AddressSpaces()
        spaces.unread, spaces.read = self._unread.pieces, self._read_one
        return spaces

    @cached_property
    def cgroups(self) -> CgroupLabels:
        """The container or unit that each process was in."""
        from purebpf.observe.processes.cgroup_labels import CgroupLabels

        return CgroupLabels(self._unread.parents)

    @cached_property
    def names(self) -> ProcessNames:
        """The name of each process."""
        from purebpf.observe.processes.process_names import ProcessNames

        names = ProcessNames()
        names.unread, names.read = self._unread.pieces, self._read_one
        return names

    def name_processes(self, profile: Profile) -> None:
        """Set the names of a profile's processes. Where records were lost, none is an older one."""
        if self.lost:
            self.names.doubt({(row.labels.pid, row.labels.comm) for row in profile.rows()})
        profile.name_processes(self.names.of)

    @property
    def fds(self) -> tuple[int, ...]:
        """Readable when `drain()` is due."""
        return self._band.fds

    @property
    def lost(self) -> int:
        """The number of lost records, and of processes with code that was not compared with files.

        `spaces` may lack some of their mappings.
        """
        return self._band.lost + (0 if self._copied is None else self._copied.lost)

    def snapshot(self, pids: Iterable[int] = (), pause: Callable[[], object] = bool) -> None:
        """Read from /proc the mappings of before the records.

        Args:
            pids: of these processes; of all by default.
            pause: is called before each, as the machine may have thousands.
        """
        from purebpf.observe.symbols.process_maps import read_maps

        for pid in pids or proc.pids():
            pause()
            if not pids and proc.program(pid) is None:  # without mappings, as most of all are
                continue
            now_ns = host_clock.monotonic_ns()
            try:
                maps = read_maps(pid, partial(self._note_copies, pid))
                comm = proc.comm(pid)
            except KernelError:  # not ours to read; its frames will say so
                continue
            if maps and comm is not None:
                self.spaces.snapshot(pid, maps, comm, now_ns)
                self.cgroups.read(pid)
                self.names.note(pid, comm)

    def drain(
        self,
        tell: Callable[[object], object] | None = None,
        followed: Container[int] = (),
        mapping: Container[int] = (),
    ) -> None:
        """Read the pending records.

        The records of a process are decoded when a caller needs them, or when the receiver knows
        it, or its parent: a child that executes nothing equals its parent.

        Args:
            tell: called with each record that is decoded, by now or later; mappings of a process
                only if it is `followed`.
            followed: by the receiver.
            mapping: the other processes that it knows.
        """
        self._tell, self._followed = tell, followed
        happened = self._band.sort_out()
        large = self._unread.add(happened)
        self.cgroups.add(happened)
        for pid, parent in happened.tasks:
            if parent in self._family:
                self._family.add(pid)
                self.tasks += 1
        due = {pid for pid in happened.runs if self._is_known(pid, mapping)}
        for child, parent in happened.forks:
            if child in happened.executed or child in happened.ended:
                continue
            if parent in due or self._is_known(parent, mapping):
                due.add(child)
        self._read({*due, *large})
        self._find_copied_code()

    def look_again_s(self) -> float:
        """Seconds until `drain` is due without a record: code is copied and moved silently."""
        if self._copied is None:
            return _LONGEST_S
        if self._looked:
            return _SOON_S
        return self._copied.next_s(host_clock.monotonic_ns())

    def _find_copied_code(self) -> None:
        """Pass on code that was copied or moved without a record.

        It waits for one more drain: when /proc/PID/maps was read, the process may have executed
        another program, and its record must be read first.
        """
        if self._copied is None:
            return
        spaces, tell = self.spaces, self._tell
        for code in self._looked:
            mapping = spaces.find_current(code.pid, code.start)
            if mapping is not None and _is_part(code.mapping, mapping):
                continue
            spaces.add_code(code)
            is_added = spaces.find_current(code.pid, code.start) == code.mapping
            if is_added and tell is not None and code.pid in self._followed:
                tell(code)
        self._looked = [*self._copied.look(host_clock.monotonic_ns())]

    def ask(self, pid: int) -> None:
        """Decode the records of a process from now on, since a sample names it, and read its
        cgroup.
        """
        if pid not in self._asked:
            self._asked.add(pid)
            self.cgroups.patience_s = _PATIENCE_S
            self.cgroups.text(pid)
        if pid in self._unread.pieces:
            self._read((pid,))

    def _is_known(self, pid: int, mapping: Container[int]) -> bool:
        return pid in self._asked or pid in self._followed or pid in mapping

    def _read_one(self, pid: int) -> None:
        self._read((pid,))

    def _read(self, pids: Iterable[int]) -> None:
        """Decode the records of processes, and pass them on."""
        pieces = self._unread.take(pids)
        if not pieces:
            return
        from purebpf.symbols.address_spaces import MappedCode
        from purebpf.wire.perf_records import Comm, Exit

        tell = self._tell
        for record in self._band.decode(pieces):
            if type(record) is MappedCode:  # as most are
                self.spaces.add_code(record)
                if record.file.is_anonymous:
                    self._note_anonymous(record.pid)
                if tell is not None and record.pid in self._followed:
                    tell(record)
                continue
            self.spaces.feed(record)
            self.names.feed(record)
            if self._copied is not None and isinstance(record, Comm | Exit):
                self._copied.forget_ended(record)
            if tell is not None:
                tell(record)
            if isinstance(record, Exit) and record.pid == record.tid:
                self._asked.discard(record.pid)

    def _note_anonymous(self, pid: int) -> None:
        """Look later whether anonymous code is a copy of a file's."""
        if self._copied is None:
            from purebpf.observe.processes.copied_code import CopiedCode

            self._copied = CopiedCode()
        self._copied.note(pid, host_clock.monotonic_ns())

    def _note_copies(self, pid: int, copies: Copies) -> None:
        """Look later at a process whose code was not all copied, or not all compared, at first."""
        if copies.is_sure and not copies.is_cut:
            return
        if self._copied is None:
            from purebpf.observe.processes.copied_code import CopiedCode

            self._copied = CopiedCode()
        self._copied.note_copies(pid, copies, host_clock.monotonic_ns())

    def forget_exited(self, keep: Container[int]) -> None:
        """Forget processes that had exited at the last call already, but those to `keep`.

        Those that no one has asked about go with this call. Where records were lost, those that are
        not in /proc any more have exited, too. The time of the last call is the begin of the time
        that questions about addresses are about.
        """
        unread, spaces = self._unread, self.spaces
        lost, self._lost_before = self.lost - self._lost_before, self.lost
        if lost:
            living = set(proc.pids())
            spaces.note_living(living)
            unread.note_living(living)
        self._read(unread.orphans(spaces.exited))
        spaces.begin(self._window_ns)
        self._window_ns = host_clock.monotonic_ns()
        gone = spaces.forget_exited(keep)
        for pid in gone:
            unread.drop(pid)
        gone += unread.forget_ended(keep)
        self._asked.difference_update(gone)
        self.cgroups.forget(gone)
        self.names.forget(gone)

    def close(self) -> None:
        """Stop following; again is harmless."""
        self._band.close()


def _is_part(now: Mapping, mapping: Mapping) -> bool:
    """Return True if a mapping has the same bytes as a known one.

    The file may have been deleted since, and the kernel splits mappings.
    """
    file = mapping.file._replace(deleted=now.file.deleted, build_id=now.file.build_id)
    is_same_place = now.start - now.offset == mapping.start - mapping.offset
    return now.file == file and (is_same_place or now.file.is_anonymous)
