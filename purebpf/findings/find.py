"""All rules over the evidence, and the findings that a person should see. Pure."""

from __future__ import annotations

from purebpf.findings.aims import aim
from purebpf.findings.choose import choose
from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import Facts
from purebpf.findings.finding import Finding
from purebpf.findings.rules import RULES

__all__ = ["MOST", "find"]

MOST = 7
"""Findings that a person reads."""


def find(facts: Facts, most: int = MOST) -> list[Finding]:
    """At most `most` findings, the costliest first."""
    evidence = Evidence(facts)
    found = [finding for rule in RULES for finding in rule(evidence)]
    return [aim(evidence, finding) for finding in choose(evidence, found)[:most]]
