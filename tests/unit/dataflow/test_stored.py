"""Claims as JSON and back."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("iced_x86", reason="the extra purebpf[types] is not installed")

from purebpf.dataflow.claims import Claim
from purebpf.dataflow.code import Access
from purebpf.dataflow.stored import Answer, read_answers, write_answers
from purebpf.dataflow.types import Kind, Member, Type, spell
from purebpf.tools.types.layouts import element_of, layout_of, signature

LONG = Type(Kind.SCALAR, "long", 8)


def node() -> Type:
    """A struct that points to itself, with an array of structs and a name of a type."""
    pair = Type(Kind.STRUCT, "pair", 8)
    pair.members = (Member("low", 0, LONG, 4), Member("high", 4, LONG))
    pairs = Type(Kind.ARRAY)
    pairs.target, pairs.count = pair, 3
    number = Type(Kind.ALIAS, "number")
    number.target = LONG
    made = Type(Kind.STRUCT, "node", 48)
    pointer = Type(Kind.POINTER)
    pointer.target = made
    made.members = (Member("next", 0, pointer), Member("n", 8, number), Member("pairs", 16, pairs))
    return made


def array_of(of: Type) -> Type:
    made = Type(Kind.ARRAY)
    made.target, made.count = of, 4
    return made


def test_answers_come_back_with_their_layouts() -> None:
    nodes = array_of(node())
    claim = Claim(nodes, "node", "[].next", 0, 8, Access(reads=True, writes=False, size=8), True)
    answers = {
        0x1000: Answer("walk", claim),
        0x1008: Answer("walk", claim._replace(type=None)),
        1 << 63: Answer("", "no memory operand"),
    }
    read = read_answers(json.loads(json.dumps(write_answers(answers))))
    assert read.keys() == answers.keys()
    assert read[1 << 63] == answers[1 << 63]
    assert read[0x1008].claim == answers[0x1008].claim
    found = read[0x1000].claim
    assert isinstance(found, Claim)
    assert found._replace(type=None) == claim._replace(type=None)
    assert found.type is not element_of(found.type)
    assert spell(found.type) == spell(nodes)
    assert signature(element_of(found.type)) == signature(element_of(nodes))
    assert layout_of(element_of(found.type)) == layout_of(element_of(nodes))


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        {"answers": {"x": ["", "reason"]}, "types": []},
        {"answers": {"1": ["f", [0, "n", "m", 0, 8, [True, False, 8], False]]}, "types": []},
        {"answers": {}, "types": [[9, "", 0, 0, True, None, []]]},
        {"answers": {}, "types": [[0, "", 0]]},
        [],
    ],
)
def test_damaged_answers_are_refused(damaged: object) -> None:
    with pytest.raises((KeyError, IndexError, TypeError, ValueError)):
        read_answers(damaged)  # type: ignore[arg-type]
