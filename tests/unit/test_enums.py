"""`purebpf.enums` makes the members that `enum` does."""

from __future__ import annotations

import copy
import enum
import json
import pickle
from typing import Any

import pytest

from purebpf import enums


def declare(base: Any) -> Any:
    """A class of each side, from the same lines."""

    class Command(base):
        """What to do."""

        CREATE = 0
        LOOK_UP = 1
        """Says where it is."""
        FIND = 1
        DELETE = 7
        __MAX_COMMAND = 8

        @property
        def is_harmless(self):
            """Whether it changes nothing."""
            return self == 1

    return Command


OURS, THEIRS = declare(enums.IntEnum), declare(enum.IntEnum)


class Pickled(enums.IntEnum):
    """At the top of a module, where pickle looks."""

    ONE = 1


@pytest.mark.parametrize(
    "look",
    [
        lambda kind: (kind.__name__, kind.__qualname__, kind.__module__, kind.__doc__),
        lambda kind: [member.name for member in kind],
        lambda kind: [*kind.__members__],
        lambda kind: [*map(int, reversed(kind))],
        lambda kind: (len(kind), bool(kind), repr(kind), kind._Command__MAX_COMMAND),
        lambda kind: (kind(7).name, kind["FIND"].name, kind.FIND is kind.LOOK_UP, kind.FIND.value),
        lambda kind: (type(kind.FIND) is kind, type(kind.FIND.value), isinstance(kind.FIND, int)),
        lambda kind: (repr(kind.DELETE), str(kind.DELETE), f"{kind.DELETE} {kind.DELETE:>3}"),
        lambda kind: (kind.DELETE | 8, type(kind.DELETE | 8), kind.DELETE == 7, hash(kind.DELETE)),
        lambda kind: (kind.FIND.is_harmless, kind.DELETE.is_harmless),
        lambda kind: (kind.FIND in kind, copy.copy(kind.FIND) is kind.FIND),
        lambda kind: copy.deepcopy([kind.FIND])[0] is kind.FIND,
        lambda kind: json.dumps({"kind": kind.DELETE}),
        lambda kind: kind._value2member_map_[7] is kind.DELETE,
        lambda kind: {kind.DELETE: 1}[7],
    ],
)
def test_numbers_are_as_those_of_enum(look):
    assert look(OURS) == look(THEIRS)


@pytest.mark.parametrize("kind", [OURS, THEIRS])
def test_faults_are_the_same(kind):
    with pytest.raises(ValueError, match=r"^3 is not a valid .*Command$"):
        kind(3)
    with pytest.raises(KeyError):
        kind["NONE"]
    with pytest.raises(AttributeError):
        kind.NONE  # noqa: B018
    with pytest.raises(AttributeError, match="cannot reassign member 'FIND'"):
        kind.FIND = 2
    assert kind.FIND == 1


def test_a_member_that_was_pickled_is_the_member():
    assert pickle.loads(pickle.dumps(Pickled.ONE)) is Pickled.ONE  # noqa: S301


def test_a_match_statement_takes_them():
    match OURS(7):
        case OURS.FIND:
            found = "find"
        case OURS.DELETE:
            found = "delete"
    assert found == "delete"
