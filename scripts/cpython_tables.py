"""What the generators of CPython's tables share: ask the compiler, write the table, compare it."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

Version = tuple[int, int]
FOLDER = Path(__file__).parent.parent / "purebpf/runtimes/cpython"


class Table(NamedTuple):
    """A generated module: a mapping of versions to named tuples.

    module: its name in purebpf.runtimes.cpython; rows: the name of the mapping;
    row: the class of an entry; head: the text before the entries.
    """

    module: str
    rows: str
    row: type[Any]
    head: str


def print_offsets(headers: Path, program: str) -> tuple[Version, dict[str, int]]:
    """Compile a C program with some headers and run it: the version and the numbers it prints."""
    with tempfile.TemporaryDirectory() as folder:
        executable = Path(folder) / "offsets"
        command = ["gcc", "-w", "-x", "c", "-", "-o", str(executable), "-I", str(headers)]
        # Debian's pyconfig.h includes one that is beside the folder of the version
        command += ["-I", str(headers / "internal"), "-I", str(headers.parent)]
        subprocess.run(command, input=program, text=True, check=True)
        printed = subprocess.run([executable], capture_output=True, text=True, check=True).stdout
    first, *lines = printed.splitlines()
    _, major, minor = first.split()
    values = {name: int(number) for name, number in (line.split() for line in lines)}
    return (int(major), int(minor)), values


def main(doc: str, table: Table, measure: Callable[[Path], tuple[Version, Any]]) -> int:
    """Write the file, or compare it with the headers of the command line: the exit status."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("headers", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    measured = dict(measure(headers) for headers in arguments.headers)
    known = _read(table)
    if not arguments.check:
        (FOLDER / f"{table.module}.py").write_text(_render(table, known | measured))
        return 0
    wrong = [version for version, layout in measured.items() if known.get(version) != layout]
    for version in wrong:
        print(f"CPython {version}: the headers say {measured[version]}", file=sys.stderr)
    return bool(wrong)


def _read(table: Table) -> dict[Version, Any]:
    """What the checked-in file has."""
    source = FOLDER / f"{table.module}.py"
    names: dict[str, Any] = {}
    if source.exists():
        exec(source.read_text(), names)  # noqa: S102 - a file of this tree
    return dict(names.get(table.rows, {}))


def _render(table: Table, layouts: Mapping[Version, Any]) -> str:
    """The file's text; fields with their default value are left out."""
    text = table.head
    defaults = table.row._field_defaults
    for version in sorted(layouts):
        text += f"    {version}: {table.row.__name__}(\n"
        for name, value in layouts[version]._asdict().items():
            if name not in defaults or defaults[name] != value:
                text += f"        {name}={value},\n"
        text += "    ),\n"
    return text + "}\n"
