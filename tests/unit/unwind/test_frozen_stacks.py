"""Stack traces at every instruction of small programs, as scripts/freeze_stacks.py saw them run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from purebpf.symbols.elf_image import ElfImage
from purebpf.unwind.address_space import AddressSpace, CodeMapping
from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.machine import X86_64
from purebpf.unwind.packed_rule import Kind, pack_rule
from purebpf.unwind.reason import Reason
from purebpf.unwind.unwinder import Unwinder

_FOLDER = Path(__file__).parents[2] / "data/unwind"


@pytest.mark.parametrize("name", ["frozen-gcc", "frozen-clang"])
def test_every_instruction_has_the_trace_that_was_true(name):
    cfi = CfiFile(ElfImage.of_bytes((_FOLDER / name).read_bytes()))
    space = AddressSpace([CodeMapping(cfi.text.start, cfi.text.end, 0, name)])
    unwinder = Unwinder(X86_64, space, lambda _: cfi)
    rows = json.loads((_FOLDER / f"{name}.json").read_text())
    assert len(rows) > 80
    assert max(len(truth) for _, _, _, truth in rows) >= 5
    for pc, registers, stack, truth in rows:
        found = unwinder.unwind(pc, registers, bytes.fromhex(stack))
        assert (found.frames, found.reason) == (truth, Reason.COMPLETE), hex(pc)


@pytest.mark.parametrize("name", ["frozen-gcc", "frozen-clang"])
def test_bpf_can_follow_their_rules(name):
    cfi = CfiFile(ElfImage.of_bytes((_FOLDER / name).read_bytes()))
    pcs = {row[0] for row in json.loads((_FOLDER / f"{name}.json").read_text())}
    kinds = [Kind(pack_rule(cfi.table.rules[cfi.rows.rule_id(pc)], X86_64)[2]) for pc in pcs]
    assert Kind.INVALID not in kinds
    assert kinds.count(Kind.USER) <= len(kinds) // 10  # realigning, by r10
    assert {Kind.SP, Kind.FP, Kind.END} <= set(kinds)
