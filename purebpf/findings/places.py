"""Sums of the time that threads spend in places, by own function; idle waits stand apart. Pure.

A command that measures waits shows these sums first. Kernel functions and the start of a thread are
the same in every stack; the own function and the kind of its wait differ.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from purebpf.findings.facts import Activity, StackFrame
from purebpf.findings.ownership import RESOLVER, Program, is_interpreter, is_java, short_name
from purebpf.findings.waiting import (
    Judgement,
    Side,
    are_deeper_than_home,
    handles_a_request,
    judge,
    takes_jobs,
)
from purebpf.symbols.script_names import spell_script
from purebpf.tuples import NamedTuple

__all__ = [
    "IDLE",
    "UNREAD",
    "WORK",
    "TimePlace",
    "classify",
    "first_function",
    "programs_of",
    "sum_places",
]

WORK, IDLE, UNREAD = "work", "idle", "unread"
"""In the middle of work; for something to do; no user stack that could tell the two apart."""

_MOST_FUNCTIONS = 3
_HOME_SHARE = 0.02
"""Of the time of a thread: shorter waits are no home."""
_TOLD_BY_KERNEL = frozenset({"cpu", "queue", "gil", "fsync", "disk", "pipe-write", "memory-limit"})
"""Kinds that are known without a user stack."""
_NEARLY_ALL = 0.95
_CALLED = 2
"""Own functions: one that waits, and its caller."""
_QUESTIONS, _ANSWER_S = 20, 0.05
"""Reads of one thread, and their mean length, that are answers to its questions."""
_OF_RESOLVERS = frozenset({"poll", "sock-read", "epoll"})
_SYSTEM_LIBRARIES = ("/libc.so", "/libc-", "/libpthread", "/ld-linux", "[vdso]")


class TimePlace(NamedTuple):
    """The time that alike threads of a program spent alike.

    Attributes:
        process: its name.
        pids: of the processes; `threads` counts their threads.
        kind: "cpu", "queue" or the kind of a wait ("lock", "sleep", "sock-read").
        use: `WORK`, `IDLE` or `UNREAD`.
        path: own functions, the innermost first, or else the innermost function of a library.
        times: number of waits; 0 where it is not known.
        open_s: the part of `seconds` in waits that were not over at the end.
        lines: the seconds of the first function's lines, the heaviest first, where these are
            several.
        wakers: who ended the waits, with their seconds, the heaviest first.
    """

    process: str
    pids: tuple[int, ...]
    threads: int
    kind: str
    use: str
    path: tuple[str, ...]
    seconds: float
    times: int
    open_s: float
    lines: tuple[tuple[int, float], ...] = ()
    wakers: tuple[tuple[str, float], ...] = ()


def sum_places(
    activities: Sequence[Activity],
    names: Mapping[int, str] | None = None,
    wakers: Sequence[str] = (),
) -> list[TimePlace]:
    """Add up equal activities, the longest first.

    Args:
        activities: of any processes.
        names: of the processes, by process ID; threads have names of their own.
        wakers: who ended each activity; "" where that is not known. Empty: nobody asked.
    """
    names, sums = names or {}, dict[tuple[str, str, str, tuple[str, ...]], list[_Part]]()
    programs = programs_of(activities)
    classes, wakers = classify(activities), wakers or [""] * len(activities)
    for activity, (kind, use), waker in zip(activities, classes, wakers, strict=True):
        path = _path(programs[activity.pid], activity.user)
        key = names.get(activity.pid, activity.comm), kind, use, tuple(name for name, _ in path)
        part = _Part(activity, tuple(line for _, line in path), waker)
        sums.setdefault(key, []).append(part)
    places = [_place(key, alike) for key, alike in sums.items()]
    return sorted(places, key=lambda place: -place.seconds)


class _Part(NamedTuple):
    """An activity, the line of each function of its path (0: not known), and who ended it."""

    activity: Activity
    lines: tuple[int, ...]
    waker: str


def _place(key: tuple[str, str, str, tuple[str, ...]], parts: Sequence[_Part]) -> TimePlace:
    process, kind, use, path = key
    alike = [part.activity for part in parts]
    seconds = [_lines_at(parts, at) for at in range(len(path))]
    several = seconds[0] if seconds and not _is_one(seconds[0]) else ()
    return TimePlace(
        process,
        tuple(sorted({one.pid for one in alike})),
        len({(one.pid, one.tid) for one in alike}),
        kind,
        use,
        tuple(_with_line(name, lines) for name, lines in zip(path, seconds, strict=True)),
        sum(one.seconds for one in alike),
        sum(one.times for one in alike),
        sum(one.seconds for one in alike if one.is_open),
        tuple(several),
        tuple(_wakers(parts)),
    )


def _wakers(parts: Sequence[_Part]) -> list[tuple[str, float]]:
    seconds: Counter[str] = Counter()
    for part in parts:
        if part.waker:
            seconds[part.waker] += round(1e9 * part.activity.seconds)
    return [(waker, total / 1e9) for waker, total in seconds.most_common()]


def _lines_at(parts: Sequence[_Part], at: int) -> list[tuple[int, float]]:
    """The lines of one function of a path with their seconds, the heaviest first."""
    seconds: Counter[int] = Counter()
    for part in parts:
        seconds[part.lines[at]] += round(1e9 * part.activity.seconds)
    return [(line, total / 1e9) for line, total in seconds.most_common()]


def _with_line(name: str, lines: Sequence[tuple[int, float]]) -> str:
    """`pause (shop.py:12)`, if nearly all the time is spent in one line."""
    if not _is_one(lines) or not lines[0][0] or not name.endswith(")"):
        return name
    return f"{name[:-1]}:{lines[0][0]})"


def classify(activities: Sequence[Activity]) -> list[tuple[str, str]]:
    """Return kind and use of each activity."""
    programs = programs_of(activities)
    judged = [_judge(programs[one.pid], one) for one in activities]
    by_thread: dict[tuple[int, int], list[int]] = defaultdict(list)
    for at, one in enumerate(activities):
        if one.kind == "wait" and _is_read(one):
            by_thread[one.pid, one.tid].append(at)
    deeper = set[int]()
    for places in by_thread.values():
        waits = [
            (judged[at], activities[at].seconds, activities[at].times, Side.UNKNOWN)
            for at in places
        ]
        least_s = _HOME_SHARE * sum(seconds for _, seconds, _, _ in waits)
        below = are_deeper_than_home(waits, least_s)
        deeper |= {at for at, is_below in zip(places, below, strict=True) if is_below}
        if len(places) == 1 and judged[places[0]].kind == "cond":
            one = activities[places[0]]
            deeper |= {places[0]} if handles_a_request(programs[one.pid], one.user) else set()
    deeper |= _holders(activities, judged, programs)
    deeper |= _java_pools(activities, judged, programs)
    for places in by_thread.values():
        deeper |= _questions(places, activities, judged, programs)
    return [
        (judgement.kind, _use(one, judgement, is_deeper=at in deeper))
        for at, (one, judgement) in enumerate(zip(activities, judged, strict=True))
    ]


def _java_pools(
    activities: Sequence[Activity], judged: Sequence[Judgement], programs: Mapping[int, Program]
) -> set[int]:
    """Parked threads of Java in an own function that others have got past: a pool of its own.

    Others do their work below the same caller. A consumer parks in the function that works, or in
    one that is named for taking jobs.
    """
    parked: dict[tuple[int, str, str], set[int]] = defaultdict(set)
    working: dict[int, set[tuple[str, ...]]] = defaultdict(set)
    for at, (one, judgement) in enumerate(zip(activities, judged, strict=True)):
        is_parked = judgement.kind == "java-park" and judgement.is_called
        if not is_parked and not judgement.is_work:
            continue
        path = tuple(frame.name for frame in one.user if programs[one.pid].owns(frame))
        if judgement.is_work:
            working[one.pid].add(path)
        if is_parked and len(path) >= _CALLED and not takes_jobs(path[0].rpartition(".")[2]):
            parked[one.pid, path[0], path[1]].add(at)
    found = set[int]()
    for (pid, waits, caller), places in parked.items():
        if any(caller in names and waits not in names for names in working[pid]):
            found |= places
    return found


def _questions(
    places: Sequence[int],
    activities: Sequence[Activity],
    judged: Sequence[Judgement],
    programs: Mapping[int, Program],
) -> set[int]:
    """Short reads from connections of a thread whose own functions have no names: Perl, Lua.

    Who serves requests waits for connections as well. Somebody answers this one each time.
    """
    if any(judged[at].kind in ("accept", "epoll", "poll") for at in places):
        return set()
    reads = [
        at
        for at in places
        if judged[at].kind == "sock-read"
        and not any(map(programs[activities[at].pid].owns, activities[at].user))
        and is_interpreter(programs[activities[at].pid].exe)
    ]
    times = sum(activities[at].times for at in reads)
    seconds = sum(activities[at].seconds for at in reads)
    return set(reads) if times >= _QUESTIONS and seconds < _ANSWER_S * times else set()


def _holders(
    activities: Sequence[Activity], judged: Sequence[Judgement], programs: Mapping[int, Program]
) -> set[int]:
    """Waits below a function in which other threads of the process wait for a lock.

    The thread that is inside has the lock: while it sleeps there, the others lose time.
    """
    takers: dict[tuple[int, str], set[int]] = defaultdict(set)
    for one, judgement in zip(activities, judged, strict=True):
        if judgement.kind == "lock" and judgement.is_work:
            own = next((frame for frame in one.user if programs[one.pid].owns(frame)), None)
            if own is not None:
                takers[one.pid, own.name].add(one.tid)
    return {
        at
        for at, one in enumerate(activities)
        if one.kind == "wait"
        and judged[at].kind in ("sleep", "sock-read", "pipe-read", "poll", "child", "cond")
        and any(takers.get((one.pid, frame.name), {one.tid}) - {one.tid} for frame in one.user)
    }


def _use(activity: Activity, judgement: Judgement, *, is_deeper: bool) -> str:
    if judgement.is_work or is_deeper:
        return WORK
    return IDLE if _is_read(activity) else UNREAD


def _is_read(activity: Activity) -> bool:
    return any(frame.name for frame in activity.user)


def _judge(program: Program, activity: Activity) -> Judgement:
    if activity.kind != "wait":
        return Judgement(activity.kind, is_work=True, is_called=False, own_depth=0)
    state = "gil" if activity.state in ("G", "gil", "GIL") else activity.state
    judgement = judge(program, activity.kernel, activity.user, state=state)
    if judgement.kind in _OF_RESOLVERS and any(RESOLVER.search(f.name) for f in activity.user):
        return judgement._replace(kind="dns", is_work=True)
    if not _is_read(activity) and judgement.kind not in _TOLD_BY_KERNEL:
        return judgement._replace(is_work=False)
    return judgement


def first_function(program: Program, user: Sequence[StackFrame]) -> str:
    """The innermost own function of a stack, or else of a library; "" if none has a name."""
    path = _path(program, user)
    return _with_line(path[0][0], [(path[0][1], 1.0)]) if path else ""


def programs_of(activities: Iterable[Activity]) -> dict[int, Program]:
    """Programs of processes, by the modules of their frames: the executable has `main`."""
    modules: dict[int, set[str]] = defaultdict(set)
    executables: dict[int, str] = {}
    go: set[int] = set()
    for activity in activities:
        pid = activity.pid
        for frame in activity.user:
            modules[pid].add(frame.module)
            if frame.name in ("_start", "main", "main.main") and frame.kind != "python":
                executables.setdefault(pid, frame.module)
            if frame.name.startswith(("runtime.goexit", "runtime.mcall", "runtime.mstart")):
                go.add(pid)
                executables.setdefault(pid, frame.module)
    return {
        activity.pid: Program(
            next(filter(is_interpreter, modules[activity.pid]), executables.get(activity.pid, "")),
            activity.pid in go,
        )
        for activity in activities
    }


def _is_one(lines: Sequence[tuple[int, float]]) -> bool:
    """Return True if one line has nearly all the time."""
    return lines[0][1] > _NEARLY_ALL * sum(seconds for _, seconds in lines) or len(lines) == 1


def _path(program: Program, user: Sequence[StackFrame]) -> tuple[tuple[str, int], ...]:
    """Own functions with their lines, the innermost first, or `main`; else the innermost outside
    of the C library.
    """
    own = [frame for frame in user if program.owns(frame)]
    own = own or [frame for frame in user if program.is_script_top(frame)][:1]
    own = own or [frame for frame in user if program.is_main(frame)][:1]
    if not own:
        named = [frame for frame in user if frame.name and not frame.name.startswith("[")]
        outside = [f for f in named if not any(lib in f.module for lib in _SYSTEM_LIBRARIES)]
        with_symbol = [frame for frame in outside if "!0x" not in frame.name]
        first = next(iter(with_symbol or outside or named), None)
        return (_spell(first),) if first else ()
    path = [_spell(frame) for frame in own]
    distinct = [part for at, part in enumerate(path) if not at or path[at - 1][0] != part[0]]
    return tuple(distinct[:_MOST_FUNCTIONS])


def _spell(frame: StackFrame) -> tuple[str, int]:
    """A function with its file, and the line in it; 0 where that is not known."""
    if frame.module == "[jit]" and is_java(frame):
        return frame.name, 0
    if frame.kind in ("user", "inlined"):
        file = frame.module.rpartition("/")[2].strip("[]")
        name = frame.name if frame.name.isidentifier() else short_name(frame.name)
        return (f"{name} [{file}]" if file and "!0x" not in name else name), 0
    file = spell_script(frame.module)
    name = frame.name.replace(".<locals>", "")
    return (f"{name} ({file})", frame.line) if file else (name, 0)
