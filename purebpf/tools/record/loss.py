"""The losses of a recording, by cause, and the sentences at its end. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.results import Cause, Loss, count_cause
from purebpf.results.model.spelling import count_text
from purebpf.tuples import NamedTuple

__all__ = ["Recorded", "losses", "remarks"]


class Recorded(NamedTuple):
    """The outcome of a recording.

    Attributes:
        path: the file.
        size: its bytes.
        samples: those in the file.
        due: how many were due, None where only the kernel could tell.
        tolerance: how many of them an honest run may lack.
        lost: samples without room in a ring.
        side_band_lost: records of new processes and mappings without room.
        throttled: how often the kernel stopped sampling because it took too long.
        rejected: by event: each term of the filter, and the samples it rejected first.
        undecided: samples that pinned filter programs dropped without a verdict.
        outside: samples of processes that are not in the tree that is recorded: no loss.
        children_missed: processes of the tree that were not followed.
        program: the name of the user's own program, or "".
        program_dropped: samples that it dropped: no loss.
        records: records that it wrote, and that are in the file; None: it writes none.
        records_lost: records without room in a ring.
        notes: further remarks for the user: an event that replaces another.
    """

    path: str
    size: int
    samples: int
    due: int | None
    tolerance: int
    lost: int
    side_band_lost: int
    throttled: int
    rejected: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    undecided: int = 0
    outside: int = 0
    children_missed: int = 0
    program: str = ""
    program_dropped: int = 0
    records: int | None = None
    records_lost: int = 0
    notes: tuple[str, ...] = ()

    @property
    def dropped(self) -> int:
        """Samples that a filter rejected."""
        return sum(count for _, terms in self.rejected for _, count in terms)


def losses(recorded: Recorded) -> Loss:
    """Every way to lose something, zero or not."""
    causes: tuple[Cause, ...] = (
        count_cause(
            "ring_lost",
            recorded.lost,
            "samples were lost: the ring buffers were full. Lower -F, or enlarge them with -m",
        ),
        count_cause(
            "throttled",
            recorded.throttled,
            "times the kernel paused an event, as sampling took too much CPU "
            "(kernel.perf_cpu_time_max_percent). Lower -F",
        ),
        count_cause(
            "sideband_lost",
            recorded.side_band_lost,
            "records of new processes and mappings were lost: names of functions may be missing",
        ),
        count_cause(
            "undecided",
            recorded.undecided,
            "samples were dropped by a pinned filter program without a "
            "decision of this filter: another process of this user wrote to its table",
        ),
        count_cause(
            "children_missed",
            recorded.children_missed,
            "new processes were not followed: too many lived at once",
        ),
    )
    if recorded.records is not None:
        why = "records of the program were lost: the ring buffers were full. Enlarge them with -m"
        causes += (count_cause("records_lost", recorded.records_lost, why),)
    seen = recorded.samples + recorded.dropped + recorded.outside + recorded.program_dropped
    return Loss(recorded.due, seen, recorded.tolerance, causes)


def remarks(recorded: Recorded) -> Iterator[str]:
    """Yield sentences about the recorded data, and the effect of the filter."""
    yield from recorded.notes
    yield f"{recorded.path}: {count_text(recorded.samples, 'samples')}, {_bytes(recorded.size)}"
    for event, terms in recorded.rejected:
        for term, count in terms:
            yield f"filter: {event}: {count} rejected by {term}"
    if recorded.program:
        wrote = "" if recorded.records is None else f", {count_text(recorded.records, 'records')}"
        dropped = count_text(recorded.program_dropped, "samples")
        yield f"program {recorded.program}: {dropped} dropped{wrote}"


def _bytes(size: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size < 10_000:
            return f"{size:.0f} {unit}"
        size /= 1024  # type: ignore[assignment]
    return f"{size:.0f} GiB"
