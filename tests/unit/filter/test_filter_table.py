"""The pinned program's table: the same decisions, and the same numbers in C and in Python."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf import objects
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.btf.types.kinds import Kind
from purebpf.errors import NotSupportedError
from purebpf.filter import parse
from purebpf.filter.decision_table import (
    ENTRIES,
    VERDICT,
    Entry,
    FilterField,
    FilterOperator,
    listing,
    pack_table,
    table,
)
from purebpf.filter.evaluate import predicate
from purebpf.filter.lowering import NoNames, resolve
from purebpf.filter.syntax import Filter
from tests.support.builders.filters import as_sample, numeric_expressions, samples

pytestmark = pytest.mark.slow


_FIELDS = {
    FilterField.TID: "tid_entry.tid",
    FilterField.PID: "tid_entry.pid",
    FilterField.CPU: "cpu_entry.cpu",
    FilterField.WEIGHT: "weight.full",
    FilterField.DATA_SRC: "data_src.val",
    FilterField.DATA_PGSZ: "data_page_size",
    FilterField.CODE_PGSZ: "code_page_size",
}
_HOLDS = {
    FilterOperator.EQ: lambda a, b: a == b,
    FilterOperator.NE: lambda a, b: a != b,
    FilterOperator.GT: lambda a, b: a > b,
    FilterOperator.GE: lambda a, b: a >= b,
    FilterOperator.LT: lambda a, b: a < b,
    FilterOperator.LE: lambda a, b: a <= b,
    FilterOperator.AND: lambda a, b: bool(a & b),
}


def terms_of(text: str):
    return resolve(parse(text), bit.PERF_SAMPLE_WEIGHT, NoNames())


def verdict(entries: tuple[Entry, ...], words: dict[str, int]) -> int:
    """What the C program does: the index of the term that rejects, or -1."""
    at = 0
    while not at & VERDICT:
        entry = entries[at]
        if entry.field is FilterField.SNOOP:
            source = words["data_src.val"]
            found = (source >> 19 & 0x1F) | (source >> 38 & 3) << 5
        else:
            found = words[_FIELDS.get(entry.field, entry.field.name.lower())]
        found = found >> entry.shift & entry.mask
        following = entry.yes if _HOLDS[entry.operator](found, entry.value) else entry.no
        assert following > at  # never back: it must end
        at = following
    return (at & ~VERDICT) - 1


@given(numeric_expressions, st.lists(samples, min_size=1, max_size=4))
def test_the_table_decides_as_the_function_does(tree, words):
    terms = resolve(Filter(str(tree), tree), bit.PERF_SAMPLE_WEIGHT, NoNames())
    try:
        entries = table(terms)
    except NotSupportedError:
        return
    rejecting = predicate(terms)
    for each in words:
        assert verdict(entries, each) == rejecting(as_sample(each))


def test_names_and_users_have_entries():
    assert listing(table(terms_of("comm in {a, bash}, uid == 0"))).split("\n") == [
        "   0: if comm_head == 0x61 goto 1 else goto 2",
        "   1: if comm_tail == 0x0 goto 4 else goto 2",
        "   2: if comm_head == 0x68736162 goto 3 else drop (1)",
        "   3: if comm_tail == 0x0 goto 4 else drop (1)",
        "   4: if uid == 0x0 keep else drop (2)",
    ]


def test_a_part_of_a_word_is_shifted_and_masked():
    assert listing(table(terms_of("mem_lvl == l3"))) == (
        "   0: if data_src >> 33 & 0xf == 0x3 keep else drop (1)"
    )


def test_the_table_has_room_for_128():
    text = " || ".join(f"pid == {number}" for number in range(ENTRIES))
    assert len(table(terms_of(text))) == ENTRIES
    with pytest.raises(NotSupportedError, match="129 comparisons, but the table has room for 128"):
        table(terms_of(f"{text} || pid == 999"))


@pytest.mark.parametrize("enum", [FilterField, FilterOperator])
def test_python_and_c_have_the_same_numbers(enum):
    btf = objects.spec("filter_pinned").btf
    name, prefix = {
        FilterField: ("filter_field", "FIELD_"),
        FilterOperator: ("filter_operator", "OPERATOR_"),
    }[enum]
    (type_id,) = btf.find(name, Kind.ENUM)
    theirs = {each.name.removeprefix(prefix): each.value for each in btf.type(type_id).values}
    assert theirs == {each.name: each.value for each in enum}


def test_python_and_c_lay_an_entry_out_alike():
    btf = objects.spec("filter_pinned").btf
    (entry,) = (btf.type(found) for found in btf.find("entry", Kind.STRUCT))
    (whole,) = btf.find("table", Kind.STRUCT)
    packed = pack_table([Entry(1, 2, FilterField.GID, FilterOperator.LE, 5, 6, 7, 8)])
    assert len(packed) == btf.sizeof(whole)
    offsets = {member.name: member.bit_offset // 8 for member in entry.members}
    formats = {"value": "Q", "mask": "Q", "yes": "H", "no": "H"}
    found = {
        name: struct.unpack_from("=" + formats.get(name, "B"), packed, offset)[0]
        for name, offset in offsets.items()
    }
    names = ("value", "mask", "field", "operator", "shift", "level", "yes", "no")
    assert found == dict(zip(names, (1, 2, 17, 5, 5, 6, 7, 8), strict=True))
