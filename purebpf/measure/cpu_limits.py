"""CPU limits of cgroups: cpu.max of version 2, cpu.cfs_quota_us of version 1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from purebpf.measure.proc_files import read_text, words
from purebpf.results.model.width import cut
from purebpf.tuples import NamedTuple

__all__ = ["CpuLimit", "CpuLimitWatch", "read_cpu_limit"]

_ROOTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
_CONTROLLER = "cpu"
_OFTEN = 0.1
"""The part of its periods in which a cgroup is stopped that is worth a line."""


_NAME = 26
"""Characters of a cgroup's name that leave room for the rest of a line."""


class CpuLimit(NamedTuple):
    """A limit and its counters.

    Attributes:
        quota_cpus: the CPUs that the cgroup may use; 0.0: no limit.
        periods, throttled: in how many periods it ran, and in how many of them it was stopped.
        throttled_s: how long it was stopped.
    """

    quota_cpus: float = 0.0
    periods: int = 0
    throttled: int = 0
    throttled_s: float = 0.0


def read_cpu_limit(folder: str) -> CpuLimit:
    """Return the limit of one cgroup; without one where its files are not there."""
    stat = {name: int(value) for name, value in words(f"{folder}/cpu.stat") if value.isdigit()}
    limit, _, period = read_text(f"{folder}/cpu.max").partition(" ")
    if not limit:
        limit = read_text(f"{folder}/cpu.cfs_quota_us").strip()
        period = read_text(f"{folder}/cpu.cfs_period_us")
    period = period.strip()
    return CpuLimit(
        int(limit) / int(period) if limit.isdigit() and period.isdigit() else 0.0,
        stat.get("nr_periods", 0),
        stat.get("nr_throttled", 0),
        stat.get("throttled_usec", 0) / 1e6 + stat.get("throttled_time", 0) / 1e9,
    )


class CpuLimitWatch:
    """Reads the limits that hold for processes, when it is made and when it is asked."""

    def __init__(self, pids: Iterable[int]) -> None:
        folders = dict.fromkeys(folder for pid in pids for folder in _folders(pid))
        read = {folder: read_cpu_limit(folder) for folder in folders}
        self._before = {folder: limit for folder, limit in read.items() if limit.quota_cpus}

    def sentences(self) -> list[str]:
        """Return a sentence for each limit that has stopped its cgroup often since then."""
        return list(self._sentences())

    def _sentences(self) -> Iterator[str]:
        for folder, before in self._before.items():
            now = read_cpu_limit(folder)
            periods, throttled = now.periods - before.periods, now.throttled - before.throttled
            if throttled <= 0 or throttled < _OFTEN * periods:
                continue
            name = cut(folder.rpartition("/")[2], _NAME)
            yield (
                f"CPU limit of {name} ({now.quota_cpus:.2f} CPUs): throttled in "
                f"{100 * throttled / periods:.0f} % of its periods"
            )


def _folders(pid: int) -> Iterator[str]:
    """The cgroup of a process and those around it, of both versions."""
    for line in read_text(f"/proc/{pid}/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and _CONTROLLER not in controllers.split(","):
            continue
        roots = (f"/sys/fs/cgroup/{controllers}", "/sys/fs/cgroup/cpu") if controllers else _ROOTS
        while path.strip("/"):
            yield from (root + path for root in dict.fromkeys(roots))
            path = path.rpartition("/")[0]
