"""The table of functions that stands before the samples."""

from __future__ import annotations

from purebpf.symbols.frame import Address, Frame, Reason, Unknown
from purebpf.tools.sampleip.functions import FunctionCounts
from purebpf.tools.sampleip.held_lines import HeldLines


def frame(name: str, offset: int = 0) -> Frame:
    return Frame(name, offset, "/usr/bin/shop", Address(4096 + offset), "user")


def test_offsets_of_a_function_are_one_row() -> None:
    counts = FunctionCounts()
    for offset in range(3):
        counts.add(frame("pay", offset))
    counts.add(frame("pack"), 6)
    counts.add(Unknown(Address(9), Reason.EXITED, "/usr/lib/libx.so", "user"))
    assert list(counts.lines()) == [
        "  SAMPLES  SHARE FUNCTION\n",
        "        6  60.0% pack [shop]\n",
        "        3  30.0% pay [shop]\n",
        "        1  10.0% [unknown] [the process exited before purebpf read its mappings]\n",
        "\n",
    ]


def test_the_shares_of_many_functions_add_up() -> None:
    counts = FunctionCounts()
    for number in range(31):
        counts.add(frame(f"f{number:02}"), 2)
    lines = list(counts.lines())
    assert len(lines) == 1 + 20 + 1 + 1
    assert lines[-2] == "       22  35.5% (11 other functions)\n"


def test_no_samples_make_no_table() -> None:
    assert list(FunctionCounts().lines()) == []


def test_held_lines_come_back_in_order_from_memory_and_from_a_file() -> None:
    lines = [f"{number:07} {'x' * 90}\udcff\n" for number in range(60_011)]
    with HeldLines() as held:
        held.add(lines[:17])
        held.add(lines[17:])
        assert list(held.lines()) == lines
