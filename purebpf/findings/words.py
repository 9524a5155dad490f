"""Stays in words: "waits for an answer of 10.0.0.7:5432 in ask_price (shop.py:16)". Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from purebpf.findings.evidence import Evidence, Stay, threads_of
from purebpf.findings.facts import Endpoint
from purebpf.findings.finding import Source
from purebpf.findings.goroutines import are_coroutines
from purebpf.findings.kernel_reasons import is_in_fsync
from purebpf.findings.kinds import describe_kind
from purebpf.findings.waiting import Side

__all__ = [
    "call_site",
    "chief",
    "count_threads",
    "count_waiting",
    "describe_activity",
    "describe_site",
    "describe_started",
    "describe_wait",
    "frame_of",
    "is_in_loop",
    "noun_of",
    "share",
    "spell_address",
    "spell_endpoint",
    "way_to",
]

_LOOPS = ("_run_once", "uv_run", "EventLoop", "aeProcessEvents", "event_base_loop")
"""Functions of event loops that call handlers."""
_BRIEF = 2
"""So many times more threads than wait at a time: most of them live, or wait, for a moment."""
_LONG_PATH = 40
"""Characters of a unix socket's path that leave no room for the rest of a finding."""


def is_in_loop(stay: Stay) -> bool:
    """Return True for a wait inside of an event loop, which nothing else gets done meanwhile."""
    return any(loop in frame.name for frame in stay.user for loop in _LOOPS)


def count_threads(stays: Iterable[Stay], verb: str = "") -> str:
    """Return `1 thread waits`, `3 threads wait`; the caller gives the verb as `wait`."""
    stays = list(stays)
    threads, noun = threads_of(stays), noun_of(stays)
    if threads == 1:
        return f"1 {noun} {verb}s" if verb else f"1 {noun}"
    return f"{threads} {noun}s {verb}" if verb else f"{threads} {noun}s"


def count_waiting(stays: Iterable[Stay], cost: float) -> str:
    """Return `8 threads wait`; `81 threads wait, 8 at a time,` where threads come and go.

    Args:
        stays: waits.
        cost: how many of the threads wait at a time, in the mean.
    """
    stays = list(stays)
    at_a_time = max(1, round(cost))
    text = count_threads(stays, "wait")
    return f"{text}, {at_a_time} at a time," if threads_of(stays) > _BRIEF * at_a_time else text


def noun_of(stays: Iterable[Stay]) -> str:
    """Return "goroutine", "coroutine" or "thread"."""
    stays = list(stays)
    if not all(stay.tid < 0 for stay in stays):
        return "thread"
    return "coroutine" if all(are_coroutines(stay.user) for stay in stays) else "goroutine"


def share(part: float, whole: float) -> str:
    """`95 %`."""
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def spell_endpoint(endpoint: Endpoint) -> str:
    """The peer of a connection, or ""."""
    if endpoint.kind != "socket":
        return ""
    if not endpoint.port:
        name = endpoint.address
        if len(name) > _LONG_PATH and name.startswith("/"):
            name = f".../{name.rpartition('/')[2]}"
        return name or ("a unix socket" if endpoint.family == "other" else "a socket")
    return spell_address(endpoint.address, endpoint.port)


def spell_address(address: str, port: int) -> str:
    """`ADDRESS:PORT`, with brackets around an IPv6 address."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def describe_wait(stay: Stay) -> str:
    """Describe the work or wait of a thread, without its place: "waits for an answer of
    10.0.0.7:80".
    """
    if stay.kind == "cpu" and is_in_fsync(stay.kernel):
        return "runs fsync"
    if stay.kind == "sock-read" and stay.side is Side.SERVER:
        return "waits for a client to send its request"
    if stay.kind == "pipe-read" and "fifo_open" in stay.kernel:
        return "waits until somebody opens the other end of a named pipe (fifo_open)"
    text = describe_kind(stay.kind)
    peer = spell_endpoint(stay.endpoint) if stay.kind in ("sock-read", "connect") else ""
    return f"{text} of {peer}" if peer else text


def describe_activity(evidence: Evidence, stays: Iterable[Stay]) -> str:
    """Describe the commonest activity of threads, with the function and the share of their time;
    "" for no stays.
    """
    weights: Counter[tuple[str, str]] = Counter()
    for stay in stays:
        weights[describe_wait(stay), evidence.spell(stay.own)] += round(1e6 * stay.seconds)
    if not weights:
        return ""
    (text, own), most = weights.most_common(1)[0]
    where = f" in {own}" if own != "?" else ""
    return f"{text}{where} ({share(most, weights.total())} of that time)"


def frame_of(stays: Sequence[Stay]) -> Source | None:
    """The function of stays that are alike: an own one, or else the innermost."""
    for stay in stays:
        if stay.own is not None:
            return Source(stay.own.name, stay.own.module, stay.own.line)
    return None


def way_to(evidence: Evidence, stay: Stay) -> str:
    """The own functions that lead to a stay, the outermost first: "handle > ask > send"."""
    return " > ".join(map(evidence.spell, evidence.own_path(stay)))


def chief(stays: Iterable[Stay]) -> tuple[int, ...]:
    """The processes of stays, the one with most of their time first."""
    weights: Counter[int] = Counter()
    for stay in stays:
        weights[stay.pid] += round(1e6 * stay.seconds) + 1
    return tuple(pid for pid, _ in weights.most_common())


def call_site(evidence: Evidence, pids: Iterable[int], word: str) -> str:
    """The own function that makes a call most, by CPU time in it: kernel or leaf names with a word.

    "" if it did not show.
    """
    weights: Counter[str] = Counter()
    for pid in pids:
        for stay in evidence.by_process.get(pid, ()):
            near = (*stay.kernel, *(frame.name for frame in stay.user[:3]))
            if stay.own is not None and any(word in name for name in near):
                weights[evidence.spell(stay.own)] += round(1e6 * stay.seconds)
    return weights.most_common(1)[0][0] if weights else ""


def describe_site(evidence: Evidence, pids: Iterable[int], *words: str) -> str:
    """A clause about the own function that makes a call, or else where the program's time goes.

    A stack that was cut short shows the call, and not who made it; whole ones are beside it.
    """
    pids = tuple(pids)
    for word in words:
        function = call_site(evidence, pids, word)
        if function:
            return f"in {function}"
    weights: Counter[str] = Counter()
    for pid in pids:
        for stay in evidence.by_process.get(pid, ()):
            if stay.kind in ("cpu", "queue") and stay.own is not None:
                weights[evidence.spell(stay.own)] += round(1e6 * stay.seconds)
    if not weights:
        return ""
    function, most = weights.most_common(1)[0]
    return f"of its own code, {function} runs most" if 2 * most > weights.total() else ""


def describe_started(evidence: Evidence, pids: Iterable[int]) -> str:
    """A clause about the programs and processes that these processes start."""
    programs, parents = Counter[str](), set(pids)
    forks = 0
    for start in evidence.facts.starts:
        if start.parent in parents:
            programs[start.comm] += 0 if start.is_fork else start.times
            forks += start.times if start.is_fork else 0
    named = ", ".join(
        f"{comm} {times / evidence.elapsed_s:.1f}/s"
        for comm, times in programs.most_common(2)
        if times
    )
    if named:
        return f"it starts {named}"
    rate = forks / evidence.elapsed_s
    return (
        f"it forks {rate:.1f} processes a second" if forks else "the child is older than this look"
    )
