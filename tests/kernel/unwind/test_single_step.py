"""The trace at each instruction of a program, from the first one of ld.so on, against the truth."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from purebpf.kernel.unwind.copy_buffer import CopiedStack
from purebpf.kernel.unwind.process_stacks import ProcessStacks
from purebpf.unwind.reason import Reason
from tests.support.single_step import Stepper

_SOURCE = r"""
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define STEP __attribute__((noinline))
volatile unsigned long sink;
STEP unsigned long leaf(unsigned long x) { return x * 3 + sink; }
STEP unsigned long recurse(int depth, unsigned long x) {
  return depth ? recurse(depth - 1, x + depth) * 3 + depth : leaf(x);
}
STEP int compare(const void *a, const void *b) {
  sink += recurse(*(unsigned long *)a & 3, 3);
  return *(unsigned long *)a < *(unsigned long *)b ? -1 : 1;
}
STEP unsigned long allocates(unsigned long x) {
  char *p = alloca(64 + (x & 255));
  memset(p, x, 64);
  return leaf(p[3]);
}
STEP double realigned(double x) {
  double v[8] __attribute__((aligned(64)));
  for (int i = 0; i < 8; i++) v[i] = x * i;
  sink += leaf((unsigned long)v);
  return v[3];
}
int main(void) {
  unsigned long v[32];
  char text[99];
  struct timespec now;
  for (int i = 0; i < 32; i++) v[i] = rand();
  qsort(v, 32, 8, compare);
  sink += allocates(7) + realigned(2.0);
  snprintf(text, sizeof(text), "%d %s %g", 5, "x", 3.5);
  sink += strtoul("123", 0, 10) + clock_gettime(CLOCK_REALTIME, &now);
  free(malloc(100));
  return 0;
}
"""
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
    (tmp_path / "program.c").write_text(_SOURCE)
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
                copy = CopiedStack(0, 0, pid, pid, "", False, pc, registers, stack)  # noqa: FBT003
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
