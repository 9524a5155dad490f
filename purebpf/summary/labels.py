"""The names of groups: threads and processes by comm, cgroups by path."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from purebpf.kernel.host.cgroups import paths_by_id
from purebpf.kernel.maps.map import Map
from purebpf.summary.table import Label

__all__ = ["labels"]

_NUMBER = 0xFFFFFFFF


def labels(mode: str, maps: Mapping[str, Map]) -> Callable[[int], Label]:
    """What makes a label of a group's key, as bpf_src/summary.bpf.c has them.

    Raises:
        KernelError: the names could not be read.
    """
    if mode == "cgroup":
        paths = paths_by_id()
        return lambda group: Label(group, paths.get(group, ""))
    if mode == "total":
        return lambda _: Label()
    comms = {group: name.comm for group, name in maps["names"].items()}
    return lambda group: Label(group & _NUMBER, comms.get(group, ""))
