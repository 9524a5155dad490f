"""`TaskFilter`: the tasks that a shipped program counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.maps.map import Map
    from purebpf.spec import ObjectSpec

__all__ = ["CAPACITY", "TaskFilter", "bit_words", "cpu_words"]

CAPACITY = 65536
"""Processes that a tree has room for at any one time: 4 MB of the kernel's memory."""
_WORD = 64
_CPU_WORDS = 64
"""MAX_CPUS of cpus.h, in words of 64 bits."""
_ROOM_FOR_CHILDREN = 4096
"""That start between the look at /proc and the first event."""


class TaskFilter(NamedTuple):
    """The settings of targets.h, verdict.h, cpus.h and pid_namespace.h in bpf_src/include/.

    Everybody's by default.

    Attributes:
        pids: these processes.
        tree: their children from now on, too; only where there are verdicts.
        tids: these threads.
        cgroup_fd: tasks in and below the cgroup v2 directory that this is a descriptor of.
        cpus: count only events on these.
        command_pid: a child that waits to execute a command: from its execve on, with children.
        own_pid: a process to leave out.
        namespace: the pid namespace to number tasks in, as (device, inode); (0, 0): the initial.
        uid: tasks that run as this user, as the initial user namespace numbers it; None: any.
        comm: processes with this name, for as long as they have it; `ProcessTree` keeps `tgids`.
            With `tree`, they and their children stay.
        started: when each of `pids` or `tids` was forked, in ticks of /proc; None: it has ended.
            One that was forked at another time has the number of one that ended.
    """

    pids: tuple[int, ...] = ()
    tids: tuple[int, ...] = ()
    cgroup_fd: int | None = None
    cpus: tuple[int, ...] = ()
    command_pid: int = 0
    own_pid: int = 0
    namespace: tuple[int, int] = (0, 0)
    tree: bool = False
    comm: str | None = None
    uid: int | None = None
    started: Mapping[int, int | None] = MappingProxyType({})

    def apply(self, spec: ObjectSpec) -> ObjectSpec:
        """A spec that asks for this, with room in its maps for `fill`.

        Raises:
            KeyError: the object includes no header that could ask for all of it.
        """
        device, inode = self.namespace
        settings: dict[str, Any] = {
            "has_tgids": bool(self.pids) or self.comm is not None,
            "has_names": self.comm is not None and "has_names" in spec.variables,
            "has_tids": bool(self.tids),
            "has_tree": self.tree and self.comm is None,
            "has_cgroup": self.cgroup_fd is not None,
            "has_uid": self.uid is not None,
            "uid": self.uid,
            "has_cpus": bool(self.cpus),
            "cpus": cpu_words(self.cpus) if self.cpus else None,
            "command_tgid": self.command_pid,
            "own_tgid": self.own_pid,
            "pid_namespace_dev": device,
            "pid_namespace_ino": inode,
        }
        asked = {name: value for name, value in settings.items() if value}
        room = len(self.pids) + (_ROOM_FOR_CHILDREN if self.tree else 0)
        if self.comm is not None:
            room = CAPACITY
        return spec.set(**asked).resize(tgids=room or 1, tids=len(self.tids) or 1)

    def fill(self, maps: Mapping[str, Map]) -> None:
        """Write the tasks to the maps of programs that were loaded from the result of `apply`.

        Raises:
            KernelError: the kernel refused.
        """
        if self.pids:
            maps["tgids"].update(dict.fromkeys(self.pids, 1))
        if self.tids:
            maps["tids"].update(dict.fromkeys(self.tids, 1))
        if self.cgroup_fd is not None:
            maps["cgroup"][0] = self.cgroup_fd


def cpu_words(cpus: Iterable[int]) -> list[int]:
    """Return CPUs as the programs' constant `cpus` has them."""
    return bit_words(cpus, _CPU_WORDS)


def bit_words(numbers: Iterable[int], words: int) -> list[int]:
    """Return numbers as bits of 64-bit words; numbers beyond them, which nothing has, are
    dropped.
    """
    bits = [0] * words
    for number in numbers:
        if number < _WORD * words:
            bits[number // _WORD] |= 1 << number % _WORD
    return bits
