"""Programs that somebody else has stopped: a tracer at each system call, a signal, a freezer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay, threads_of
from purebpf.findings.finding import Finding
from purebpf.findings.words import chief, count_threads, share

__all__ = ["stopped_programs", "traced_programs"]

_LEAST = 0.1
_TRACES = frozenset({"ptrace"})
_FREEZERS = ("cgroup_freeze", "__refrigerator", "do_freezer_trap", "refrigerator")


def traced_programs(evidence: Evidence) -> Iterator[Finding]:
    """A tracer such as strace stops a program at each of its system calls."""
    by_program: dict[tuple[str, str], list[Stay]] = defaultdict(list)
    for stay in evidence.stays:
        if _is_traced(stay):
            by_program[evidence.family(stay.pid)].append(stay)
    for stays in by_program.values():
        cost, pids = evidence.rate(stays), chief(stays)
        tracer = _tracer(evidence, stays)
        if cost < _LEAST:
            continue
        name = f" by {evidence.name(tracer)}" if tracer else ""
        times = sum(stay.times for stay in stays) / evidence.elapsed_s
        named = [stay for stay in stays if stay.own is not None]
        own = max(named, key=lambda stay: stay.seconds).own if named else None
        yield Finding(
            *("traced", evidence.process(pids[0]).comm, pids, cost),
            f"is traced{name} (ptrace), which stops it {times:.0f} times a second: "
            f"{count_threads(stays)} stopped {share(cost, threads_of(stays))} of the time",
            (
                f"its command: {evidence.process(tracer).command}" if tracer else "",
                f"most in {evidence.spell(own)}" if own else "",
            ),
            ("offcpu", "-p", str(pids[0])),
            own=evidence.source(own),
        )


def _is_traced(stay: Stay) -> bool:
    return stay.kind == "stopped" and any(name.startswith("ptrace") for name in stay.kernel)


def _tracer(evidence: Evidence, stays: list[Stay]) -> int:
    """The process that lets stopped threads go on, or the one that calls ptrace(2) most; or 0."""
    calls: Counter[int] = Counter()
    for one in evidence.facts.calls:
        if one.call in _TRACES and one.pid in evidence.processes:
            calls[one.pid] += one.times
    for tid, _ in evidence.wakers_of(stays).most_common():
        pid = evidence.process_of_thread.get(tid, 0)
        if pid in calls:
            return pid
    return calls.most_common(1)[0][0] if calls else 0


def stopped_programs(evidence: Evidence) -> Iterator[Finding]:
    """A program with clients was stopped by a signal, or its cgroup is frozen.

    Silent about the job of a shell that somebody stopped at a terminal: nobody waits for it.
    """
    for process in evidence.facts.processes:
        frozen = [
            stay
            for stay in evidence.by_process.get(process.pid, ())
            if stay.kind == "stopped" and any(map(_is_freezer, stay.kernel))
        ]
        is_frozen = evidence.rate(frozen) > _LEAST
        if not (is_frozen or process.state == "T"):
            continue
        if not evidence.connections.has_clients((process.pid,)):
            continue
        reason = "its cgroup is frozen" if is_frozen else "SIGSTOP; state T"
        yield Finding(
            *("stopped", process.comm, (process.pid,), 1.0),
            f"is stopped ({reason}): it answers nobody",
            (
                "a container that is paused, or a freezer"
                if is_frozen
                else "SIGCONT lets it go on",
                process.command,
            ),
            ("dump", str(process.pid)),
        )


def _is_freezer(name: str) -> bool:
    return name.startswith(_FREEZERS)
