"""All rules over the evidence, and the findings that a person should see. Pure."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from purebpf.findings.aims import aim
from purebpf.findings.choose import choose
from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import Facts
from purebpf.findings.finding import Finding
from purebpf.findings.rules import RULES

__all__ = ["MOST", "find", "find_about"]

MOST = 7
"""Findings that a person reads."""


def find(facts: Facts, most: int = MOST) -> list[Finding]:
    """At most `most` findings, the costliest first."""
    evidence = Evidence(facts)
    return [aim(evidence, finding) for finding in _all(evidence)[:most]]


def find_about(facts: Facts, pids: AbstractSet[int], most: int = MOST) -> tuple[list[Finding], int]:
    """Return the findings that concern some processes, and the number of the other findings.

    A finding concerns the processes that it is about, the clients that lose by it, and the servers
    that it waits for. Programs that are merely busy are not counted.
    """
    evidence = Evidence(facts)
    found = _all(evidence)
    about = [finding for finding in found if _concerns(finding, pids)]
    others = sum(not finding.is_busy for finding in found if finding not in about)
    return [aim(evidence, finding) for finding in about[:most]], others


def _all(evidence: Evidence) -> list[Finding]:
    return choose(evidence, [finding for rule in RULES for finding in rule(evidence)])


def _concerns(finding: Finding, pids: AbstractSet[int]) -> bool:
    involved = {*finding.pids, *finding.servers, *(loss.pid for loss in finding.lost_by)}
    return not involved.isdisjoint(pids)
