"""One screen of text, or JSON. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator

from purebpf.results.model.spelling import printable
from purebpf.results.model.units import in_unit
from purebpf.results.model.width import cut, pad
from purebpf.tools.triage.findings import Findings, Share, Wait

__all__ = ["document", "pieces"]

_WIDTH = 80
_CROWD = 0.5
"""Threads that wait for a CPU on average, from which on the first line says so."""
_STATES = {"D": "D, ", "T": "stopped, ", "t": "traced, ", "P": "parked, "}


def document(findings: Findings) -> str:
    """Everything, on one line."""
    tree = {
        "elapsed_s": round(findings.elapsed_s, 3),
        "cpus": findings.cpus,
        "busy_cpus": round(findings.busy, 3),
        "processes": [share._asdict() for share in findings.processes],
        "functions": [
            {"name": share.name, "percent": share.percent} for share in findings.functions
        ],
        "waits": [wait._asdict() for wait in findings.waits],
        "locks": [lock._asdict() for lock in findings.locks],
        "run_queue_us": findings.queue_us,
        "run_queue_threads": round(findings.queued, 3),
        "failures": [failure._asdict() for failure in findings.failures],
        "loss": {
            name: {cause.name: cause.lost for cause in loss.causes}
            for name, (loss, _) in findings.losses.items()
        },
    }
    return json.dumps(tree) + "\n"


def pieces(findings: Findings, lines: int) -> Iterator[str]:
    """Each part: its heading with the command that looks closer, then at most so many lines."""
    queued = f", {findings.queued:.1f} threads wait for one" if findings.queued >= _CROWD else ""
    yield _heading(f"CPUs: {findings.busy:.2f} of {findings.cpus} busy{queued}", "purebpf profile")
    for name, shares in _by_name(findings.processes)[:lines]:
        percent, cpus = sum(one.percent for one in shares), sum(one.cpus for one in shares)
        alone = len(shares) == 1
        which = f"{shares[0].pid}" if alone else f"{len(shares)} PIDs"
        yield _line(
            f"{percent:5.1f} % {cpus:6.2f}  {printable(name)} ({which})",
            f"profile -p {which}" if alone else f"profile --comm {shlex.quote(printable(name))}",
        )
    yield _heading(f"Run queue: {_queue(findings.queue_us)}", "purebpf runqlat -P")
    yield _heading("Functions, with what each uses itself", "purebpf top")
    for share in findings.functions[:lines]:
        yield _line(f"{share.percent:5.1f} % {share.cpus:6.2f}  {share.name}", "")
    yield _heading("Waits of threads with something to do", "purebpf offcpu --waker")
    if not findings.waits:
        yield _line("none", "")
    for wait in findings.waits[:lines]:
        who = f"{printable(wait.process)} ({wait.pid})"
        state = _STATES.get(wait.state, "")
        text = f"{_seconds(wait.seconds):>8}  {who}: {state}{printable(wait.where)}"
        yield _line(text, _closer(wait))
    waited = sum(lock.seconds for lock in findings.locks)
    yield _heading(f"Locks: {_seconds(waited) if waited else 'no waits'}", "purebpf offcpu -U")
    for lock in findings.locks[: lines - lines // 2]:
        who = f"{printable(lock.process)} ({lock.pid})"
        text = f"{_seconds(lock.seconds):>8}  {who}: {lock.what} in {printable(lock.where)}"
        yield _line(text, f"offcpu -p {lock.pid}")
    yield _heading("System calls that fail", "purebpf summary -x")
    if not findings.failures:
        yield _line("none", "")
    for failure in findings.failures[:lines]:
        part = 100 * failure.failed / (failure.calls or 1)
        text = f"{failure.failed:8} of {failure.calls} {failure.name} ({part:.0f} %)"
        yield _line(f"{text}, mostly {failure.error}", "")


def _by_name(shares: Iterable[Share]) -> list[tuple[str, list[Share]]]:
    """Processes of one name together, the heaviest first."""
    groups: dict[str, list[Share]] = {}
    for share in shares:
        groups.setdefault(share.name, []).append(share)
    return sorted(groups.items(), key=lambda group: -sum(one.percent for one in group[1]))


def _closer(wait: Wait) -> str:
    return f"offcpu -p {wait.pid} --state {wait.state}"


def _queue(percentiles: dict[str, int]) -> str:
    if not percentiles:
        return "no waits"
    return ", ".join(
        f"{name} {in_unit(1000 * us)}" for name, us in percentiles.items() if name != "waits"
    )


def _seconds(seconds: float) -> str:
    return in_unit(1e9 * seconds)


def _heading(text: str, command: str) -> str:
    return f"\n{_line(text, command).lstrip()}"


def _line(text: str, command: str) -> str:
    """The text, cut; the command at the right end of the line, if there is one."""
    room = _WIDTH - 2 - (len(command) + 5 if command else 0)
    return f"  {pad(text, room)}  -> {command}\n" if command else f"  {cut(text, room)}\n"
