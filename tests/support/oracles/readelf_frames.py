"""Rows of call frame information as readelf interprets them, compared with ours."""

from __future__ import annotations

import re
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.machine import AARCH64, I386, X86_64, Machine
from purebpf.unwind.rows import NO_RULE
from purebpf.unwind.rule import CFA_EXPRESSION, How, RegisterRule, Row, Rule

_HEAD = re.compile(
    r"^[0-9a-f]{8,16} [0-9a-f]+ [0-9a-f]+ (CIE|FDE)"
    r"(?: cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+))?"
)
_LINE = re.compile(r"^([0-9a-f]{8}){1,2} (?!ZERO )")
_IN_REGISTER = re.compile(r"r[0-9]+ \((\w+)\)")
_NAMES = {
    X86_64.name: (
        *("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"),
        *(f"r{number}" for number in range(8, 16)),
        "rip",
        *(f"xmm{number}" for number in range(16)),
    ),
    I386.name: ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip"),
    AARCH64.name: (
        *(f"x{number}" for number in range(31)),
        "sp",
        *(f"r{number}" for number in range(32, 64)),
        *(f"v{number}" for number in range(32)),
    ),
}


class ListedFde(NamedTuple):
    """An FDE: its rows by address, each with the cells of its columns; none: those of its CIE."""

    start: int
    end: int
    rows: dict[int, dict[str, str]]


class Comparison(NamedTuple):
    """What comparing a file found.

    Attributes:
        fdes, rows: how many readelf lists.
        hidden: rows that our table does not show, as a later FDE starts before them.
        registers: rows of which every register was compared, too.
        different: (readelf's, ours) -> times.
    """

    fdes: int
    rows: int
    hidden: int
    registers: int
    different: Counter[tuple[str, str]]


def listed(path: str, section: str = ".eh_frame") -> Iterator[ListedFde]:
    """Every FDE of a section, as `readelf --debug-dump=frames-interp` lists them."""
    command = ["readelf", "--debug-dump=frames-interp", path]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as readelf:
        assert readelf.stdout is not None
        columns: list[str] = []
        fde = None
        default: dict[str, str] = {}
        wanted = False
        in_cie = False
        cies: dict[str, dict[str, str]] = {}
        name = ""
        for line in readelf.stdout:
            head = _HEAD.match(line)
            if line.startswith("Contents of the"):
                wanted = section in line
            elif not wanted:
                continue
            elif head:
                if fde is not None:
                    yield fde
                fde, in_cie = None, head[1] == "CIE"
                if in_cie:
                    name = line.split(maxsplit=1)[0]
                else:
                    default = cies.get(head[2], {})
                    start, end = int(head[3], 16), int(head[4], 16)
                    fde = ListedFde(start, end, {start: default} if default else {})
            elif line.startswith("   LOC "):
                columns = line.split()
            elif _LINE.match(line):
                cells = _IN_REGISTER.sub(r"\1", line).split()
                row = dict(zip(columns[1:], cells[1:], strict=True))
                if fde is not None:
                    fde.rows[int(cells[0], 16)] = row
                elif in_cie:
                    cies[name] = row
        if fde is not None:
            yield fde


def compare(path: str, cfi: CfiFile, section: str = ".eh_frame", every: int = 16) -> Comparison:
    """Compare the rows of a file: the rule of each, and all registers of one in `every`."""
    machine = cfi.machine
    assert machine is not None
    fdes = [fde for fde in listed(path, section) if fde.start < fde.end]
    starts = sorted(fde.start for fde in fdes)
    last = {fde.start: number for number, fde in enumerate(fdes)}
    table = cfi.rows
    rows = hidden = registers = 0
    different: Counter[tuple[str, str]] = Counter()
    for number, fde in enumerate(fdes):
        after = bisect_right(starts, fde.start)
        visible = min(fde.end, starts[after]) if after < len(starts) else fde.end
        for address, cells in fde.rows.items():
            rows += 1
            if address >= visible or last[fde.start] != number:
                hidden += 1
                continue
            rule_id = table.rule_id(address)
            theirs = _cells(cells, machine)
            ours = _spell_rule(cfi.table.rules[rule_id], machine) if rule_id != NO_RULE else "none"
            if ours != theirs:
                different[theirs, ours] += 1
            if not rows % every:
                registers += 1
                all_ours = _spell_row(cfi.row(address), cells, machine)
                if all_ours != cells:
                    different[str(cells), str(all_ours)] += 1
    return Comparison(len(fdes), rows, hidden, registers, different)


def _cells(cells: dict[str, str], machine: Machine) -> str:
    fp = cells.get(_NAMES[machine.name][machine.fp], "u")
    return f"{cells['CFA']} {fp} {cells.get('ra', 'u')}"


def _spell_rule(rule: Rule, machine: Machine) -> str:
    names = _NAMES[machine.name]
    return f"{_cfa(rule, names)} {_register(rule.fp, names)} {_register(rule.ra, names)}"


def _spell_row(row: Row | None, cells: dict[str, str], machine: Machine) -> dict[str, str] | None:
    """Our row with readelf's columns."""
    if row is None:
        return None
    names = _NAMES[machine.name]
    spelt = {"CFA": _cfa(row, names)}
    for column in cells:
        if column != "CFA":
            number = row.ra if column == "ra" else names.index(column)
            spelt[column] = _register(row.registers.get(number), names)
    return spelt


def _cfa(rule: Rule | Row, names: tuple[str, ...]) -> str:
    if rule.cfa_register == CFA_EXPRESSION:
        return "exp"
    if rule.cfa_register < 0 or not isinstance(rule.cfa, int):
        return "unsupported"
    return f"{names[rule.cfa_register]}{rule.cfa:+d}"


def _register(rule: RegisterRule, names: tuple[str, ...]) -> str:
    if rule is None:
        return "u"
    if isinstance(rule, int):
        return f"c{rule:+d}"
    how, argument = rule
    if how is How.VALUE:
        return f"v{argument:+d}"
    if how is How.REGISTER:
        return names[int(argument)]
    return {How.UNDEFINED: "u", How.SAME: "s", How.EXPRESSION: "exp"}.get(how, "vexp")
