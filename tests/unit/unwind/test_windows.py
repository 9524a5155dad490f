"""Windows of 1 KiB: the same rule as the rows give, for every address."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.rows import NO_RULE
from purebpf.unwind.rule import CFA_DEPTH
from purebpf.unwind.windows import WINDOW, cut_all, cut_window, find_in_block
from tests.unit.unwind.cfi_builder import FRAME, TEXT, Image, Section, advance, cfa_offset

pytestmark = pytest.mark.slow


_SIZE = 0x2000

_FUNCTIONS = st.lists(
    st.tuples(
        st.integers(0, _SIZE - 1),
        st.one_of(st.integers(0, 40), st.integers(0, 3000)),
        st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 9)), max_size=4),
    ),
    max_size=12,
)


def _section(functions):
    section = Section()
    for start, size, steps in functions:
        code = b"".join(advance(by) + cfa_offset(8 * to) for by, to in steps)
        section.fde(TEXT + start, size, code)
    return section


def _rules(block, cfi):
    """A block with rules instead of ids, which depend on the order of reading."""
    return [(row & 2047, row >> 11 and cfi.table.rules[row >> 11]) for row in block[1:]]


@settings(max_examples=60, deadline=None)
@given(_FUNCTIONS)
def test_windows_are_the_same_with_the_same_numbers_after_a_rest(functions):
    """What was published refers to rules by their numbers."""
    cfi = _section(functions).cfi(text=_SIZE)
    numbers = range(cfi.first_window, cfi.first_window + cfi.window_count)
    windows = [cfi.window(number) for number in numbers]
    rules = list(cfi.table.rules)
    whole = cfi.whole()
    cfi.rest()
    assert [cfi.window(number) for number in numbers] == windows
    cfi.rest()
    assert cfi.whole() == whole
    assert cfi.table.rules == rules


@settings(max_examples=60, deadline=None)
@given(_FUNCTIONS)
def test_every_way_to_windows_gives_the_rules_of_the_rows(functions):
    cfi = _section(functions).cfi(text=_SIZE)
    rows = cfi.rows
    first, places, blocks = cfi.whole()
    for number in range(cfi.first_window, cfi.first_window + cfi.window_count):
        cut = cut_window(rows, number)
        assert cut[0] == len(cut) - 1
        assert not cut[1] & 2047
        for offset in range(WINDOW):
            expected = rows.rule_id(number * WINDOW + offset)
            assert find_in_block(cut, offset) == expected
        if number - first < len(places):
            at = places[number - first] - 1
            assert blocks[at : at + 1 + blocks[at]] == cut
        else:
            assert not any(row >> 11 for row in cut[1:])


@settings(max_examples=200, deadline=None)
@given(_FUNCTIONS, st.randoms())
def test_windows_by_the_search_table_are_those_of_the_whole_file(functions, chance):
    starts = [start for start, _, _ in functions]
    functions = [row for row in functions if starts.count(row[0]) == 1]
    section = _section(functions)
    whole = section.cfi(text=_SIZE)
    apart = section.cfi(text=_SIZE, header=True)
    numbers = list(range(whole.first_window, whole.first_window + whole.window_count))
    chance.shuffle(numbers)
    for number in numbers:
        expected = _rules(cut_window(whole.rows, number), whole)
        assert _rules(apart.window(number), apart) == expected


@settings(max_examples=60, deadline=None)
@given(_FUNCTIONS)
def test_one_address_has_the_cfa_of_the_rows(functions):
    starts = [start for start, _, _ in functions]
    functions = [row for row in functions if starts.count(row[0]) == 1]
    cfi = _section(functions).cfi(text=_SIZE, header=True)
    for address in range(TEXT, TEXT + _SIZE, 7):
        rule = cfi.rows.rule_id(address)
        row = cfi.row(address)
        if row is not None:
            assert cfi.table.rules[rule].cfa == row.cfa
        elif rule != NO_RULE:
            assert cfi.fde(address - 15) or any(cfi.fde(address - by) for by in range(15))


class _Steps:
    """Depths by address, each up to the next."""

    def __init__(self, steps):
        self._steps = sorted({0: None, **steps}.items())

    def depth(self, address):
        return [depth for at, depth in self._steps if at <= address][-1]

    def depths(self, start, end):
        yield start, self.depth(start)
        yield from ((at, depth) for at, depth in self._steps if start < at < end)


@settings(max_examples=60, deadline=None)
@given(
    _FUNCTIONS,
    st.dictionaries(st.integers(TEXT, TEXT + _SIZE), st.one_of(st.none(), st.just(8), st.just(48))),
)
def test_depths_of_the_stack_fill_what_has_no_rule(functions, steps):
    section = _section(functions)
    plain = section.cfi(text=_SIZE)
    known = _Steps(steps)
    cfi = CfiFile(Image({".eh_frame": (FRAME, section.data)}, text=_SIZE), known)
    assert not cfi.is_small
    for number in range(cfi.first_window, cfi.first_window + cfi.window_count):
        block, without = cfi.window(number), plain.window(number)
        for offset in range(WINDOW):
            was = plain.table.rules[find_in_block(without, offset)]
            rule = cfi.table.rules[find_in_block(block, offset)]
            depth = known.depth(number * WINDOW + offset)
            if find_in_block(without, offset) != NO_RULE:
                assert rule == was
            elif depth is None:
                assert find_in_block(block, offset) == NO_RULE
            else:
                assert (rule.cfa_register, rule.cfa) == (CFA_DEPTH, depth)


def test_no_rows_give_no_windows():
    index, blocks = cut_all(Section().cfi().rows, 4, 2)
    assert list(index) == [1, 3]
    assert list(blocks) == [1, 0, 1, 0]


def test_the_largest_window_has_a_row_for_each_byte():
    code = b"".join(b"\x41" + cfa_offset(9 + (at & 1)) for at in range(1200))
    cfi = Section().fde(TEXT + 0x400, 1200, code).cfi(text=_SIZE)
    block = cut_window(cfi.rows, (TEXT >> 10) + 1)
    assert block[0] == WINDOW
    assert find_in_block(block, 1023) != find_in_block(block, 1022)
