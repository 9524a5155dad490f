"""Programs that were assembled: loaded, run, and refused by the line of Python that made them."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path

import pytest

import purebpf
from purebpf import asm
from purebpf.abi.bpf import bpf_map_type

pytestmark = pytest.mark.needs("bpf")

VALUES = asm.MapSpec("values", bpf_map_type.BPF_MAP_TYPE_ARRAY, 4, 8, 1)
CALLS = 1009


def returning(code: asm.Program) -> int:
    """What a program returns when it is run once."""
    code.exit()
    with purebpf.load(asm.build("one", [code])) as loaded:
        return loaded.programs[code.name].test_run(b"\0" * 14).retval


@pytest.mark.parametrize(
    ("operator", "operand", "expected"),
    [
        ("+=", 5, 22),
        ("-=", 5, 12),
        ("*=", 5, 85),
        ("/=", 5, 3),
        ("%=", 5, 2),
        ("^=", 5, 20),
        ("|=", 8, 25),
        ("&=", 16, 16),
        ("<<=", 2, 68),
        (">>=", 2, 4),
        ("s>>=", 2, 4),
    ],
)
def test_the_kernel_computes_what_the_operator_says(operator, operand, expected):
    code = asm.Program("compute", "xdp")
    code.move(asm.R0, 17)
    code.alu(operator, asm.R0, operand)
    assert returning(code) == expected


@pytest.mark.parametrize(
    ("operator", "value", "other", "jumps"),
    [
        (">", -1, 1, True),  # unsigned
        ("s>", -1, 1, False),
        ("s<", -1, 1, True),
        ("s>=", 1, 1, True),
        ("s<=", 2, 1, False),
        ("&", 6, 1, False),
    ],
)
def test_the_kernel_compares_as_the_operator_says(operator, value, other, jumps):
    for by_register in (False, True):
        code = asm.Program("compare", "xdp")
        out = code.label()
        code.move(asm.R1, value)
        code.move(asm.R3, other)
        code.move(asm.R0, 1)
        if by_register:
            code.jump_register(operator, asm.R1, asm.R3, out)
        else:
            code.jump(operator, asm.R1, other, out)
        code.move(asm.R0, 0)
        code.place(out)
        assert returning(code) == jumps


def test_a_bounded_loop_jumps_back():
    code = asm.Program("loop", "xdp")
    again = code.label()
    code.move(asm.R0, 0)
    code.move(asm.R1, 10)
    code.place(again)
    code.alu_register("+=", asm.R0, asm.R1)
    code.alu("-=", asm.R1, 1)
    code.jump("!=", asm.R1, 0, again)
    assert returning(code) == 55


def test_an_assembled_program_counts_exactly():
    code = asm.Program("count", "raw_tp/sys_enter")
    out = code.label()
    code.load(asm.R1, asm.R1, 8, 8)
    code.jump("!=", asm.R1, 110, out)  # getppid on x86-64
    code.call_helper("get_current_pid_tgid")
    code.alu(">>=", asm.R0, 32)
    code.jump("!=", asm.R0, os.getpid(), out)
    code.store_constant(asm.R10, -4, 0, 4)
    code.call_helper("map_lookup_elem", asm.MapName("values"), asm.Stack(-4))
    code.jump("==", asm.R0, 0, out)
    code.call_function("add_one")
    code.place(out)
    code.move(asm.R0, 0)
    code.exit()
    with purebpf.load(asm.build("counter", [code, add_one()], maps=[VALUES])) as loaded:
        loaded.attach()
        for _ in range(CALLS):
            os.getppid()
        assert int.from_bytes(loaded.maps["values"][0], "little") == CALLS


def add_one() -> asm.Function:
    code = asm.Function("add_one")
    code.map_value(asm.R3, "values")
    code.move(asm.R1, 1)
    code.atomic_add(asm.R3, 0, asm.R1, 8)
    code.move(asm.R0, 0)
    code.exit()
    return code


def test_a_refusal_shows_the_line_of_python():
    code = asm.Program("bad", "xdp")
    code.load(asm.R0, asm.R3, 0, 8)
    with pytest.raises(purebpf.VerifierError) as refused:
        returning(code)
    line = inspect.getsource(test_a_refusal_shows_the_line_of_python).splitlines()[2].strip()
    assert f"test_assembled_programs.py:{_line_of(line)}: {line}" in str(refused.value)


def _line_of(text: str) -> int:
    lines = inspect.getsource(inspect.getmodule(_line_of)).splitlines()  # type: ignore[arg-type]
    return next(number for number, line in enumerate(lines, 1) if line.strip() == text)


def test_the_page_works():
    page = (Path(__file__).parents[3] / "docs/asm.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(example, "docs/asm.md", "exec"), {})
