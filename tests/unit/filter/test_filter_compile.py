"""Compiled code and the Python function agree, on any filter and any sample."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.errors import NotSupportedError
from purebpf.filter import parse
from purebpf.filter.compile import Counters, compile_terms, missing, stride
from purebpf.filter.evaluate import predicate
from purebpf.filter.lowering import NameLookup, NoNames, SymbolRange, resolve
from purebpf.filter.sample_layout import SampleAccess, from_registers
from purebpf.filter.syntax import Filter
from tests.support.builders.filters import ACCESS, Machine, as_sample, numeric_expressions, samples

pytestmark = pytest.mark.slow


WHOLE = bit.PERF_SAMPLE_WEIGHT


def terms_of(text: str, names: NameLookup | None = None):
    return resolve(parse(text), WHOLE, names or NoNames())


def compiled(terms, access: SampleAccess = ACCESS):
    return compile_terms(terms, access, Counters(3, 1, stride(1 + len(terms))))


@given(numeric_expressions, st.lists(samples, min_size=1, max_size=4))
def test_the_code_decides_and_counts_as_the_function_does(tree, words):
    terms = resolve(Filter(str(tree), tree), WHOLE, NoNames())
    rejecting = predicate(terms)
    code = compiled(terms)
    for each in words:
        machine = Machine(each, stride(1 + len(terms)))
        kept = machine.run(code.instructions)
        index = rejecting(as_sample(each))
        assert kept == (index < 0)
        counters = struct.unpack_from(f"<{len(terms) + 1}Q", machine.counters)
        assert counters == tuple(int(place == index + 1) for place in range(len(terms) + 1))


BLANK = dict.fromkeys(ACCESS.words, 0)


@pytest.mark.parametrize(
    ("text", "words", "kept"),
    [
        ("ip < 0xffffffff00000000", {"ip": 0xFFFFFFFEFFFFFFFF}, True),
        ("ip < 0xffffffff00000000", {"ip": 0xFFFFFFFF00000000}, False),
        ("ip in 16..31", {"ip": 16}, True),
        ("ip in 16..31", {"ip": 31}, True),
        ("ip in 16..31", {"ip": 15}, False),
        ("ip in 16..31", {"ip": 32}, False),
        ("pid & 6", {"tid_entry.pid": 4}, True),
        ("pid & 6", {"tid_entry.pid": 9}, False),
        ("mem_snoop == fwd", {"data_src.val": 1 << 38}, True),
        ("mem_snoop == peer", {"data_src.val": 2 << 38}, True),
        ("mem_snoop == none", {"data_src.val": 2 << 38}, False),  # as perf would have it
        ("mem_lvl == na", {"data_src.val": 1 << 33}, False),
        ("mem_lvl == l1", {"data_src.val": 1 << 33}, True),
        ("mem_op == 0x1f", {"data_src.val": (1 << 64) - 1}, True),
        ("weight2 == 0xabcd", {"weight.full": 0x1234ABCD56789ABC}, True),
        ("weight1 == 0x56789abc", {"weight.full": 0x1234ABCD56789ABC}, True),
        ("retire_lat == 0x1234", {"weight.full": 0x1234ABCD56789ABC}, True),
        ("weight == 0x1234ABCD56789ABC", {"weight.full": 0x1234ABCD56789ABC}, True),
        ("!(cpu == 1, pid == 2)", {"cpu_entry.cpu": 1, "tid_entry.pid": 3}, True),
        ("!(cpu == 1, pid == 2)", {"cpu_entry.cpu": 1, "tid_entry.pid": 2}, False),
    ],
)
def test_both_sides_of_a_test(text, words, kept):
    terms = terms_of(text)
    every = BLANK | words
    machine = Machine(every, stride(1 + len(terms)))
    assert machine.run(compiled(terms).instructions) == kept
    assert (predicate(terms)(as_sample(every)) < 0) == kept


@pytest.mark.parametrize("name", ["a", "seventh", "faulty-child", "fifteen-letters"])
def test_only_the_name_counts_and_not_what_the_stack_held_behind_it(name):
    for text, kept in ((f"comm == {name}", True), (f"comm != {name}", False), ("comm == b", False)):
        terms = terms_of(text)
        machine = Machine(BLANK, stride(1 + len(terms)), name.encode())
        assert machine.run(compiled(terms).instructions) == kept


def test_weight_is_its_first_part_where_the_sample_has_parts():
    terms = resolve(parse("weight == 5"), bit.PERF_SAMPLE_WEIGHT_STRUCT, NoNames())
    every = BLANK | {"weight.full": 7 << 32 | 5}
    assert Machine(every, stride(1 + len(terms))).run(compiled(terms).instructions) == 1


def test_a_set_of_many_numbers_is_searched_and_not_walked():
    wanted = range(0, 3000, 3)
    terms = terms_of(f"pid in {{{', '.join(map(str, wanted))}}}")
    code = compiled(terms)
    for pid in (0, 1, 2, 3, 1500, 1501, 2997, 2998, 3000):
        machine = Machine(BLANK | {"tid_entry.pid": pid}, stride(1 + len(terms)))
        assert machine.run(code.instructions) == (pid in wanted)


def test_a_thousand_terms():
    terms = terms_of(", ".join(f"pid != {number}" for number in range(1000)))
    code = compiled(terms)
    for pid, kept in ((999, False), (1000, True)):
        machine = Machine(BLANK | {"tid_entry.pid": pid}, stride(1 + len(terms)))
        assert machine.run(code.instructions) == kept


def test_more_than_a_jump_spans_is_refused_in_words():
    terms = terms_of("||".join(f"pid == {number}" for number in range(40_000)))
    with pytest.raises(NotSupportedError, match="a jump spans 32767"):
        compiled(terms)


class _Places(NoNames):
    def symbol(self, name: str):
        return [SymbolRange(0, 100, 199), SymbolRange(7, 500, 599), SymbolRange(7, 600, 609)]


@pytest.mark.parametrize(
    ("pid", "ip", "kept"),
    [(1, 150, True), (7, 150, True), (7, 500, True), (7, 609, True), (7, 610, False),
     (8, 550, False), (1, 200, False), (1, 99, False)],
)  # fmt: skip
def test_a_function_of_a_process_counts_only_there(pid, ip, kept):
    terms = terms_of("symbol == f", _Places())
    every = BLANK | {"tid_entry.pid": pid, "ip": ip}
    assert Machine(every, stride(1 + len(terms))).run(compiled(terms).instructions) == kept
    assert (predicate(terms)(as_sample(every)) < 0) == kept


def test_what_an_old_kernel_lacks_is_named_once():
    access = from_registers(None, "x86_64", own_pids=True)
    terms = terms_of("time > 1 || time < 5, cpu == 1, addr == 3")
    assert missing(terms, access) == ("time", "addr")
    with pytest.raises(NotSupportedError, match="a filter on time, addr"):
        compiled(terms, access)


@pytest.mark.parametrize("text", ["comm == a", "uid == 0", "gid in 1..2"])
def test_user_space_cannot_tell_what_samples_do_not(text):
    with pytest.raises(NotSupportedError, match="samples do not have"):
        predicate(terms_of(text))


def test_terms_are_what_commas_separate():
    terms = terms_of("cpu == 1 || pid == 2, (tid == 3, ip > 4), !addr == 5")
    assert [term.text for term in terms] == [
        "cpu == 1 || pid == 2",
        "tid == 3",
        "ip > 4",
        "!addr == 5",
    ]


def test_the_listing_shows_each_term_above_its_code():
    terms = terms_of("pid == 7 || pid > 0x100000000, mem_op & load")
    assert compiled(terms).listing().split("\n")[:11] == [
        "; the sample, and what helpers know",
        "   0: (85) call bpf_cast_to_kern_ctx#99",
        "   1: (79) r6 = *(u64 *)(r0 +8)",
        "; 1: pid == 7 || pid > 0x100000000",
        "   2: (61) r1 = *(u32 *)(r6 +16)",
        "   3: (15) if r1 == 0x7 goto pc+3",
        "   4: (18) r2 = 0x100000000",
        "   6: (bd) if r1 <= r2 goto pc+6",
        "; 2: mem_op & load",
        "   7: (79) r3 = *(u64 *)(r6 +72)",
        "   8: (57) r3 &= 31",
    ]


@pytest.mark.parametrize(
    ("text", "loads"),
    [
        ("pid == 1 || pid == 2 || pid in {3, 5}", 1),
        ("ip > 1, ip < 9, !ip == 5", 1),
        ("mem_op & load, mem_op != store", 1),
        ("mem_op & load, mem_lvl == l3", 2),
        ("pid == 1 || cpu == 2, pid == 3", 2),
        ("pid == 1 || cpu == 2, cpu == 3", 3),  # the first may have been true
        ("(pid == 1, cpu == 2) || pid == 3", 2),
        ("(pid == 1, cpu == 2) || cpu == 3", 3),
        ("pid == 1 || comm == a || pid == 2", 1),
        ("pid > 1, tid > 1, ip > 1, period > 1, cpu < 9, pid != 5, cpu != 5", 5),
        ("pid > 1, tid > 1, ip > 1, period > 1, cpu < 9, addr != 5, pid != 5", 7),
        ("pid > 1, tid > 1, ip > 1, period > 1, cpu < 9, pid != 2, addr != 5, pid != 5", 6),
    ],
)
def test_what_is_in_the_register_is_not_loaded_again(text, loads):
    code = compiled(terms_of(text))
    found = [each for each in code.instructions if each.opcode in (0x61, 0x79) and each.src == 6]
    assert len(found) == loads
