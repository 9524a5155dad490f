"""`purebpf.slotted.Slotted` makes what dataclasses make."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest

from purebpf import slotted
from purebpf.script import tree


class Part(slotted.Slotted):
    start: int
    end: int


class Value(Part):
    kind: str = slotted.field(default="none", init=False)


class Sum(Value):
    """The sum of parts."""

    parts: list[Part]
    name: str | None = None
    places: list[int] = slotted.field(default_factory=list, init=False)

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(slots=True, eq=False)
class TheirPart:
    start: int
    end: int


@dataclass(slots=True, eq=False)
class TheirValue(TheirPart):
    kind: str = dataclasses.field(default="none", init=False)


@dataclass(slots=True, eq=False)
class TheirSum(TheirValue):
    """The sum of parts."""

    parts: list[TheirPart]
    name: str | None = None
    places: list[int] = dataclasses.field(default_factory=list, init=False)


def values(made: Any) -> list[Any]:
    return [getattr(made, name) for name in ("start", "end", "kind", "parts", "name", "places")]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((1, 2, [3]), {}),
        ((1, 2, [3], "x"), {}),
        ((1,), {"end": 2, "parts": []}),
        ((), {"name": None, "parts": [], "start": 5, "end": 6}),
    ],
)
def test_a_constructor_takes_what_that_of_a_data_class_takes(words, named):
    ours, theirs = Sum(*words, **named), TheirSum(*words, **named)
    assert values(ours) == values(theirs)
    assert repr(ours) == repr(theirs).replace("Their", "")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((1, 2), {}),
        ((1, 2, [], "x", "none"), {}),
        ((1, 2, []), {"kind": "int"}),
        ((1, 2, []), {"places": []}),
    ],
)
def test_it_refuses_what_that_of_a_data_class_refuses(words, named):
    for made in (Sum, TheirSum):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            made(*words, **named)


def test_fields_stand_in_the_order_of_data_classes():
    assert Sum._fields == tuple(each.name for each in dataclasses.fields(TheirSum))
    assert Sum.__match_args__ == TheirSum.__match_args__
    assert Sum.__slots__ == TheirSum.__slots__


def test_an_object_has_slots_and_nothing_else():
    made = Sum(1, 2, [])
    with pytest.raises(AttributeError):
        made.other = 1
    assert not hasattr(made, "__dict__")


def test_each_object_has_a_list_of_its_own():
    first, second = Sum(1, 2, []), Sum(1, 2, [])
    first.places.append(1)
    assert second.places == []
    assert first != second


def test_a_copy_is_equal_in_all_fields():
    made = Sum(1, 9, [Part(1, 2)], "x")
    made.kind = "int"
    again = copy.copy(made)
    assert values(again) == values(made)
    assert again.size == 8
    assert copy.deepcopy(made).parts[0].end == 2


def test_every_node_of_the_syntax_tree_has_its_fields_in_slots():
    kinds = [kind for kind in vars(tree).values() if isinstance(kind, type)]
    nodes = [kind for kind in kinds if issubclass(kind, tree.Node)]
    assert len(nodes) > 40
    for kind in nodes:
        assert kind._fields[:2] == ("start", "end")
        assert all(hasattr(kind, name) for name in kind._fields)
