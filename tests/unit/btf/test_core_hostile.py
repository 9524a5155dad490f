"""CO-RE on anything at all: it answers, or raises one of its two errors."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from purebpf.btf.core.matching import match
from purebpf.btf.types.kinds import Kind, Struct, Union
from purebpf.btf.types.parse import Btf
from purebpf.errors import CoreRelocationError, FormatError
from purebpf.spec import CoreRelocation
from tests.support.builders.btf_builder import BtfBuilder

NAMES = ("", "a", "a___x", "b", "int", "long")
IDS = st.integers(0, 12)
SMALL = st.integers(0, 9)


@st.composite
def some_type(draw: Callable) -> Callable[[BtfBuilder], object]:
    """A type of any kind with references that may be cycles, or to ids that do not exist."""
    kind = draw(st.sampled_from(list(Kind)[1:]))
    name = draw(st.sampled_from(NAMES))
    flag = draw(st.booleans())
    count = draw(st.integers(0, 3))
    words = [draw(IDS) for _ in range(3 * count)]
    third = draw(st.sampled_from((0, 1, 2, 4, 8, 3)) if kind != Kind.PTR else IDS)

    def make(b: BtfBuilder) -> None:
        if kind in (Kind.STRUCT, Kind.UNION):
            tail = []
            for member in range(count):
                named, type_id, bits = words[3 * member : 3 * member + 3]
                place = bits * 7 | (bits % 5) << 24 if flag else bits * 8
                tail += [b.string(NAMES[named % len(NAMES)]), type_id, place]
            b.raw(kind, name, count, third, tail, flag=flag)
        elif kind in (Kind.ENUM, Kind.ENUM64):
            width = 2 if kind == Kind.ENUM else 3
            tail = [w for n in range(count) for w in [b.string(NAMES[n + 1]), *words[: width - 1]]]
            b.raw(kind, name, count, 4, tail, flag=flag)
        elif kind == Kind.FUNC_PROTO:
            tail = [w for n in range(count) for w in (0, words[n])]
            b.raw(kind, "", count, third, tail)
        elif kind == Kind.DATASEC:
            b.raw(kind, name, count, third, words)
        elif kind == Kind.INT:
            b.int(name, 4, signed=flag, bits=8, offset=count)
        elif kind == Kind.ARRAY:
            b.raw(kind, "", 0, 0, [third, 0, count])
        elif kind in (Kind.VAR, Kind.DECL_TAG):
            b.raw(kind, name, 0, third, [0])
        else:
            b.raw(kind, name, 0, third, flag=flag)

    return make


@st.composite
def some_btf(draw: Callable) -> Btf:
    builder = BtfBuilder()
    for make in draw(st.lists(some_type(), min_size=1, max_size=12)):
        make(builder)
    return builder.btf()


FIELD_NUMBERS = (0, 1, 3, 4, 5)
"""Kinds of a field's offset, size, sign and shifts."""

ACCESS = st.one_of(
    st.lists(SMALL, min_size=1, max_size=5).map(lambda path: ":".join(map(str, path))),
    st.text(alphabet="0123456789:-x ", max_size=8),
)
RELOCATIONS = st.lists(
    st.builds(CoreRelocation, st.just(0), IDS, ACCESS, st.integers(0, 13)), max_size=8
)


@given(some_btf(), RELOCATIONS, st.lists(some_btf(), max_size=3))
def test_matching_answers_or_raises_one_of_its_two_errors(
    local: Btf, relocations: list[CoreRelocation], targets: list[Btf]
) -> None:
    for relocation in relocations:
        try:
            (result,) = match(local, [relocation], targets)
        except (FormatError, CoreRelocationError):
            continue
        assert result.explain().startswith(result.what)
        assert result.kind == relocation.kind


def could_be_c(btf: Btf) -> bool:
    """Whether every type can be read and a member's name says which member it is."""
    try:
        types = [btf.type(type_id) for type_id in range(1, len(btf))]
    except FormatError:
        return False
    for found in types:
        if isinstance(found, Struct | Union):
            names = [member.name for member in found.members]
            if "" in names or len(set(names)) < len(names):
                return False
    return True


@given(some_btf(), RELOCATIONS)
def test_what_a_btf_says_of_itself_is_what_was_compiled(
    btf: Btf, relocations: list[CoreRelocation]
) -> None:
    for relocation in relocations if could_be_c(btf) else ():
        try:
            (result,) = match(btf, [relocation], [btf])
        except (FormatError, CoreRelocationError):
            continue
        if relocation.kind in FIELD_NUMBERS:
            assert result.problem or not result.is_checked or result.value == result.local_value
