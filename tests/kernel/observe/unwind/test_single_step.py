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

_32_BITS = (pytest.mark.needs("programs_of_32_bits"),)
_64_BITS = (pytest.mark.needs("gcc", "x86_64"),)
_CLANG = (pytest.mark.needs("clang", "x86_64"),)
_TIMES = 2
"""Unwound at each address; it runs more often."""


_CUT = (Reason.FP_GUESS, Reason.NO_UNWIND_INFO)
_CUT_32 = (Reason.COMPAT32, Reason.UNKNOWN_MAPPING, Reason.RULE_UNSUPPORTED)
"""The last two in glibc's memcpy of i686, whose rules do not know of its `push %eax`."""


def _reads_pc(truth: list[int]) -> bool:
    """Return True in the `_start` of i386, which calls its own end for the number of an address."""
    return len(truth) == 2 and abs(truth[0] - truth[1]) < 64


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("compiler", "flags", "is_compat"),
    [
        pytest.param("gcc", "-O2 -Wl,-z,lazy", False, marks=_64_BITS),
        pytest.param("gcc", "-O3 -static", False, marks=[*_64_BITS, pytest.mark.nightly]),
        pytest.param("clang-19", "-O2", False, marks=[*_CLANG, pytest.mark.nightly]),
        pytest.param("gcc", "-m32 -O2 -Wl,-z,lazy", True, marks=_32_BITS),
        pytest.param("gcc", "-m32 -O3 -static", True, marks=[*_32_BITS, pytest.mark.nightly]),
    ],
    ids=["gcc-lazy", "gcc-static", "clang", "gcc-32-bits-lazy", "gcc-32-bits-static"],
)
def test_a_trace_from_every_instruction_is_true(
    tmp_path: Path, compiler: str, flags: str, *, is_compat: bool
) -> None:
    """A trace that claims to be complete is true; only code without rules is guessed."""
    (tmp_path / "program.c").write_text(STEPPED)
    command = [compiler, "-fomit-frame-pointer", *flags.split(), "-o", str(tmp_path / "program")]
    subprocess.run([*command, str(tmp_path / "program.c")], check=True)
    times: Counter[int] = Counter()
    whole: Counter[bool] = Counter()
    guessed: Counter[bool] = Counter()
    stepper = Stepper(str(tmp_path / "program"))
    try:
        with ProcessStacks() as stacks:
            for pid, pc, registers, truth in stepper.steps(1_000_000, 4 if is_compat else 8):
                times[pc] += 1
                if times[pc] > _TIMES:
                    continue
                stack = stepper.stack(registers[7], 16384)
                now_ns = time.monotonic_ns()
                copy = CopiedStack(now_ns, 0, pid, pid, "", is_compat, pc, registers, stack)
                found = stacks.unwind(copy)
                is_true = found.frames == truth or (is_compat and _reads_pc(truth))
                if found.reason is Reason.COMPLETE:
                    assert is_true, (found, list(map(hex, truth)))
                    whole[is_true] += 1
                else:
                    assert found.reason in (_CUT_32 if is_compat else _CUT), found
                    guessed[is_true] += 1
    finally:
        stepper.close()
    assert whole[True] > 2000
    most = (whole[True] + guessed[True]) // (20 if is_compat else 100)
    assert guessed[False] < most  # _init, _fini and their like; of i386 memcpy
