"""Findings as text of 80 columns, or as JSON. Pure."""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from purebpf.findings.facts import Facts
from purebpf.findings.finding import Finding
from purebpf.results.model.spelling import printable
from purebpf.results.model.width import cut

__all__ = ["SCHEMA", "document", "lines"]

SCHEMA = 1
_WIDTH = 80
_INDENT = 12
_MOST_LINES = 3
_KEPT_TOGETHER = "\u00a0"
_DANGLING = re.compile(r"([;,]| (in|of|by|for|and|the|that|with|from|to|a|is))*$")
"""Words at the end of a sentence that is cut off, which tell nothing without the next one."""
_PLACE = re.compile(r"(\S) \(([^\s()]+:\d+|\d+)\)")
"""A name and its place or process ID."""


def lines(facts: Facts, findings: Sequence[Finding], others: int | None = None) -> Iterator[str]:
    """The result for a person.

    Args:
        facts: the measurement.
        findings: the ones to show.
        others: how many findings concern other processes than the chosen ones; None: all were
            chosen.
    """
    faults = [finding for finding in findings if not finding.is_busy]
    if faults:
        many = f"{len(faults)} finding{'s' if len(faults) > 1 else ''}"
        yield f"{many} in {facts.elapsed_s:.0f} s, by cost: seconds a second that somebody loses\n"
    elif others is not None:
        yield (
            f"Nothing found about these processes in {facts.elapsed_s:.0f} s: "
            f"{busy_cpus(facts):.1f} of {facts.cpus} CPUs busy.\n"
        )
    else:
        yield (
            f"Nothing found in {facts.elapsed_s:.0f} s: {busy_cpus(facts):.1f} of {facts.cpus} CPUs"
            " busy, no thread waits in the\nmiddle of work.\n"
        )
    for finding in findings:
        yield "\n"
        yield from _finding(finding)
    if others:
        yield (
            f"\n{others} more finding{'s' if others > 1 else ''} about other processes: run it "
            "without a target\n"
        )
    for sentence in facts.missing:
        yield (
            "\n" + textwrap.fill(f"not measured: {sentence}", _WIDTH, subsequent_indent="  ") + "\n"
        )


def busy_cpus(facts: Facts) -> float:
    """CPUs that were in use, on average."""
    used = ("user", "nice", "system", "irq", "softirq", "steal")
    return sum(facts.counters.get(name, 0.0) for name in used) / (facts.elapsed_s or 1.0)


def _finding(finding: Finding) -> Iterator[str]:
    clauses = [f"{_who(finding)}: {finding.text}"]
    if finding.is_busy and finding.kind == "cpu":
        clauses.append("nobody is seen to wait for it")
    wrapped = _wrap("; ".join([*clauses, *filter(None, finding.evidence)]), _MOST_LINES)
    if finding.lost_by:
        wrapped += _wrap("lost by " + ", ".join(_losses(finding)), 1)
    head = "busy" if finding.is_busy else f"{finding.cost:.{2 * (finding.cost < 1000)}f} s/s"
    for at, line in enumerate(wrapped):
        start = f"{head:>{_INDENT - 2}}  " if not at else " " * _INDENT
        yield start + cut(line.replace(_KEPT_TOGETHER, " "), _WIDTH - _INDENT) + "\n"
    yield f"{'':{_INDENT}}-> purebpf {shlex.join(finding.command)}\n"


def _wrap(text: str, most: int) -> list[str]:
    """At most so many lines; a name and its place stay together."""
    body = _PLACE.sub(rf"\1{_KEPT_TOGETHER}(\2)", printable(text))
    wrapped = textwrap.wrap(body, _WIDTH - _INDENT, break_on_hyphens=False)
    if len(wrapped) <= most:
        return wrapped
    last, room = wrapped[most - 1], _WIDTH - _INDENT - len(" ...")
    if len(last) > room:
        last = last[:room].rpartition(" ")[0] or last[:room]
    return [*wrapped[: most - 1], f"{_DANGLING.sub('', last)} ..."]


def _who(finding: Finding) -> str:
    who = f"{finding.name} ({finding.pid})" if finding.pid > 0 else finding.name
    return f"{finding.unit}: {who}" if finding.unit else who


def _losses(finding: Finding) -> Iterable[str]:
    for loss in finding.lost_by[:2]:
        yield f"{loss.name} ({loss.pid}) {loss.cost:.2f} s/s"


def document(facts: Facts, findings: Sequence[Finding], others: int | None = None) -> str:
    """One line of JSON: docs/triage.md has the schema."""
    tree = {
        "schema": SCHEMA,
        "elapsed_s": round(facts.elapsed_s, 3),
        "cpus": facts.cpus,
        "busy_cpus": round(busy_cpus(facts), 3),
        "cost_cpus": round(facts.own_cpu_s / (facts.elapsed_s or 1.0), 3),
        "missing": list(facts.missing),
        "findings": [_tree(finding) for finding in findings if not finding.is_busy],
        "busy": [_tree(finding) for finding in findings if finding.is_busy],
        "others": others or 0,
    }
    return json.dumps(tree) + "\n"


def _tree(finding: Finding) -> dict[str, Any]:
    own = finding.own
    return {
        "kind": finding.kind,
        "cost": round(finding.cost, 3),
        "who": {"name": finding.name, "pids": list(finding.pids), "unit": finding.unit},
        "what": finding.text,
        "own": None if own is None else own._asdict(),
        "place": finding.place,
        "evidence": [clause for clause in finding.evidence if clause],
        "lost_by": [loss._asdict() for loss in finding.lost_by],
        "command": list(finding.command),
    }
