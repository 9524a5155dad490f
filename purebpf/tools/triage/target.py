"""The processes that a request chooses: their findings are shown."""

from __future__ import annotations

from collections.abc import Collection

from purebpf.findings.facts import Process
from purebpf.measure.named_targets import container_cgroup, present_processes
from purebpf.measure.targets import NoSuchTargetError
from purebpf.symbols.cgroup_names import cgroup_name, is_called
from purebpf.tools.triage.options import TriageOptions

__all__ = ["ChosenProcesses", "processes_called"]


class ChosenProcesses:
    """The processes of a target before a measurement, and after it.

    Raises:
        NoSuchTargetError: there is none now.
        NotSupportedError: a cgroup that is not of version 2.
    """

    def __init__(self, options: TriageOptions) -> None:
        name = options.container_name
        cgroup = options.cgroup if name is None else container_cgroup(name)
        self._target = options._replace(cgroup=cgroup)
        self._before = present_processes(self._target, tree=options.tree)

    def in_all(self) -> frozenset[int]:
        """Return the processes that there were, and those that there are now."""
        try:
            now = present_processes(self._target, tree=self._target.tree)
        except NoSuchTargetError:  # all have ended
            now = ()
        return frozenset((*self._before, *now))


def processes_called(processes: Collection[Process], name: str) -> frozenset[int]:
    """Return the processes of a container or unit, by its name, in a measurement of the past.

    Raises:
        NoSuchTargetError: there is none.
    """
    labels = {process.pid: _label(process) for process in processes}
    called = frozenset(
        process.pid
        for process in processes
        if any(
            is_called(name, labels[process.pid], path)
            for path in process.cgroup.splitlines() or ("",)
        )
    )
    if not called:
        names = ", ".join(sorted(filter(None, set(labels.values())))) or "none"
        raise NoSuchTargetError(f"no container or unit {name!r} was measured; there were: {names}")
    return called


def _label(process: Process) -> str:
    return process.unit or cgroup_name(process.cgroup).label
