"""From facts of one measurement to findings: incidents with their cause, cost and evidence. Pure.

    facts = decode_facts(json.loads(text))          # or as purebpf.tools.triage measures them
    findings = find(facts)                          # the costliest first

`facts` declares the measured data, `evidence` indexes it, `waiting` separates idle waits from work,
`ownership` the program's code from libraries. Each rule is a function of the evidence, in `rules`;
`choose` folds a client's wait into its server's finding, and puts them in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.findings.codec import decode_facts, encode_facts
    from purebpf.findings.facts import Facts
    from purebpf.findings.find import find
    from purebpf.findings.finding import Finding

__all__ = ["Facts", "Finding", "decode_facts", "encode_facts", "find"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Facts": "purebpf.findings.facts.Facts",
            "Finding": "purebpf.findings.finding.Finding",
            "decode_facts": "purebpf.findings.codec.decode_facts",
            "encode_facts": "purebpf.findings.codec.encode_facts",
            "find": "purebpf.findings.find.find",
        },
    )
