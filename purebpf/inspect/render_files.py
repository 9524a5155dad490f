"""The structure of a perf.data or ELF file as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from purebpf.inspect.render import table
from purebpf.results.model.spelling import printable

if TYPE_CHECKING:  # construct and pyelftools are imported for one of them alone
    from purebpf.inspect.perf_data import Event, FeatureLine, PerfDataReport
    from purebpf.inspect.sections import ElfReport

__all__ = ["elf_lines", "perf_data_lines"]

_VALUES = 8
"""Elements of a list in the text; --json has all."""


def perf_data_lines(report: PerfDataReport) -> Iterator[str]:
    """A perf.data file as text, line by line."""
    yield f"{report.source}: perf.data, {report.size} bytes\n"
    yield from (f"note: {printable(note)}\n" for note in report.notes)
    yield from table(
        "SECTIONS",
        [(each.name, f"at {each.offset}", f"{each.size} bytes") for each in report.sections],
    )
    for event in report.events:
        yield from table(f"EVENT {printable(event.name or 'without a name')}", _event(event))
    yield from table("FEATURES", [_feature(each) for each in report.features])


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
        return separator.join(_spell(each, ",") for each in value) or "-"
    if isinstance(value, dict):
        return " ".join(f"{name}={_spell(each, ';')}" for name, each in value.items())
    return str(value)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number > 1)}" if number else ""


def elf_lines(report: ElfReport) -> Iterator[str]:
    """An ELF file as text, line by line."""
    yield f"{report.source}: ELF file\n"
    yield from table("HEADER", [(name, str(value)) for name, value in report.header.items()])
    yield from table(
        "SECTIONS",
        [
            (
                str(each.number),
                each.name or "-",
                each.type,
                each.flags or "-",
                f"{each.size} bytes",
                f"at {each.offset}",
                _count(each.relocations, "relocation"),
            )
            for each in report.sections
        ],
    )
    yield from table(
        "RELOCATIONS",
        [
            (each.section, f"{each.offset:#x}", each.type, each.symbol or "-")
            for each in report.relocations
        ],
    )
    yield from table(
        "NOTES",
        [
            (each.section, each.owner, each.type, f"{each.size} bytes", each.value)
            for each in report.notes
        ],
    )
