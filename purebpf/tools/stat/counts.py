"""The counts: readings of counters, added up. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.results import Cause, Loss, count_cause
from purebpf.tuples import NamedTuple

__all__ = ["Count", "CountedEvent", "Part", "Result", "Usage", "add_up", "losses"]


class CountedEvent(NamedTuple):
    """An event that is counted, or would be.

    Attributes:
        name: as the user spelt it.
        kind: the kernel's name of it, whichever alias was typed; "" where it has none.
        spaces: the modifiers that tell which code counts, such as "u".
        group: the number of its group.
        unit: "ns" for clocks, "" for counts.
        why_not: why this machine does not count it; "" if it does.
    """

    name: str
    kind: str
    spaces: str
    group: int
    unit: str = ""
    why_not: str = ""


class Part(NamedTuple):
    """The reading of one counter for the event of a number, for the row `key`. Times in
    nanoseconds.

    The event was wanted for `enabled_ns` and on a counter for `running_ns`.
    """

    event: int
    key: str
    counted: int
    enabled_ns: int
    running_ns: int


class Count(NamedTuple):
    """An event's count in one row.

    Attributes:
        event: which.
        key: the subject of the row: "CPU 3", "name-185", a cgroup; "" for everything together.
        counted: the sum of the counters.
        value: the same, scaled up where the event had no counter for a part of the time: an
            estimate then. None: it never had one while it was wanted, or it is not supported.
        enabled_ns, running_ns: for how long it was wanted, and on a counter; of all counters.
        uncounted: counters that were wanted and never ran: `value` does not have their part.
        standard_error: of the value, where that is the mean of several runs.
    """

    event: CountedEvent
    key: str
    counted: int
    value: float | None
    enabled_ns: int
    running_ns: int
    uncounted: int = 0
    standard_error: float | None = None

    @property
    def is_scaled(self) -> bool:
        """True if the value is an estimate."""
        return self.value is not None and self.running_ns < self.enabled_ns

    @property
    def percent_running(self) -> float:
        """For how much of the time the event had a counter."""
        return 100 * self.running_ns / self.enabled_ns if self.enabled_ns else 100.0


class Usage(NamedTuple):
    """The usage of a command, itself and the children that it waited for (wait4(2))."""

    user_s: float
    system_s: float


class Result(NamedTuple):
    """The counts of an interval or of a whole run; `time_s` is its end, since the start.

    Of several `runs`, every number is a mean; `elapsed_error` is the standard error of `elapsed_s`.
    """

    counts: tuple[Count, ...]
    elapsed_s: float
    time_s: float
    loss: Loss
    notes: tuple[str, ...] = ()
    usage: Usage | None = None
    runs: int = 1
    elapsed_error: float | None = None


def add_up(
    events: Iterable[CountedEvent], keys: Iterable[str], parts: Iterable[Part]
) -> list[Count]:
    """A count for each event in each row, in this order: rows, and in each the events.

    Each counter is scaled by its own times: CPUs may differ in how many events shared them.
    """
    sums: dict[tuple[str, int], list[Part]] = {}
    for part in parts:
        sums.setdefault((part.key, part.event), []).append(part)
    numbered = list(enumerate(events))
    return [
        _count(event, key, sums.get((key, number), ()))
        for key in keys
        for number, event in numbered
    ]


def _count(event: CountedEvent, key: str, parts: Iterable[Part]) -> Count:
    counted = value = enabled = running = uncounted = ran = 0
    for part in parts:
        counted += part.counted
        enabled += part.enabled_ns
        running += part.running_ns
        if part.running_ns:
            ran += 1
            value += part.counted * part.enabled_ns // part.running_ns
        elif part.enabled_ns:
            uncounted += 1
        else:  # the task did not run: nothing to count
            ran += 1
            value += part.counted
    known = not event.why_not and (ran or not uncounted)
    return Count(event, key, counted, value if known else None, enabled, running, uncounted)


def losses(counts: Iterable[Count], others: Iterable[Cause] = ()) -> Loss:
    """Return the losses of the counts, zero or not; `others` are further causes."""
    counts = list(counts)
    reasons = {count.event.name: count.event.why_not for count in counts if count.event.why_not}
    why = "; ".join(dict.fromkeys(reasons.values()))
    cannot = f"events cannot be counted here ({', '.join(reasons)}): {why}"
    uncounted = sum(1 for count in counts if count.uncounted)
    return Loss(
        causes=(
            _cause("not_supported", len(reasons), cannot),
            _cause("not_counted", uncounted, "counts are incomplete: the CPU had no free counter"),
            *others,
        )
    )


def _cause(name: str, lost: int, noun: str) -> Cause:
    return count_cause(name, lost, noun)
