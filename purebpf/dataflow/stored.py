"""Claims as JSON, with as much of their types as a table of members and a layout need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from purebpf.dataflow.claims import Claim
from purebpf.dataflow.code import Access
from purebpf.dataflow.types import Kind, Member, Type
from purebpf.tuples import NamedTuple

__all__ = ["Answer", "read_answers", "write_answers"]


class Answer(NamedTuple):
    """The function of an address, "" if unknown, and a claim or the reason why there is none."""

    function: str
    claim: Claim | str


def write_answers(answers: Mapping[int, Answer]) -> dict[str, Any]:
    """Return answers by address as an object of JSON."""
    types = _Writer()
    rows = {
        str(address): [answer.function, _claim(answer.claim, types)]
        for address, answer in answers.items()
    }
    return {"answers": rows, "types": types.rows}


def read_answers(stored: Mapping[str, Any]) -> dict[int, Answer]:
    """Return the answers by address.

    Raises:
        KeyError, IndexError, TypeError, ValueError: they are damaged.
    """
    types = _read_types(stored["types"])
    found = {}
    for address, (function, claim) in stored["answers"].items():
        if not isinstance(claim, str):
            of, name, member, offset, size, access, is_inferred = claim
            of = None if of is None else types[of]
            claim = Claim(of, name, member, offset, size, Access(*access), is_inferred)
        found[int(address)] = Answer(function, claim)
    return found


def _claim(claim: Claim | str, types: _Writer) -> Any:  # noqa: ANN401 - JSON
    if isinstance(claim, str):
        return claim
    of = types.number(claim.type, is_whole=True)
    return [of, *claim[1:5], list(claim.access), claim.is_inferred]


class _Writer:
    """Numbers types. What a pointer leads to is kept by name only: a layout needs no more."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self._numbers: dict[tuple[Type, bool], int] = {}

    def number(self, of: Type | None, *, is_whole: bool) -> int | None:
        if of is None:
            return None
        number = self._numbers.get((of, is_whole))
        if number is None:
            number = self._numbers[of, is_whole] = len(self.rows)
            row: list[Any] = [int(of.kind), of.name, of.size]
            self.rows.append(row)
            inner = is_whole and of.kind is not Kind.POINTER
            target = self._target(of, is_whole=inner)
            members = self._members(of.members) if is_whole else []
            row += [of.count, of.is_complete, target, members]
        return number

    def _target(self, of: Type, *, is_whole: bool) -> int | None:
        if of.kind in (Kind.SCALAR, Kind.STRUCT, Kind.UNION, Kind.FUNCTION):
            return None
        return self.number(of.target, is_whole=is_whole) if is_whole or not of.name else None

    def _members(self, members: Iterable[Member]) -> list[list[Any]]:
        return [
            [each.name, each.offset, self.number(each.type, is_whole=True), each.bits]
            for each in members
        ]


def _read_types(rows: list[Any]) -> list[Type]:
    types = [Type(Kind(row[0]), str(row[1]), int(row[2])) for row in rows]
    for of, (_, _, _, count, is_complete, target, members) in zip(types, rows, strict=True):
        of.count, of.is_complete = int(count), bool(is_complete)
        of.target = None if target is None else types[target]
        of.members = tuple(
            Member(name, offset, None if of is None else types[of], bits)
            for name, offset, of, bits in members
        )
    return types
