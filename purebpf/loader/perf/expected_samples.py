"""The number of samples due from an event, by its count."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.abi.perf import PERF_EVENT_ATTR, perf_sw_ids, perf_type_id

__all__ = ["samples_due"]

_CLOCKS = tuple(
    (perf_type_id.PERF_TYPE_SOFTWARE, number)
    for number in (perf_sw_ids.PERF_COUNT_SW_CPU_CLOCK, perf_sw_ids.PERF_COUNT_SW_TASK_CLOCK)
)
_EXCLUDED = ("exclude_user", "exclude_kernel", "exclude_idle")
_SECOND_NS = 1_000_000_000
_SHORTEST_NS = 10_000  # the clocks sample no more often (perf_swevent_start_hrtimer)


def samples_due(attr: bytes, counts: Iterable[int]) -> int | None:
    """Return how many samples the counts of an event are worth; None if only the kernel could tell.

    A frequency is a period of the clocks alone. They go on where they are not to be sampled, so
    a restricted one says nothing.

    Args:
        attr: the event's struct perf_event_attr.
        counts: one for each descriptor of it; each has a rest that is worth no sample yet.
    """
    fields = PERF_EVENT_ATTR.unpack(attr)
    is_clock = (fields["type"], fields["config"]) in _CLOCKS
    if is_clock and any(fields[name] for name in _EXCLUDED):
        return None
    period = int(fields["sample_period"])
    if fields["freq"]:
        if not is_clock:
            return None
        period = _SECOND_NS // period  # as the kernel does (perf_swevent_init_hrtimer)
    if is_clock:
        period = max(period, _SHORTEST_NS)
    return sum(count // period for count in counts) if period else 0
