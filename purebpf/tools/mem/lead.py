"""The first lines of the text: the growth of a process, and the functions that ask for it. Pure.

python3 (6573) grew by 12.2 MB in 5.0 s (2.4 MB/s), to 32.7 MB
    12.1 MB          in Python's arenas of objects, and large blocks of malloc (mmap)
  new pages were first used:
    11.2 MB    92 %  remember (feed.py:9) < serve (feed.py:15)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from purebpf.findings.places import sum_places
from purebpf.measure.activities import activity_of
from purebpf.results.model.spelling import count_text, printable
from purebpf.results.model.units import bytes_in_unit
from purebpf.results.model.width import cut
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.results import Profile
    from purebpf.tools.mem.growth import Growth
    from purebpf.tools.mem.profiles import MemoryUse

__all__ = ["choose_profile", "describe_growth"]

_PAGE = 4096
_LEAST = 256 << 10
"""Bytes; a process that grows by less, or by less than `_LEAST_SHARE`, did not grow."""
_LEAST_SHARE = 0.005
_MOST_PROCESSES = 3
_MOST_AREAS = 2
_MOST_PLACES = 5
_WORTH = 0.02
_NEAR = math.log(1.5)
_FEW_CALLS, _REUSED = 32, 2.5
"""Calls of mmap and brk that tell little; first uses of pages by growth, some of them again."""
_FILE = "file mmap"
_WIDTH = 80


class _Source(NamedTuple):
    """Bytes by path of functions, by one way to count them; `shown` is one of `SHOWN`."""

    shown: str
    how: str
    by_path: Mapping[tuple[str, ...], float]

    @property
    def total(self) -> float:
        """Return the bytes of all paths."""
        return sum(self.by_path.values())


def describe_growth(growths: Sequence[Growth], use: MemoryUse, elapsed_s: float) -> Iterator[str]:
    """Yield the lines about processes, the one that grew most first; none without a reading."""
    for growth in growths[:_MOST_PROCESSES]:
        grown = growth.after - growth.before
        who = printable(f"{growth.name} ({growth.pid})")
        if not _has_grown(growth):
            change = f"{'-' if grown < 0 else '+'}{bytes_in_unit(abs(grown))}"
            yield f"{who} did not grow: {bytes_in_unit(growth.after)} ({change})\n"
            continue
        rate = f" ({bytes_in_unit(round(grown / elapsed_s))}/s)" if elapsed_s > 0 else ""
        span = f" in {elapsed_s:.1f} s{rate}, to {bytes_in_unit(growth.after)}"
        yield f"{who} grew by {bytes_in_unit(grown)}{span}\n"
        yield from _areas(growth.areas)
        yield from _places(growth, use)
    if len(growths) > _MOST_PROCESSES:
        rest = growths[_MOST_PROCESSES:]
        total = sum(growth.after - growth.before for growth in rest)
        sign = "-" if total < 0 else ""
        more = count_text(len(rest), "more processes")
        yield f"{more}: {sign}{bytes_in_unit(abs(total))} in all\n"


def choose_profile(growths: Sequence[Growth], use: MemoryUse) -> str | None:
    """Return one of `SHOWN`, the one that explains the growth best; None: no process grew."""
    if not growths or not _has_grown(growths[0]):
        return None
    source = _choose(growths[0].after - growths[0].before, growths[0].pid, use)
    return source.shown if source.by_path else None


def _has_grown(growth: Growth) -> bool:
    return growth.after - growth.before >= max(_LEAST, _LEAST_SHARE * growth.before)


def _areas(areas: Mapping[str, int]) -> Iterator[str]:
    least = _WORTH * sum(map(abs, areas.values()))
    for name in sorted(areas, key=lambda name: -areas[name])[:_MOST_AREAS]:
        size = areas[name]
        if name and size >= least:
            yield f"{bytes_in_unit(size):>11}         in {printable(name)}\n"


def _places(growth: Growth, use: MemoryUse) -> Iterator[str]:
    source = _choose(growth.after - growth.before, growth.pid, use)
    total = source.total
    if not total:
        return
    yield f"  {source.how}:\n"
    ranked = sorted(source.by_path.items(), key=lambda place: -place[1])
    for path, size in ranked[:_MOST_PLACES]:
        if size < _WORTH * total:
            break
        head = f"{bytes_in_unit(round(size)):>11}  {100 * size / total:3.0f} %  "
        yield from _wrapped(head, path or ("[unknown]",))


def _wrapped(head: str, path: Sequence[str]) -> Iterator[str]:
    line = head + printable(path[0])
    for name in path[1:]:
        part = f" < {printable(name)}"
        if len(line) + len(part) > _WIDTH:
            yield f"{cut(line, _WIDTH)}\n"
            line = " " * (len(head) - 1)
        line += part
    yield f"{cut(line, _WIDTH)}\n"


def _choose(grown: int, pid: int, use: MemoryUse) -> _Source:
    """Return the count whose sum explains the growth best; the exact one first.

    Memory that nobody freed is exact where malloc was traced. First uses of pages are samples of 4
    kB. Calls of mmap and brk come rarely, and also for memory that is given back soon.
    """
    sources = [
        _Source("unfreed", "allocated and not freed", _by_path(use.unfreed, pid, 1)),
        _Source("faults", "new pages were first used", _by_path(use.faults, pid, _PAGE)),
        _Source("grown", "asked for by mmap and brk", _by_path(use.grown, pid, 1)),
    ]
    distances = [
        abs(math.log(source.total / grown)) if source.total else math.inf for source in sources
    ]
    near = [source for source, far in zip(sources, distances, strict=True) if far <= _NEAR]
    chosen = near[0] if near else sources[distances.index(min(distances))]
    pages = sources[1]
    is_chance = chosen.shown == "grown" and _count(use.grown, pid) < _FEW_CALLS
    return pages if is_chance and grown <= pages.total <= _REUSED * grown else chosen


def _count(profile: Profile, pid: int) -> int:
    """The calls of a process; a few say who came by when memory was used up, not who uses it."""
    rows = (row for row in profile.rows() if row.labels.pid == pid)
    return sum(row.marks.times for row in rows if row.labels.state != _FILE)


def _by_path(profile: Profile, pid: int, unit: int) -> dict[tuple[str, ...], float]:
    activities = [
        activity_of(row, "cpu", row.weight * unit)
        for row in profile.rows()
        if row.labels.pid == pid and row.labels.state != _FILE
    ]
    sums: dict[tuple[str, ...], float] = {}
    for place in sum_places(activities):
        sums[place.path] = sums.get(place.path, 0.0) + place.seconds
    return sums
