"""`purebpf.tuples.NamedTuple` makes what typing's does."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import types
import typing
from typing import Any

import pytest

from purebpf import tuples


def declare(base: Any) -> Any:
    """A class of each side, from the same lines."""

    class Numbers(base):
        """Some numbers."""

        first: int
        second: int | None = None
        rest: tuple[int, ...] = ()

        @property
        def has_second(self):
            """Whether there are two."""
            return self.second is not None

        @classmethod
        def one(cls):
            """The number 1."""
            return cls(1)

        def __str__(self):
            return f"<{self.first}>"

    return Numbers


OURS, THEIRS = declare(tuples.NamedTuple), declare(typing.NamedTuple)


class Pickled(tuples.NamedTuple):
    """At the top of a module, where pickle looks."""

    number: int


_KEPT_ANNOTATIONS = {"__annotations__", "__annotate_func__", "__annotations_cache__"}
"""Where a class keeps them, which Python 3.14 changed (PEP 649)."""


@pytest.mark.parametrize(
    "look",
    [
        lambda kind: sorted(kind.__dict__.keys() - {"__orig_bases__"} - _KEPT_ANNOTATIONS),
        lambda kind: (kind.__name__, kind.__qualname__, kind.__module__, kind.__doc__),
        lambda kind: (kind.__bases__, kind._fields, kind._field_defaults, kind.__match_args__),
        lambda kind: [*kind.__annotations__],
        typing.get_type_hints,
        lambda kind: [*inspect.signature(kind).parameters],
        lambda kind: (kind(1), kind(1, 2), kind(first=1, rest=(3,)), kind.one(), kind._make("abc")),
        lambda kind: (repr(kind(1)), str(kind(1)), kind(1).has_second, kind(1, 2).has_second),
        lambda kind: (kind(1)._replace(second=2), kind(1)._asdict(), copy.copy(kind(1))),
        lambda kind: (hash(kind(1)), kind(1) == (1, None, ()), kind(1) < kind(2)),
        lambda kind: hasattr(kind(1), "__dict__"),
        lambda kind: kind.has_second.__doc__,
    ],
)
def test_it_is_as_that_of_typing(look):
    assert look(OURS) == look(THEIRS)


@pytest.mark.parametrize("kind", [OURS, THEIRS])
@pytest.mark.parametrize("values", [(), (1, 2, (), 4)])
def test_a_wrong_number_of_values_is_refused(kind, values):
    with pytest.raises(TypeError, match="Numbers"):
        kind(*values)


def test_a_tuple_of_many_fields_is_as_that_of_typing():
    fields = [f"field{number}" for number in range(40)]

    def make(base: Any) -> Any:
        body = {"__annotations__": dict.fromkeys(fields, "int"), "__module__": __name__}
        return types.new_class("Many", (base,), exec_body=lambda namespace: namespace.update(body))

    ours, theirs = (make(kind)(*range(40)) for kind in (tuples.NamedTuple, typing.NamedTuple))
    assert [getattr(ours, field) for field in fields] == [*range(40)]
    assert (repr(ours), ours._asdict()) == (repr(theirs), theirs._asdict())


def test_two_of_as_many_fields_have_their_own_names():
    class Point(tuples.NamedTuple):
        x: int
        y: int = 2

    class Span(tuples.NamedTuple):
        begin: int = 3
        end: int = 4

    assert (Point(x=1), Span(end=5)) == ((1, 2), (3, 5))
    assert [*inspect.signature(Span).parameters] == ["begin", "end"]


@pytest.mark.parametrize("kind", [OURS, THEIRS])
def test_an_unknown_field_cannot_be_replaced(kind):
    with pytest.raises((TypeError, ValueError), match=r"unexpected field names: \['third'\]"):
        kind(1)._replace(third=3)


def test_its_instances_are_pickled_by_the_name_of_the_class():
    assert pickle.loads(pickle.dumps(Pickled(1))) == Pickled(1)


def test_type_hints_are_those_of_the_module():
    from purebpf.spec import ObjectSpec, ProgramSpec

    assert typing.get_type_hints(ProgramSpec)["name"] is str
    assert inspect.signature(ObjectSpec).parameters["name"].annotation == "str"
    assert sys.modules[ObjectSpec.__module__].ObjectSpec is ObjectSpec


class Target(tuples.Options):
    """Of a test."""

    pids: tuple[int, ...] = ()
    comm: str | None = None


class Run(tuples.Options):
    """Of a test."""

    duration_s: float | None = None


class Wanted(Target, Run):
    """Of a test: fields of its own, and of both."""

    measure: str
    rows: int = 7

    @property
    def has_target(self) -> bool:
        """Whether there is one."""
        return bool(self.pids)


def test_options_have_the_fields_of_their_bases() -> None:
    assert Wanted._fields == ("measure", "rows", "pids", "comm", "duration_s")
    assert Wanted._field_defaults == {"rows": 7, "pids": (), "comm": None, "duration_s": None}
    wanted = Wanted(measure="calls", pids=(3,), duration_s=0.5)
    assert (wanted.measure, wanted.rows, wanted.pids, wanted.comm) == ("calls", 7, (3,), None)
    assert wanted.has_target
    assert isinstance(wanted, Target)
    assert isinstance(wanted, Run)
    assert not isinstance(wanted, str)


def test_options_are_named_tuples() -> None:
    wanted = Wanted(measure="calls", pids=(3,))
    assert repr(wanted) == "Wanted(measure='calls', rows=7, pids=(3,), comm=None, duration_s=None)"
    assert wanted._replace(comm="x") == Wanted(measure="calls", pids=(3,), comm="x") != wanted
    assert Wanted(**wanted._asdict()) == wanted
    assert pickle.loads(pickle.dumps(wanted)) == wanted  # noqa: S301 - our own
    assert copy.copy(wanted) == wanted
    assert {wanted: 1}[Wanted(measure="calls", pids=(3,))] == 1
    with pytest.raises(AttributeError):
        wanted.rows = 8  # type: ignore[misc]
    with pytest.raises(TypeError, match="measure"):
        Wanted(pids=(3,))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="pid"):
        Wanted(measure="calls", pid=3)  # type: ignore[call-arg]


def test_the_fields_of_a_base_stay_its_own() -> None:
    assert Target._fields == ("pids", "comm")
    assert Target(pids=(1,)).pids == (1,)


def test_an_own_field_replaces_the_one_of_a_base() -> None:
    class Longer(Run):
        """Of a test."""

        duration_s: float | None = 10.0

    assert Longer._fields == ("duration_s",)
    assert Longer().duration_s == 10.0
    assert Run().duration_s is None


T = typing.TypeVar("T")


def declare_generic(base: Any) -> Any:
    """A generic class of each side."""

    class Pair(base, typing.Generic[T]):
        """Two values."""

        first: T
        second: T | None = None

    return Pair


@pytest.mark.parametrize(
    "look",
    [
        lambda kind: (kind.__bases__, [base.__name__ for base in kind.__mro__]),
        lambda kind: (kind.__parameters__, kind[int].__args__, kind[int](1)),
        lambda kind: (repr(kind(1)), kind(1)._replace(second=2), kind._fields, kind.__doc__),
        lambda kind: hasattr(kind(1), "__dict__"),
    ],
)
def test_a_generic_one_is_as_that_of_typing(look):
    assert look(declare_generic(tuples.NamedTuple)) == look(declare_generic(typing.NamedTuple))
