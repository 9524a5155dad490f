"""Lines by the tables of code objects are those that each CPython says itself."""

from __future__ import annotations

import dis
import json
import subprocess
import sys
from types import CodeType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.runtimes.cpython.lines import LineTable
from tests.support.programs import pythons

_SAYS = """
import dis, json, sys, types
def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)
source = sys.stdin.read()
found = []
for code in codes(compile(source, "source", "exec")):
    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
    if sys.version_info >= (3, 10):
        lines = [(end, line or 0) for start, end, line in code.co_lines()]
    else:
        lines, starts = [], list(dis.findlinestarts(code))
        for (_, line), (end, _) in zip(starts, starts[1:] + [(len(code.co_code), 0)]):
            lines.append((end, line))
    found.append([table.hex(), code.co_firstlineno, lines])
print(json.dumps(found))
"""
_SOURCES = [dis.__file__, json.__file__, json.decoder.__file__]


@pytest.mark.parametrize("python", pythons.every(), ids=lambda python: python.path)
def test_every_instruction_has_the_line_that_its_python_says(python: pythons.Python) -> None:
    for path in _SOURCES:
        with open(path) as file:
            source = file.read()
        result = subprocess.run(
            [python.path, "-c", _SAYS], input=source, capture_output=True, text=True, check=False
        )
        if result.returncode:  # syntax that is newer than this Python
            assert "SyntaxError" in result.stderr
            continue
        count = 0
        for table, first, lines in json.loads(result.stdout):
            start = 0
            known = LineTable(python.version, bytes.fromhex(table), first)
            for end, line in lines:
                for offset in {start, end - 2}:
                    got = known.at(offset)
                    assert got == line, (path, first, offset)
                    count += 1
                start = end
        assert count > 10


def test_a_function_that_has_not_begun_is_at_its_first_line() -> None:
    code: CodeType = test_a_function_that_has_not_begun_is_at_its_first_line.__code__
    first = code.co_firstlineno
    assert LineTable(sys.version_info[:2], code.co_linetable, first).at(-2) == first


@given(st.sampled_from([(3, 8), (3, 10), (3, 13)]), st.binary(max_size=64), st.integers(-2, 999))
def test_any_bytes_give_a_line(version: tuple[int, int], table: bytes, offset: int) -> None:
    assert isinstance(LineTable(version, table, 1).at(offset), int)


@given(
    st.binary(max_size=60), st.lists(st.integers(0, 300), max_size=12), st.sampled_from([8, 10, 12])
)
def test_the_order_of_questions_does_not_matter(
    table: bytes, offsets: list[int], minor: int
) -> None:
    together = LineTable((3, minor), table, 7)
    for offset in offsets:
        assert together.at(offset) == LineTable((3, minor), table, 7).at(offset)
