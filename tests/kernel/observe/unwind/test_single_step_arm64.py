"""The trace at each instruction of a program of arm64, under QEMU's user emulation."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from purebpf.symbols.elf_image import ElfImage
from purebpf.unwind.address_space import AddressSpace, CodeMapping
from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.elf_frames import text_of
from purebpf.unwind.machine import AARCH64
from purebpf.unwind.reason import Reason
from purebpf.unwind.unwinder import Unwinder
from tests.support.nightly import by_day
from tests.support.programs.arm_stepper import ArmStepper
from tests.support.programs.single_step import STEPPED

_TIMES = 2
"""Unwound at each address; it runs more often."""
_STACK_BYTES = 4096


def _symbol(program: Path, name: str) -> int:
    command = ["nm", str(program)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(rf"^([0-9a-f]+) [tT] {name}$", listed, re.MULTILINE)
    assert found
    return int(found[1], 16)


@pytest.mark.any_kernel
@pytest.mark.needs("aarch64-linux-gnu-gcc", "qemu-aarch64", "nm")
@pytest.mark.parametrize(
    "flags",
    by_day(
        [("-O2",), ("-O2", "-mbranch-protection=standard"), ("-O3", "-fno-omit-frame-pointer")],
        [("-O2",), ("-O2", "-mbranch-protection=standard")],
    ),
    ids=["plain", "signed", "frame-pointers"],
)
def test_every_instruction_of_arm64(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """A trace that claims to be complete is true: LR in leaves, pairs, signed addresses."""
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(STEPPED)
    command = ["aarch64-linux-gnu-gcc", "-static", "-fomit-frame-pointer", *flags]
    subprocess.run([*command, "-o", program, source], check=True)
    image = ElfImage.of_bytes(program.read_bytes(), "program")
    cfi = CfiFile(image)
    text = text_of(image)
    space = AddressSpace([CodeMapping(text.start, text.end, 0, "program")])
    unwinder = Unwinder(AARCH64, space, lambda _: cfi)
    times: Counter[int] = Counter()
    whole: Counter[bool] = Counter()
    stepper = ArmStepper(tmp_path, program, _symbol(program, "main"))
    outer: list[int] = []
    try:
        for _, pc, registers, truth in stepper.steps(60_000, outer):
            times[pc] += 1
            if times[pc] > _TIMES:
                continue
            stack = stepper.stack(registers[31], _STACK_BYTES)
            found = unwinder.unwind(pc, registers, stack)
            if not outer:  # the first instruction of main
                assert found.reason is Reason.COMPLETE
                outer += found.frames[1:]
                assert len(outer) >= 2
                truth += outer
            if pc in outer:  # main has returned
                break
            assert found.reason is Reason.COMPLETE, (found, list(map(hex, truth)))
            assert found.frames == truth, (list(map(hex, found.frames)), list(map(hex, truth)))
            whole[found.frames == truth] += 1
    finally:
        stepper.close()
    assert whole[True] > 1500
