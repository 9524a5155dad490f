"""A report as text, or as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from purebpf.results.model.json_values import json_object
from purebpf.results.model.spelling import printable
from purebpf.tools.inspect.model import CoreLine, ProgramLine, Report
from purebpf.tuples import NamedTuple

__all__ = ["document", "lines", "table"]

_VALUE_WIDTH = 40


def document(report: NamedTuple) -> str:
    """The report as JSON: an object with the names of its class, lists of objects inside."""
    import json

    return json.dumps(json_object("inspect", report._asdict()), indent=1) + "\n"


def lines(report: Report) -> Iterator[str]:
    """The report as text, line by line."""
    types = f"{report.types} BTF types" if report.types else "no BTF"
    license_ = f"license {printable(report.license)}" if report.license else "no license (not GPL)"
    yield f"{report.source}: {report.byteorder}-endian, {license_}, {types}\n"
    yield from (f"note: {printable(note)}\n" for note in report.notes)
    yield from table("PROGRAMS", _programs(report))
    yield from table("MAPS", _maps(report))
    yield from table("GLOBALS", _globals(report))
    yield from table("EXTERNS", _externs(report))
    if report.core:
        yield f"\nCO-RE RELOCATIONS on {_targets(report.targets)}\n"
        yield from _core(report.core)


def _targets(names: Sequence[str]) -> str:
    first = names[0] if names else "nothing"
    return f"{first} and {len(names) - 1} modules" if len(names) > 1 else first


def table(title: str, rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Columns as wide as they must be; the last is not padded."""
    if not rows:
        return
    yield f"\n{title}\n"
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield f"  {'  '.join(cells).rstrip()}\n"


def _programs(report: Report) -> list[tuple[str, ...]]:
    return [
        (
            program.name,
            program.section,
            program.type,
            f"{program.instructions} instructions",
            "" if program.autoload else "not loaded by default",
            f"uses {', '.join(used)}" if (used := _describe_use(program)) else "",
        )
        for program in report.programs
    ]


def _describe_use(program: ProgramLine) -> list[str]:
    tables = program.jump_tables
    counted = f"{tables} jump table{'s' * (tables > 1)} (Linux 6.19)"
    return [*program.maps, counted] if tables else [*program.maps]


def _maps(report: Report) -> list[tuple[str, ...]]:
    return [
        (
            map_line.name,
            map_line.type,
            f"{map_line.max_entries} entries",
            _add_size("key", map_line.key, map_line.key_size),
            _add_size("value", map_line.value, map_line.value_size),
            f"flags {map_line.flags:#x}" if map_line.flags else "",
        )
        for map_line in report.maps
    ]


def _add_size(role: str, spelled: str, size: int) -> str:
    if not size:
        return f"no {role}"
    return f"{role} {spelled or 'bytes'} ({size})"


def _globals(report: Report) -> list[tuple[str, ...]]:
    return [
        (
            variable.name,
            variable.type,
            f"{variable.map}+{variable.offset}",
            f"{variable.size} bytes",
            _value(variable.value),
        )
        for variable in report.globals
    ]


def _value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _VALUE_WIDTH else f"{text[: _VALUE_WIDTH - 3]}..."


def _externs(report: Report) -> list[tuple[str, ...]]:
    return [
        (extern.name, extern.kind, extern.type, "weak" if extern.weak else "", extern.here)
        for extern in report.externs
    ]


def _core(relocations: Sequence[CoreLine]) -> Iterator[str]:
    """By function; each with the instruction that it changes."""
    function = ""
    for line in relocations:
        if line.function != function:
            function = line.function
            yield f"  {printable(function)}\n"
        yield f"    {line.instruction:>5}  {printable(_answer(line))}\n"


def _answer(line: CoreLine) -> str:
    """`struct task_struct.pid: field_byte_offset 0 -> 1264`, or why not."""
    if line.value is None:
        return line.answer
    change = f"{line.compiled} -> {line.value}" if line.compiled != line.value else line.value
    return f"{line.what}: {line.kind} {change}"
