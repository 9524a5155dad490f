"""From the maps' contents to groups of rows, with every number exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from purebpf.loader.host.cgroups import paths_by_id
from purebpf.loader.host.cpus import possible
from purebpf.loader.maps.map import Map
from purebpf.tools.summary.calls import Call, call
from purebpf.tools.summary.statistics import Statistics
from purebpf.tools.summary.table import Faults, Group, Label, SummaryRow

__all__ = [
    "EPOCHS",
    "SLOTS",
    "Counted",
    "by_label",
    "clear",
    "collect",
    "labels",
    "without_generations",
]

SLOTS = 512
EPOCHS = 2
_ABIS = 2
"""As in bpf_src/summary.bpf.c."""
_NUMBER = 0xFFFFFFFF

Counted = dict[int, dict[Call, Statistics]]
"""By group, then by call."""


def collect(maps: Mapping[str, Map], epoch: int, *, total: bool, buckets: bool) -> Counted:
    """Collect the counts of an epoch, which the programs no longer write to.

    Args:
        maps: the maps of the object.
        epoch: 0 or 1.
        total: mode total, with rows in arrays.
        buckets: read the histograms too.

    Raises:
        KernelError: a map could not be read.
    """
    counted: Counted = {}
    if total:
        _collect_totals(counted, maps, epoch, buckets=buckets)
    for key, row in maps["rows"].items():
        if key.epoch == epoch:
            _add(_row(counted, key), row)
    if buckets:
        for key, histogram in maps["histograms"].items():
            if key.epoch == epoch:
                _row(counted, key).add_buckets(histogram.buckets)
    for key, failed in maps["errors"].items():
        if key.row.epoch == epoch:
            _row(counted, key.row).add_errnos({key.errno_value: failed})
    return counted


def _collect_totals(
    counted: Counted, maps: Mapping[str, Map], epoch: int, *, buckets: bool
) -> None:
    for slot, abi, nr, per_cpu in _used_slots(maps, epoch):
        statistics = counted.setdefault(0, {})[call(nr, abi)] = Statistics()
        for row in per_cpu:
            _add(statistics, row)
        if buckets:
            for histogram in maps["total_histograms"][slot]:
                statistics.add_buckets(histogram.buckets)


def _used_slots(
    maps: Mapping[str, Map], epoch: int
) -> Iterator[tuple[int, int, int, tuple[Any, ...]]]:
    """Slot, ABI, number and the statistics of each CPU, where there are any."""
    for slot, per_cpu in maps["totals"].items():
        part, nr = divmod(slot, SLOTS)
        if part // _ABIS == epoch and any(row.calls for row in per_cpu):
            yield slot, part % _ABIS, nr, per_cpu


def _row(counted: Counted, key: Any) -> Statistics:
    rows = counted.setdefault(key.group, {})
    which = call(key.nr, key.abi)
    if which not in rows:
        rows[which] = Statistics()
    return rows[which]


def _add(statistics: Statistics, row: Any) -> None:
    statistics.add(
        row.calls,
        row.errors,
        row.total_ns,
        untimed=row.untimed,
        min_ns=row.min_ns,
        max_ns=row.max_ns,
        squares=row.squares_high << 64 | row.squares_low,
    )


def clear(maps: Mapping[str, Map], epoch: int, *, total: bool, buckets: bool) -> None:
    """Empty an epoch that was collected, so that it can be written to again.

    Raises:
        KernelError: a map could not be written.
    """
    if total:
        slots = [slot for slot, *_ in _used_slots(maps, epoch)]
        _zero(maps["totals"], slots)
        if buckets:
            _zero(maps["total_histograms"], slots)
    for name in ("rows", "histograms"):
        maps[name].delete([key for key in maps[name] if key.epoch == epoch])
    maps["errors"].delete([key for key in maps["errors"] if key.row.epoch == epoch])


def _zero(array: Map, slots: Iterable[int]) -> None:
    zero = bytes(array.info.value_size) * len(possible())  # sizes are multiples of 8
    array.update((slot, zero) for slot in slots)


def labels(mode: str, maps: Mapping[str, Map], others: Mapping[int, str]) -> Callable[[int], Label]:
    """Return a function that makes a label of a group's key, as bpf_src/summary.bpf.c has them.

    Args:
        mode: the kind of groups.
        maps: the maps of the object.
        others: names of groups that made no calls.

    Raises:
        KernelError: the names could not be read.
    """
    if mode == "cgroup":
        paths = paths_by_id()
        return lambda group: Label(group, paths.get(group, ""))
    if mode == "total":
        return lambda _: Label()
    comms = {**others, **{group: name.comm for group, name in maps["names"].items()}}
    if mode == "command":
        return lambda group: Label(0, comms.get(group, ""))
    return lambda group: Label(group & _NUMBER, comms.get(group, ""))


def by_label(groups: Iterable[Group]) -> tuple[Group, ...]:
    """Groups of one label as one."""
    rows: dict[Label, dict[Call, Statistics]] = {}
    faults: dict[Label, Faults | None] = {}
    for group in groups:
        merged = rows.setdefault(group.label, {})
        for row in group.rows:
            merged.setdefault(row.call, Statistics()).merge(row.statistics)
        before = faults.get(group.label)
        own = group.faults
        faults[group.label] = own if before is None or own is None else before.plus(own)
    return tuple(
        Group(label, tuple(map(SummaryRow._make, merged.items())), faults[label])
        for label, merged in rows.items()
    )


def without_generations(counted: Counted, faults: Mapping[int, Faults]) -> dict[int, Faults]:
    """Faults under the groups of calls that were counted by ID, without the time of their start.

    Programs without BTF cannot tell two threads apart that had the same ID.
    """
    groups = {group & _NUMBER: group for group in counted}
    merged: dict[int, Faults] = {}
    for group, own in faults.items():
        call_number = groups.get(group & _NUMBER, group)
        merged[call_number] = merged[call_number].plus(own) if call_number in merged else own
    return merged
