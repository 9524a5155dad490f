"""The kernel's mapping and the BPF programs, from the text of /proc/kallsyms."""

from __future__ import annotations

import pytest

from purebpf.observe.processes import synthesized_records
from purebpf.wire.perf_records import Mmap

CORE = b"""\
0000000000000000 A fixed_percpu_data
ffffffff80000000 T not_text
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff82000bad T my_etext
ffffffff82000bee T _etext_of
ffffffff8220bb08 T _etext
"""
LOADED = b"""\
ffffffffc0002000 t of_module\t[module]
ffffffffc0001000 t bpf_prog_one\t[bpf]
ffffffffc0001400 t bpf_prog_two\t[bpf]
"""


def kernel(text: bytes) -> list[tuple[int, int, str]]:
    found = [each for each in synthesized_records.kernel_mappings(text) if isinstance(each, Mmap)]
    return [(each.addr, each.length, each.filename) for each in found[:1]]


@pytest.mark.parametrize("behind", [b"", LOADED])
def test_the_kernel_goes_from_text_to_etext(behind: bytes) -> None:
    expected = (0xFFFFFFFF81000000, 0x120BB08, "[kernel.kallsyms]_text")
    assert kernel(CORE + behind) == [expected]


def test_without_text_it_begins_at_stext() -> None:
    text = CORE.replace(b" _text\n", b" _texts\n")
    assert kernel(text)[0][2] == "[kernel.kallsyms]_stext"


def test_the_first_line_may_be_text() -> None:
    assert kernel(b"ffffffff81000000 T _text\nffffffff81000010 T _etext\n")[0][1] == 16


@pytest.mark.parametrize(
    "text", [b"", CORE.replace(b" _etext\n", b" e\n"), b"0000000000000000 T _text\n"]
)
def test_hidden_or_absent_there_is_no_mapping(text: bytes) -> None:
    assert kernel(text) == []


@pytest.mark.parametrize("text", [CORE + LOADED, LOADED])
def test_programs_end_where_the_next_begins(text: bytes) -> None:
    bodies = [each.body for each in synthesized_records.programs(text)]
    found = [(int.from_bytes(body[:8], "little"), body[8:12], body[16:28]) for body in bodies]
    assert [(start, size) for start, size, _ in found] == [
        (0xFFFFFFFFC0001000, (0x400).to_bytes(4, "little")),
        (0xFFFFFFFFC0001400, (1).to_bytes(4, "little")),
    ]
    assert [name for _, _, name in found] == [b"bpf_prog_one", b"bpf_prog_two"]


def test_without_programs_there_are_no_records() -> None:
    assert list(synthesized_records.programs(CORE)) == []
