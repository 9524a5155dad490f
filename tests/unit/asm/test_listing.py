"""The code of objects as text, below its lines of C."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import purebpf
from purebpf import asm

DATA = Path(__file__).parents[2] / "data"
COUNTER = purebpf.read_object(DATA / "load_counter.bpf.o")
SOURCE = (DATA / "load_counter.bpf.c").read_text().splitlines()


def test_a_line_of_c_is_above_its_instructions():
    text = asm.disassemble(COUNTER, "count_calls")
    lines = re.findall(r"^; load_counter\.bpf\.c:(\d+): (.*)$", text, re.MULTILINE)
    assert all(SOURCE[int(number) - 1].strip() == line for number, line in lines)
    shown = text.splitlines()
    at = next(i for i, line in enumerate(shown) if "BPF_NOEXIST" in line)
    assert shown[at + 1 : at + 5] == [
        "  27: (18) r1 = 0x0  ; map calls",
        "  29: (bf) r2 = r6",
        "  30: (b7) r4 = 1",
        "  31: (85) call bpf_map_update_elem#2",
    ]


def test_references_are_named():
    text = asm.disassemble(COUNTER, "count_calls")
    assert "r1 = 0x0  ; .rodata + 0" in text
    core = purebpf.read_object(DATA / "elf_core.bpf.o")
    assert re.search(r"r1 = 24  ; CO-RE: type \d+, 0:1:2:1", asm.disassemble(core, "every_kind"))
    calls = purebpf.read_object(DATA / "elf_functions.bpf.o")
    texts = [asm.disassemble(calls, name) for name in calls.functions]
    assert any(re.search(r"call pc[+-]\d+  ; \w+\(\)$", text, re.MULTILINE) for text in texts)


def test_an_object_of_the_other_byte_order_is_read_too():
    spec = purebpf.read_object(DATA / "elf_big_endian.bpf.o")
    assert asm.disassemble(spec, next(iter(spec.functions))).endswith("(95) exit")


def test_an_unknown_name_has_a_similar_one():
    with pytest.raises(
        KeyError, match="unknown program or function 'count_cals'; similar: count_calls"
    ):
        asm.disassemble(COUNTER, "count_cals")
