"""A report as text, or as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from purebpf.results.model.json_values import json_object
from purebpf.tools.doctor.model import Answer, Fact, Report

__all__ = ["document", "lines"]

_WIDTH = 80
_NARROW = 30
"""Columns that a text has at least, however long its name is."""


def document(report: Report) -> str:
    """The report as JSON: an object with the names of `Report`, lists of objects inside."""
    import json

    return json.dumps(json_object("doctor", report._asdict()), indent=1) + "\n"


def lines(report: Report, *, everything: bool = False) -> Iterator[str]:
    """Yield the report as text, line by line; features that work only if `everything` is set."""
    yield f"{report.kernel}\n"
    yield from _facts("THIS PROCESS", report.user)
    yield from _facts("SETTINGS", report.settings)
    yield from _facts("THIS MACHINE", report.machine)
    yield "\nFEATURES\n"
    if not report.asked:
        yield "  the kernel does not let this process ask: see above, or run it as root\n"
    else:
        yield from _features(report.features, everything=everything)
    yield "\nCOMMANDS\n"
    width = max((len(answer.name) for answer in report.commands), default=0)
    for command in report.commands:
        first, *rest = command.obstacles or ("would run",)
        yield from _wrap(f"  {command.name.ljust(width)}  ", first)
        for reason in rest:
            yield from _wrap(f"  {' ' * width}  ", reason)


def _facts(title: str, facts: Sequence[Fact]) -> Iterator[str]:
    yield f"\n{title}\n"
    width = max((len(fact.name) for fact in facts), default=0)
    for fact in facts:
        meaning = f" ({fact.meaning})" if fact.meaning else ""
        yield from _wrap(f"  {fact.name.ljust(width)}  ", f"{fact.value}{meaning}")


def _features(answers: Sequence[Answer], *, everything: bool) -> Iterator[str]:
    groups: dict[str, list[Answer]] = {}
    for answer in answers:
        groups.setdefault(answer.group, []).append(answer)
    for group, members in groups.items():
        there = sum(answer.supported for answer in members)
        yield f"  {group}: {there} of {len(members)}\n"
        for answer in members:
            if everything or not answer.supported:
                mark = "yes" if answer.supported else "no "
                yield from _wrap(f"    {mark} ", f"{answer.name}: {answer.reason}")


def _wrap(start: str, text: str) -> Iterator[str]:
    """The text behind its name, in as many lines as it needs, below each other."""
    import textwrap  # which JSON need not pay

    wrapped = textwrap.wrap(
        text, max(_WIDTH - len(start), _NARROW), break_long_words=False, break_on_hyphens=False
    )
    for number, line in enumerate(wrapped or [""]):
        yield f"{' ' * len(start) if number else start}{line}\n"
