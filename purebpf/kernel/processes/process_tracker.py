"""The address spaces of processes while samples are taken, whether or not they live to the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from purebpf.closable import Closing
from purebpf.errors import KernelError
from purebpf.kernel.processes.sideband import SideBand
from purebpf.syscall import proc

if TYPE_CHECKING:
    from purebpf.kernel.processes.cgroup_labels import CgroupLabels
    from purebpf.kernel.processes.process_names import ProcessNames
    from purebpf.symbols.address_spaces import AddressSpaces

__all__ = ["Followed"]


class Followed(Closing):
    """Keeps `spaces` up to date from the kernel's records.

    Attributes:
        tasks: the threads that `root` and its descendants are made of, so far.
    """

    def __init__(self, root: int = 0, pids: Container[int] | None = None) -> None:
        """Follow from now on.

        Args:
            root: a process; its descendants are counted.
            pids: follow only these; None: all.

        Raises:
            KernelError: as `SideBand`.
        """
        self.tasks = 1
        self._family = {root}
        self._band = SideBand(pids=pids, threads=bool(root))
        self._lost_before = 0

    # Not imported before everything is attached:

    @cached_property
    def spaces(self) -> AddressSpaces:
        """Who had what mapped."""
        from purebpf.symbols.address_spaces import AddressSpaces

        return AddressSpaces()

    @cached_property
    def cgroups(self) -> CgroupLabels:
        """The container or unit that each process was in."""
        from purebpf.kernel.processes.cgroup_labels import CgroupLabels

        return CgroupLabels()

    @cached_property
    def names(self) -> ProcessNames:
        """What each process is called."""
        from purebpf.kernel.processes.process_names import ProcessNames

        return ProcessNames()

    @property
    def fds(self) -> tuple[int, ...]:
        """Readable when `drain()` is due."""
        return self._band.fds

    @property
    def lost(self) -> int:
        """Records that were lost, perhaps with what `spaces` lacks."""
        return self._band.lost

    def snapshot(self, pids: Iterable[int] = (), pause: Callable[[], object] = bool) -> None:
        """Read from /proc the mappings of before the records.

        Args:
            pids: of these processes; of all by default.
            pause: is called before each, as the machine may have thousands.
        """
        for pid in pids or proc.pids():
            pause()
            now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            try:
                maps = proc.maps(pid)
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
    ) -> None:
        """Take in what happened.

        Args:
            tell: is called with each record; what a process maps only if that is `followed`.
            followed: by the receiver; looked at with each such record.
        """
        from purebpf.symbols.address_spaces import MappedCode
        from purebpf.wire.perf_records import Exit, Fork

        records = self._band.drain()
        over = {
            record.pid for record in records if type(record) is Exit and record.pid == record.tid
        }
        add_code = self.spaces.add_code
        for record in records:
            if type(record) is MappedCode:  # as most are, of processes that are never asked about
                add_code(record)
                if tell is not None and record.pid in followed:
                    tell(record)
                continue
            self.spaces.feed(record)
            self.cgroups.feed(record, is_over=record.pid in over)
            self.names.feed(record)
            if tell is not None:
                tell(record)
            if isinstance(record, Fork) and record.ppid in self._family:
                self._family.add(record.pid)
                self.tasks += 1

    def forget_exited(self, keep: Container[int]) -> None:
        """Forget processes that had exited at the last call already, but those to `keep`.

        Where records were lost, those that are not in /proc any more have exited, too.
        """
        lost, self._lost_before = self.lost - self._lost_before, self.lost
        if lost:
            self.spaces.note_living(set(proc.pids()))
        for pid in self.spaces.forget_exited(keep):
            self.cgroups.forget(pid)
            self.names.forget(pid)

    def close(self) -> None:
        """Stop following; again is harmless."""
        self._band.close()
