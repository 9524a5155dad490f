"""The text of threads' time: own functions at work, idle waits below a line, stacks. Pure.

   4.93 s   98 %  1 thread   sleeps in throttle (rates.py) < rate_of (rates.py)
idle, waiting for something to do: 5.02 s
   5.02 s         1 thread   waits to be woken in _worker (thread.py)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from purebpf.findings.facts import Activity
from purebpf.findings.kinds import describe_kind
from purebpf.findings.places import (
    IDLE,
    UNREAD,
    WORK,
    TimePlace,
    classify,
    first_function,
    programs_of,
    sum_places,
)
from purebpf.measure.activities import activity_of, named_frames
from purebpf.results.build.interrupts import INTERRUPT
from purebpf.results.model.spelling import count_text, printable
from purebpf.results.model.units import in_unit
from purebpf.results.model.width import WIDTH, cut

if TYPE_CHECKING:
    from purebpf.findings.ownership import Program
    from purebpf.results import Profile
    from purebpf.results.model.profile import Row

__all__ = [
    "TELL_IDLE",
    "brief",
    "describe_place",
    "mark_idle",
    "pieces",
    "places_of",
    "wrapped_place",
]

TELL_IDLE = ("html", "json")
"""Formats that tell waits for something to do from the others."""
_MOST_WORK = 10
_MOST_IDLE = 5
_MOST_LINES, _LEAST_OF_A_LINE = 3, 10
"""Lines of a function that are named, and the percent of its time that each of them has."""
_MOST_WAKERS, _LEAST_OF_A_WAKER = 2, 10
"""Wakers that are named, and the percent of the waits that each of them ended."""
_LEAST_SHARE = 0.005
"""Of the time of all work: shorter times are only summed."""
_FOR_REQUESTS = "waits to read from a connection"
_KINDS = {"on-CPU": "cpu", "run-queue": "queue"}


def pieces(
    profile: Profile,
    *,
    top: int | None = None,
    everything: bool = False,
    whole_names: bool = False,
) -> Iterator[str]:
    """Return the places of threads' time, then the stacks of those that work, the heaviest last.

    A profile without user stacks (of kernel threads, `--kernel-stacks-only`) has no such places:
    its text is `answer.pieces`.

    Args:
        profile: in nanoseconds, a row for each thread and stack.
        top: how many places of each kind, functions and stacks; None: 5 to 12.
        everything: all places, functions and stacks.
        whole_names: names however long they are.
    """
    from purebpf.results.formats import answer  # not for the places of a dump

    rows = profile.rows()
    if not any(row.user for row in rows):
        yield from answer.pieces(profile, top=top, everything=everything, whole_names=whole_names)
        return
    activities = _activities(rows)
    places = _sum(rows, activities)
    width = 1 << 30 if whole_names else WIDTH
    yield from _tables(places, width, top, everything=everything)
    yield "\n"
    shown = profile
    if not everything:
        uses = classify(activities)
        working = [row for row, (_, use) in zip(rows, uses, strict=True) if use == WORK]
        shown = _of_rows(profile, working) if working else profile
    has_table = everything or shown is profile
    yield from answer.pieces(
        shown, top=top, everything=everything, whole_names=whole_names, has_table=has_table
    )


def brief(profile: Profile, most: int) -> Iterator[str]:
    """Return the `most` longest places at work and at most as many idle ones, as lines.

    A profile without user stacks has functions instead.
    """
    rows = profile.rows()
    if any(row.user for row in rows):
        return _tables(places_of(rows), WIDTH, most, everything=False)
    from purebpf.results.formats import answer

    return iter(answer.functions(profile, most))


def places_of(rows: Sequence[Row]) -> list[TimePlace]:
    """Return the places of rows in nanoseconds, the longest first."""
    return _sum(rows, _activities(rows))


def _sum(rows: Sequence[Row], activities: Sequence[Activity]) -> list[TimePlace]:
    names = {row.labels.pid: row.labels.process_name for row in rows}
    return sum_places(activities, names, _wakers(rows, activities))


def _wakers(rows: Sequence[Row], activities: Sequence[Activity]) -> list[str]:
    """Name who ended the waits of each row, `writer (4711) in flush (log.py:12)`; [] if unasked."""
    if not any(row.marks.waker for row in rows):
        return []
    spelled: dict[object, str] = {}
    wakings = [_waking(row) for row in rows]
    programs = programs_of([*activities, *filter(None, wakings)])
    names = []
    for row, waking in zip(rows, wakings, strict=True):
        key = waking and waking._replace(tid=0), row.labels.pid
        if key not in spelled:
            spelled[key] = _spell_waker(waking, row.labels.pid, programs) if waking else ""
        names.append(spelled[key])
    return names


def _waking(row: Row) -> Activity | None:
    """The wake-up that ended a wait, as an activity of the waker."""
    waker = row.marks.waker
    if waker is None:
        return None
    return Activity(
        *(waker.pid, waker.tid, waker.comm, "cpu", "", 0.0, ()), named_frames(waker.user)
    )


def _spell_waker(waking: Activity, pid: int, programs: Mapping[int, Program]) -> str:
    if waking.comm == INTERRUPT:
        return "a timer or a device"
    who = waking.comm if waking.pid == pid else f"{waking.comm} ({waking.pid})"
    function = first_function(programs[waking.pid], waking.user)
    return f"{who} in {function}" if function else who


def _activities(rows: Iterable[Row]) -> list[Activity]:
    """The activities of rows. Equal stacks are one object: 10,000 threads may wait at one place."""
    stacks: dict[object, Any] = {}
    return [_activity(row, lambda stack: stacks.setdefault(stack, stack)) for row in rows]


def _activity(row: Row, share: Callable[[Any], Any]) -> Activity:
    kind = _KINDS.get(row.marks.kind, "wait")
    activity = activity_of(row, kind, row.weight / 1e9)
    return activity._replace(
        times=row.marks.times,
        is_open=row.marks.is_open,
        user=share(activity.user),
        kernel=share(activity.kernel),
    )


def mark_idle(profile: Profile) -> Profile:
    """Return a profile whose waits for something to do are marked, for its page and as JSON."""
    rows = profile.rows()
    if profile.unit != "ns" or not any(row.user for row in rows):
        return profile
    marked = profile.without_rows()
    for row, (_, use) in zip(rows, classify(_activities(rows)), strict=True):
        is_idle = use == IDLE
        marked.add_row(row._replace(marks=row.marks._replace(is_idle=True)) if is_idle else row)
    return marked


def describe_place(place: TimePlace, *, with_process: bool) -> str:
    """Return a place in one line: `wait for a lock in hold (w.py:7) < main (w.py:20)`."""
    use = {WORK: "", IDLE: "idle: ", UNREAD: "not known: "}[place.use]
    return use + " ".join(_sentence(place, with_process=with_process))


def _of_rows(profile: Profile, rows: Iterable[Row]) -> Profile:
    part = profile.without_rows()
    for row in rows:
        part.add_row(row)
    return part


def _tables(
    places: Sequence[TimePlace], width: int, top: int | None, *, everything: bool
) -> Iterator[str]:
    working = [place for place in places if place.use == WORK]
    idle = [place for place in places if place.use == IDLE]
    unread = [place for place in places if place.use == UNREAD]
    total = sum(place.seconds for place in working)
    with_process = len({place.process for place in places}) > 1
    if working:
        yield from _lines(
            working, total, width, top or _MOST_WORK, with_process, everything=everything
        )
    else:
        yield "  no thread was seen at work, or waiting in the middle of it\n"
    of_go = sorted({pid for place in idle if place.kind == "go-park" for pid in place.pids})
    if of_go:
        yield f"  goroutines wait without a thread: purebpf dump {of_go[0]} shows them\n"
    if idle:
        yield f"idle, waiting for something to do: {_spell(sum(p.seconds for p in idle))}\n"
        yield from _lines(idle, 0, width, top or _MOST_IDLE, with_process, everything=everything)
    if unread:
        yield (
            f"not known, as the stack could not be read: {_spell(sum(p.seconds for p in unread))}\n"
        )


def _lines(
    places: Sequence[TimePlace],
    total: float,
    width: int,
    most: int,
    with_process: bool,  # noqa: FBT001
    *,
    everything: bool,
) -> Iterator[str]:
    worth = [place for place in places if place.seconds >= _LEAST_SHARE * total] or places
    shown = list(places if everything else worth[:most])
    for place in shown:
        share = f"{100 * place.seconds / total:3.0f} %" if total else " " * 5
        threads = f"{place.threads} thread" + ("s" if place.threads > 1 else "")
        head = f"  {_spell(place.seconds):>7}  {share}  {threads:<10}"
        yield from _wrapped(head, _sentence(place, with_process=with_process), width)
    if len(places) > len(shown):
        rest = sum(place.seconds for place in places[len(shown) :])
        left_out = count_text(len(places) - len(shown), "others")
        yield f"  {_spell(rest):>7}         in {left_out} (all: --all)\n"


def wrapped_place(place: TimePlace, use: str = "", noun: str = "threads") -> Iterator[str]:
    """Return the lines of a place without its time: `5 threads  wait for a lock in hold (w.py)`."""
    first, *rest = _sentence(place, with_process=False)
    head = f"  {count_text(place.threads, noun):<10}"
    yield from _wrapped(head, [f"{use}{first}", *rest], WIDTH)


def _sentence(place: TimePlace, *, with_process: bool) -> list[str]:
    is_server = place.use == IDLE and place.kind == "sock-read"
    text = _FOR_REQUESTS if is_server else describe_kind(place.kind)
    parts = [_verb(text, place.threads)]
    if place.path:
        parts.append(f"in {place.path[0]}")
        parts += _lines_of(place)
        parts += [f"< {name}" for name in place.path[1:]]
    if with_process:
        pids = str(place.pids[0]) if len(place.pids) == 1 else f"{len(place.pids)} PIDs"
        parts.append(f"- {place.process} ({pids})")
    parts += _wakers_of(place)
    return [printable(part) for part in parts]


def _lines_of(place: TimePlace) -> list[str]:
    """The heaviest lines of a function, if it has several: `(lines 12 60 %, 14 30 %)`."""
    shares = [(line, 100 * seconds / (place.seconds or 1.0)) for line, seconds in place.lines]
    worth = [
        f"{line} {part:.0f} %"
        for line, part in shares[:_MOST_LINES]
        if line and part >= _LEAST_OF_A_LINE
    ]
    return [f"(line{'s' if len(worth) > 1 else ''} {', '.join(worth)})"] if worth else []


def _wakers_of(place: TimePlace) -> list[str]:
    """Name the wakers of most of the waits: `woken by writer (4711) in flush (log.py:12) 90 %`."""
    known = sum(seconds for _, seconds in place.wakers) or 1.0
    shares = [(waker, 100 * seconds / known) for waker, seconds in place.wakers]
    return [
        f"woken by {waker} {part:.0f} %"
        for waker, part in shares[:_MOST_WAKERS]
        if part >= _LEAST_OF_A_WAKER
    ]


def _verb(text: str, threads: int) -> str:
    """Return `waits for a lock` of one thread, `wait for a lock` of several."""
    verb, _, rest = text.partition(" ")
    if threads > 1:
        verb = "are" if verb == "is" else verb.removesuffix("s")
    return f"{verb} {rest}".strip()


def _wrapped(head: str, parts: Sequence[str], width: int) -> Iterator[str]:
    line, margin = head, " " * len(head)
    for part in parts:
        if len(line) + 1 + len(part) > width and line.strip() and line is not head:
            yield f"{cut(line, width)}\n"
            line = margin
        line = f"{line} {part}"
    yield f"{cut(line, width)}\n"


def _spell(seconds: float) -> str:
    return in_unit(1e9 * seconds)
