"""The trace at each instruction of a program, from the first one of ld.so on, against the truth."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from purebpf.observe.unwind.copied_stack import CopiedStack
from purebpf.observe.unwind.process_stacks import ProcessStacks
from purebpf.unwind.reason import Reason
from tests.support.programs.single_step import STEPPED, Stepper

_TIMES = 2
"""Unwound at each address; it runs more often."""


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("compiler", "flags"),
    [
        pytest.param("gcc", ("-O2", "-Wl,-z,lazy"), marks=pytest.mark.needs("gcc", "x86_64")),
        pytest.param("gcc", ("-O3", "-static"), marks=pytest.mark.needs("gcc", "x86_64")),
        pytest.param("clang-19", ("-O2",), marks=pytest.mark.needs("clang", "x86_64")),
    ],
    ids=["gcc-lazy", "gcc-static", "clang"],
)
def test_a_trace_from_every_instruction_is_true(
    tmp_path: Path, compiler: str, flags: tuple[str, ...]
) -> None:
    """A trace that claims to be complete is true; only code without rules is guessed."""
    (tmp_path / "program.c").write_text(STEPPED)
    command = [compiler, "-fomit-frame-pointer", *flags, "-o", str(tmp_path / "program")]
    subprocess.run([*command, str(tmp_path / "program.c")], check=True)
    times: Counter[int] = Counter()
    whole: Counter[bool] = Counter()
    guessed: Counter[bool] = Counter()
    stepper = Stepper(str(tmp_path / "program"))
    try:
        with ProcessStacks() as stacks:
            for pid, pc, registers, truth in stepper.steps(1_000_000):
                times[pc] += 1
                if times[pc] > _TIMES:
                    continue
                stack = stepper.stack(registers[7], 16384)
                now_ns = time.monotonic_ns()
                copy = CopiedStack(now_ns, 0, pid, pid, "", False, pc, registers, stack)  # noqa: FBT003
                found = stacks.unwind(copy)
                is_true = found.frames == truth
                if found.reason is Reason.COMPLETE:
                    assert is_true, (found, list(map(hex, truth)))
                    whole[is_true] += 1
                else:
                    assert found.reason in (Reason.FP_GUESS, Reason.NO_UNWIND_INFO), found
                    guessed[is_true] += 1
    finally:
        stepper.close()
    assert whole[True] > 2000
    assert guessed[False] < (whole[True] + guessed[True]) // 100  # _init, _fini and their like
