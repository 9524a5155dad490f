"""Recording a tree, or processes of a name: samples of all CPUs, filtered by a program."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack

from purebpf.abi.bpf import bpf_map_type
from purebpf.closable import Closing
from purebpf.errors import KernelError, NotSupportedError
from purebpf.filter.sample_layout import SampleAccess
from purebpf.loader.maps.map import Map
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.loader.programs.program import Program
from purebpf.measure.target_ends import follow_descendants
from purebpf.observe.filters.compiled_filter import CompiledFilter
from purebpf.observe.instruments.process_tree import CAPACITY, ProcessTree
from purebpf.spec import MapSpec
from purebpf.syscall import proc

__all__ = ["Tree", "follow"]

_MEMBERS = MapSpec("members", bpf_map_type.BPF_MAP_TYPE_HASH, 4, 1, CAPACITY)


class Tree(Closing):
    """The processes of a tree, kept complete, and the program that drops all other samples.

    Args:
        command_pid: a child that is about to execute a command; 0: none.
        pids: processes, which are members with all below them.
        comm: the name of processes, which are members while they have it; None: names do not
            matter.
        tree: the children of those are members, too, and processes stay under another name.

    Attributes:
        members: by process ID.

    Raises:
        NotSupportedError: the kernel does not show its types.
        KernelError: the kernel refused.
    """

    def __init__(
        self,
        command_pid: int,
        pids: tuple[int, ...],
        comm: str | None = None,
        *,
        tree: bool = False,
    ) -> None:
        with ExitStack() as stack:
            self.members: Map = stack.enter_context(Map.create(_MEMBERS))
            self._enter(pids)
            processes = ProcessTree(
                self.members,
                command_pid=command_pid,
                name=comm,
                children=comm is None or tree,
            )
            self._processes = stack.enter_context(processes)
            follow_descendants(pids, self._enter)
            plain = CompiledFilter((), SampleAccess(None, {}), self.members)
            self._filter = stack.enter_context(plain)
            self._owned = stack.pop_all()

    def _enter(self, pids: Collection[int]) -> None:
        for pid in pids:
            self.members[pid.to_bytes(4, "little")] = b"\1"

    def attach(self, event: PerfEvent) -> None:
        """Drop samples from outside the tree, for an event without a filter that does it."""
        self._filter.attach(event)

    @property
    def program(self) -> Program:
        """The program of `attach`."""
        return self._filter.program

    @property
    def outside(self) -> int:
        """Samples that the program of `attach` dropped."""
        return self._filter.outside

    @property
    def missed(self) -> int:
        """Processes that could not be entered."""
        return self._processes.missed

    def close(self) -> None:
        """Follow no longer; again is harmless."""
        self._owned.close()


def follow(
    command_pid: int, pids: tuple[int, ...], comm: str | None = None, *, tree: bool = False
) -> Tree | None:
    """Return the processes as of `Tree`; None where events have to be inherited instead.

    That is where this process may load no programs, on kernels without types, and inside a PID
    namespace: the filter compares numbers of the first one.
    """
    if not proc.in_first_pid_namespace():
        return None
    try:
        return Tree(command_pid, pids, comm, tree=tree)
    except (KernelError, NotSupportedError):
        return None
