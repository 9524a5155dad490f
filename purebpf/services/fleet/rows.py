"""Rows of the tables, and the collector of a batch of them. Pure.

A delivery is one window of one host and kind. Its row in `windows` says that all its samples are
stored: it is written last.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

__all__ = [
    "COLUMNS",
    "KINDS",
    "Batch",
    "Delivery",
    "Frame",
    "Hour",
    "Ids",
    "Sample",
    "Series",
    "Window",
    "hour_of",
]

KINDS = ("cpu", "offcpu", "runqueue")
COLUMNS = {
    "host.name": "host",
    "service.name": "service",
    "service.version": "version",
    "k8s.namespace.name": "namespace",
    "k8s.pod.name": "pod",
    "k8s.container.name": "container",
    "container.id": "container_id",
    "systemd.unit": "unit",
}
"""Attributes of OpenTelemetry that have columns of their own; the others are labels."""
_HOUR_US = 3_600_000_000
Row = TypeVar("Row")


class Frame(NamedTuple):
    """A function, or a place in a file without a name yet (`file_offset` is -1 otherwise)."""

    frame: int
    function: str
    module: str
    build_id: str
    file_offset: int
    kind: str


class Series(NamedTuple):
    """The common facts of samples."""

    series: int
    host: str
    service: str
    version: str
    namespace: str
    pod: str
    container: str
    container_id: str
    unit: str
    comm: str
    labels: tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    """A stack of a series in a window. `value` is nanoseconds."""

    series: int
    stack: int
    value: int


class Window(NamedTuple):
    """A window of a host, and its facts. Times in microseconds since 1970, UTC."""

    ts_us: int
    host: str
    kind: str
    delivery: int
    start_id: str
    duration_ns: int
    period_ns: int
    expected: int
    seen: int
    lost: tuple[tuple[str, int], ...]
    unknown_ppm: int
    bpf_run_ns: int
    agent_cpu_ns: int
    rss_bytes: int
    spool_bytes: int
    dropped_windows: int
    clock_offset_ns: int


class Delivery(NamedTuple):
    """One window with its samples, and the stacks and frames of these."""

    window: Window
    samples: list[Sample]
    series: dict[int, Series]
    stacks: dict[int, tuple[int, ...]]
    frames: dict[int, Frame]

    @property
    def weight(self) -> int:
        """The number of rows; 32 frames of stacks count as one."""
        frames = len(self.frames) + sum(map(len, self.stacks.values())) // 32
        return 1 + len(self.samples) + len(self.series) + len(self.stacks) + frames


class Hour(NamedTuple):
    """The part of a batch in an hour; `deliveries` in order of arrival."""

    deliveries: list[Delivery]
    series: dict[int, Series]
    stacks: dict[int, tuple[int, ...]]
    frames: dict[int, Frame]


class Ids:
    """Series, stacks and frames that a date has."""

    __slots__ = ("frames", "series", "stacks")

    def __init__(self) -> None:
        self.series: set[int] = set()
        self.stacks: set[int] = set()
        self.frames: set[int] = set()

    def __len__(self) -> int:
        return len(self.series) + len(self.stacks) + len(self.frames)

    def add(self, others: Ids) -> None:
        """Add the rows of another."""
        self.series |= others.series
        self.stacks |= others.stacks
        self.frames |= others.frames


class Batch:
    """Deliveries by hour, each with the rows that its date lacks.

    Args:
        known: the stored ids of each date.
    """

    def __init__(self, known: dict[str, Ids]) -> None:
        self._known = known
        self._new: dict[str, Ids] = {}
        self.hours: dict[str, Hour] = {}
        self.rows = 0

    def add(self, delivery: Delivery) -> None:
        """Take one in."""
        hour = hour_of(delivery.window.ts_us)
        known = self._known.setdefault(hour[:10], Ids())
        new = self._new.setdefault(hour[:10], Ids())
        rows = self.hours.setdefault(hour, Hour([], {}, {}, {}))
        rows.deliveries.append(delivery)
        self.rows += len(delivery.samples)
        _add_new(delivery.series, rows.series, known.series, new.series)
        _add_new(delivery.stacks, rows.stacks, known.stacks, new.stacks)
        _add_new(delivery.frames, rows.frames, known.frames, new.frames)

    def stored(self) -> None:
        """All of it is."""
        for date, new in self._new.items():
            self._known.setdefault(date, Ids()).add(new)


def _add_new(theirs: dict[int, Row], mine: dict[int, Row], known: set[int], new: set[int]) -> None:
    for number in theirs.keys() - known - new:
        mine[number] = theirs[number]
        new.add(number)


def hour_of(ts_us: int) -> str:
    """The hour of a time, as folders are called: `2026-11-23T07`, UTC."""
    import time

    return time.strftime("%Y-%m-%dT%H", time.gmtime(ts_us // _HOUR_US * 3600))
