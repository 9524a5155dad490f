"""Programs that somebody else has stopped: a tracer at each system call, a signal, a freezer."""

from __future__ import annotations

import signal
from collections import Counter, defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay, threads_of
from purebpf.findings.facts import Process
from purebpf.findings.finding import Finding
from purebpf.findings.words import chief, count_threads, share

__all__ = ["stopped_programs", "traced_programs"]

_LEAST = 0.1
_TRACES = frozenset({"ptrace"})
_STOPS, _SEVERAL = frozenset({signal.SIGSTOP, signal.SIGTSTP}), 3
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
        stopper, times = _stopper(evidence, process.pid)
        if not (is_frozen or process.state == "T" or times >= _SEVERAL):
            continue
        if not evidence.connections.has_clients((process.pid,)):
            continue
        if times >= _SEVERAL and not is_frozen:
            yield _again_and_again(evidence, process, stopper, times)
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


def _stopper(evidence: Evidence, pid: int) -> tuple[int, int]:
    """The process that stops another one by a signal, and how often; 0 and 0 for none."""
    sent: Counter[int] = Counter()
    for one in evidence.facts.signals:
        if one.receiver == pid and one.signal in _STOPS:
            sent[one.sender] += one.times
    return max(sent, key=sent.__getitem__, default=0), sent.total()


def _again_and_again(evidence: Evidence, process: Process, stopper: int, times: int) -> Finding:
    """A program such as cpulimit(1) stops a process and lets it go on, by signals."""
    stopped = [stay for stay in evidence.by_process.get(process.pid, ()) if stay.kind == "stopped"]
    longest = max((stay.seconds for stay in stopped), default=0.0) / evidence.elapsed_s
    who = evidence.process(stopper)
    by = f"by {evidence.name(stopper)}" if who.pid else "by processes that ended"
    part = f", {share(longest, 1.0)} of the time" if longest else ""
    return Finding(
        *("stopped", process.comm, (process.pid,), max(longest, _LEAST)),
        f"is stopped {times / evidence.elapsed_s:.1f} times a second {by} (SIGSTOP, "
        f"SIGCONT){part}: it answers nobody meanwhile",
        (f"its command: {who.command}" if who.command else "",),
        ("trace", "-p", str(process.pid)),
    )


def _is_freezer(name: str) -> bool:
    return name.startswith(_FREEZERS)
