"""The structure of a perf.data or ELF file as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from purebpf.results.model.spelling import printable
from purebpf.tools.inspect.render import table

if TYPE_CHECKING:  # construct and pyelftools are imported for one of them alone
    from purebpf.tools.inspect.perf_data import Event, FeatureLine, PerfDataReport
    from purebpf.tools.inspect.sections import ElfReport

__all__ = ["elf_lines", "perf_data_lines"]

_VALUES = 8
"""Elements of a list in the text; --json has all."""


def perf_data_lines(report: PerfDataReport) -> Iterator[str]:
    """A perf.data file as text, line by line."""
    yield f"{report.source}: perf.data, {report.size} bytes\n"
    yield from (f"note: {printable(note)}\n" for note in report.notes)
    yield from table(
        "SECTIONS",
        [
            (section.name, f"at {section.offset}", f"{section.size} bytes")
            for section in report.sections
        ],
    )
    for event in report.events:
        yield from table(f"EVENT {printable(event.name or 'without a name')}", _event(event))
    yield from table("FEATURES", [_feature(feature) for feature in report.features])


def _event(event: Event) -> list[tuple[str, ...]]:
    fields = [(name, _spell(value, "|")) for name, value in event.fields.items()]
    return [*fields, ("ids", _spell(list(event.ids[:_VALUES]), " ") + _more(event.ids))]


def _more(values: Any) -> str:
    return f" and {len(values) - _VALUES} more" if len(values) > _VALUES else ""


def _feature(feature: FeatureLine) -> tuple[str, ...]:
    value = feature.value
    if feature.problem:
        text = f"damaged: {feature.problem}"
    elif isinstance(value, list) and value and isinstance(value[0], str):
        text = " ".join(value)
    elif isinstance(value, list):
        text = _spell(value[:_VALUES], ", ") + _more(value)
    else:
        text = "" if value is None else _spell(value, ", ")
    return feature.name, f"{feature.size} bytes", text


def _spell(value: Any, separator: str) -> str:
    """A value as text: lists joined by the separator, parts of a record by spaces."""
    if isinstance(value, list):
        return separator.join(_spell(item, ",") for item in value) or "-"
    if isinstance(value, dict):
        return " ".join(f"{name}={_spell(item, ';')}" for name, item in value.items())
    return str(value)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number > 1)}" if number else ""


def elf_lines(report: ElfReport) -> Iterator[str]:
    """An ELF file as text, line by line."""
    yield f"{report.source}: ELF file\n"
    yield from table("HEADER", [(name, str(value)) for name, value in report.header.items()])
    yield from table(
        "SECTIONS",
        [
            (
                str(section.number),
                section.name or "-",
                section.type,
                section.flags or "-",
                f"{section.size} bytes",
                f"at {section.offset}",
                _count(section.relocations, "relocation"),
            )
            for section in report.sections
        ],
    )
    yield from table(
        "RELOCATIONS",
        [
            (
                relocation.section,
                f"{relocation.offset:#x}",
                relocation.type,
                relocation.symbol or "-",
            )
            for relocation in report.relocations
        ],
    )
    yield from table(
        "NOTES",
        [
            (note.section, note.owner, note.type, f"{note.size} bytes", note.value)
            for note in report.notes
        ],
    )
