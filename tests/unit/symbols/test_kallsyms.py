"""/proc/kallsyms texts, made for each rule."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from purebpf.symbols.kallsyms import Kallsyms, KernelSymbol, addresses

_CORE = b"""\
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000000 t startup
ffffffff81000040 W weak_one
ffffffff81000040 t local_one
ffffffff81000100 T __x64_sys_read
ffffffff81000100 T ksys
ffffffff81000200 D some_data
ffffffff81000300 T last_text
ffffffff82000000 B _end
"""
_LOADED = b"""\
ffffffffc0002000 t second\t[ext4]
ffffffffc0001000 t first\t[ext4]
ffffffffc0002100 d table\t[ext4]
ffffffffc0100000 t bpf_prog_6deef7357e7b4530_on_sample\t[bpf]
"""


def _names(text: bytes, *addresses: int) -> list[str | None]:
    table = Kallsyms(text)
    return [found.name if (found := table.find(address)) else None for address in addresses]


def test_a_call_of_both_abis_has_the_native_name():
    lines = [
        b"ffffffff81000100 %c %s\n" % (kind, name)
        for kind, name in (
            (b"t", b"__do_sys_getppid"),
            (b"T", b"__ia32_sys_getppid"),
            (b"T", b"__x64_sys_getppid"),
        )
    ]
    random.Random(7).shuffle(lines)
    behind = b"ffffffff81000200 T __ia32_compat_sys_alone\nffffffff81000300 T last\n"
    for order in (lines, lines[::-1]):
        names = _names(b"".join(order) + behind, 0xFFFFFFFF81000104, 0xFFFFFFFF81000204)
        assert names == ["__x64_sys_getppid", "__ia32_compat_sys_alone"]


def test_a_function_reaches_up_to_the_next_symbol_of_any_type():
    addresses = (0xFFFFFFFF81000100, 0xFFFFFFFF810001FF, 0xFFFFFFFF81000200, 0xFFFFFFFF81000300)
    assert _names(_CORE, *addresses) == ["ksys", "ksys", None, "last_text"]
    found = Kallsyms(_CORE).find(0xFFFFFFFF810001FF)
    assert found == KernelSymbol(0xFFFFFFFF81000100, "ksys", "")


def test_a_function_of_a_module_reaches_up_to_the_next_symbol():
    table = Kallsyms(_CORE + _LOADED)
    assert table.loaded_span(0xFFFFFFFFC0001004) == (0xFFFFFFFFC0001000, 0xFFFFFFFFC0002000)
    assert table.loaded_span(0xFFFFFFFFC00020FF) == (0xFFFFFFFFC0002000, 0xFFFFFFFFC0002100)
    assert table.loaded_span(0xFFFFFFFFC0000FFF) is None  # in front of all
    assert table.loaded_span(0xFFFFFFFFC0100004) is None  # its end is not known
    assert Kallsyms(_CORE).loaded_span(0xFFFFFFFFC0001004) is None


def test_which_name_of_several():
    assert _names(_CORE, 0xFFFFFFFF81000000, 0xFFFFFFFF81000040) == ["_stext", "local_one"]
    assert _names(b"10 T _a\n10 T abc\n10 T abcd\n10 t abcdef\n20 B e\n", 0x10) == ["abcd"]


def test_addresses_outside_the_kernel_have_no_name():
    assert _names(_CORE, -1, 0, 0xFFFFFFFF80FFFFFF, 0xFFFFFFFF82000000, 1 << 70) == [None] * 5


def test_modules_and_programs_are_found_in_any_order():
    text = _CORE + _LOADED
    table = Kallsyms(text)
    assert table.find(0xFFFFFFFFC0001FFF) == KernelSymbol(0xFFFFFFFFC0001000, "first", "ext4")
    assert table.find(0xFFFFFFFFC0002010) == KernelSymbol(0xFFFFFFFFC0002000, "second", "ext4")
    assert table.find(0xFFFFFFFFC0002100) is None
    program = table.find(0xFFFFFFFFC0100010)
    assert program.module == "bpf"
    assert program.name == "bpf_prog_6deef7357e7b4530_on_sample"


def test_the_last_function_does_not_reach_to_the_end_of_memory():
    assert _names(_CORE + _LOADED, 0xFFFFFFFFC0100000 + (1 << 20) - 1) != [None]
    assert _names(_CORE + _LOADED, 0xFFFFFFFFC0100000 + (1 << 20)) == [None]
    assert _names(b"00001000 T only\n", 0x100FFF, 0x101000) == ["only", None]


def test_zeros_instead_of_addresses_are_recognised():
    hidden = b"0000000000000000 T _stext\n0000000000000000 t a\n0000000000000000 t m\t[ext4]\n"
    assert Kallsyms(hidden).hidden
    assert Kallsyms(hidden).find(0) is None
    assert not Kallsyms(_CORE).hidden
    per_cpu_first = b"0000000000000000 A fixed_percpu_data\n" + _CORE
    assert not Kallsyms(per_cpu_first).hidden
    assert _names(per_cpu_first, 0xFFFFFFFF81000300) == ["last_text"]


def test_a_span_reaches_from_one_symbol_of_the_kernel_to_the_next():
    table = Kallsyms(_CORE + _LOADED)
    assert table.span(0xFFFFFFFF81000041) == (0xFFFFFFFF81000040, 0xFFFFFFFF81000100)
    assert table.span(0xFFFFFFFF82000000) is None  # the last one may have its end in a module
    assert table.span(0xFFFFFFFF80000000) is None
    assert Kallsyms(b"").span(0xFFFFFFFF81000041) is None


def test_an_empty_text_names_nothing():
    assert Kallsyms(b"").find(0xFFFFFFFF81000000) is None


@given(st.lists(st.integers(0, 1 << 12), min_size=1, max_size=40), st.integers(0, 40), st.randoms())
def test_against_a_linear_search(starts, core, shuffler: random.Random):
    starts = sorted(starts)
    rows = [(start, f"f{index}") for index, start in enumerate(starts)]
    own, loaded = rows[:core], rows[core:]
    shuffler.shuffle(loaded)
    text = b"".join(b"%016x T %s\n" % (start + 1, name.encode()) for start, name in own)
    text += b"".join(b"%016x t %s\t[m]\n" % (start + 1, name.encode()) for start, name in loaded)
    table = Kallsyms(text)
    for address in {*starts, *(start + 1 for start in starts), *(start + 2 for start in starts)}:
        below = [start + 1 for start, _ in rows if start + 1 <= address]
        names = {name for start, name in rows if below and start + 1 == max(below)}
        found = table.find(address)
        assert (found.name in names and found.start == max(below)) if names else found is None
        span = table.span(address)
        if span is not None:
            assert span[0] <= address < span[1]
            assert {table.find(other) for other in range(*span)} == {found}


def test_addresses_of_names_are_those_of_whole_names_of_any_type():
    text = _CORE + b"ffffffff81000500 t startup\nffffffff81000600 d ext4\n" + _LOADED
    assert addresses(text, ["_text", "some_data", "startup", "table", "ext4", "read", "last"]) == {
        "_text": {0xFFFFFFFF81000000},
        "some_data": {0xFFFFFFFF81000200},
        "startup": {0xFFFFFFFF81000000, 0xFFFFFFFF81000500},
        "table": {0xFFFFFFFFC0002100},
        "ext4": {0xFFFFFFFF81000600},
        "read": set(),
        "last": set(),
    }


def test_a_static_variable_that_was_renamed_for_linking_keeps_its_name():
    text = b"ffffffff81000000 d state.llvm.42\nffffffff81000100 t run.llvm.42\n"
    assert addresses(text, ["state", "run"]) == {"state": {0xFFFFFFFF81000000}, "run": set()}


def test_a_name_that_is_not_utf8_is_a_name():
    text = b"ffffffff81000000 T _text\xff\n"
    found = addresses(text, ["_text\udcff", "_text\udc80"])
    assert [*found.values()] == [{0xFFFFFFFF81000000}, set()]


def test_hidden_addresses_are_zero():
    assert addresses(b"0000000000000000 T first\n0000000000000000 T second", ["second"]) == {
        "second": {0}
    }
