"""Types as the flow of pointers needs them, whatever format describes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purebpf.enums import IntEnum
from purebpf.tuples import NamedTuple

__all__ = ["Kind", "Member", "Type", "bare", "byte_size", "spell"]

_MOST_ALIASES = 64
_POINTER_SIZE = 8


class Kind(IntEnum):
    """The shape of a type."""

    SCALAR = 0
    POINTER = 1
    STRUCT = 2
    UNION = 3
    ARRAY = 4
    ALIAS = 5
    """A typedef, or a qualifier such as const."""
    FUNCTION = 6
    """Leads to the type that it returns."""


_ALIAS = Kind.ALIAS


class Member(NamedTuple):
    """A member of a struct or union; `offset` in bytes, and the name "" for an unnamed member.

    Attributes:
        bits: the width of a bit field; 0 for other members.
        bit: its first bit, counted from the lowest of the unit at `offset`; None: not known.
    """

    name: str
    offset: int
    type: Type | None
    bits: int = 0
    bit: int | None = None


class Type:
    """A type; `fill` completes it when somebody first looks into it.

    Attributes:
        kind, name: its shape, and its name; "" without one.
        size: in bytes; 0: unknown, or not complete.
        qualifier: "const" and the like of an alias without a name.
        encoding: DW_ATE_* of a basic type; 0: unknown, or another type.
        target: the type that a pointer, an array, an alias or a function leads to; None is void.
        count: the number of elements of an array; 0: unknown.
        members: the members of a struct or union, by offset.
        is_complete: False for a struct that is only declared.
        places: answers of `purebpf.dataflow.layout`, which sets and reads them.
    """

    __slots__ = ("_fill", "_members", "_target", "count", "encoding", "is_complete", "kind", "name",
                 "places", "qualifier", "size")  # fmt: skip

    def __init__(
        self,
        kind: Kind,
        name: str = "",
        size: int = 0,
        fill: Callable[[Type], object] | None = None,
    ) -> None:
        self.kind, self.name, self.size = kind, name, size
        self.count = self.encoding = 0
        self.is_complete = True
        self.qualifier = ""
        self._target: Type | None = None
        self._members: tuple[Member, ...] = ()
        self._fill = fill
        self.places: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<{self.kind.name.lower()} {self.name or '(unnamed)'}, {self.size} bytes>"

    def complete(self) -> None:
        """Read the rest of the type, once."""
        fill, self._fill = self._fill, None
        if fill is not None:
            fill(self)

    @property
    def target(self) -> Type | None:
        """The type that this one leads to."""
        if self._fill is not None:
            self.complete()
        return self._target

    @target.setter
    def target(self, target: Type | None) -> None:
        self._target = target

    @property
    def members(self) -> tuple[Member, ...]:
        """The members of a struct or union."""
        if self._fill is not None:
            self.complete()
        return self._members

    @members.setter
    def members(self, members: tuple[Member, ...]) -> None:
        self._members = members
        self.places.clear()


def bare(of: Type | None) -> Type | None:
    """Return the type behind typedefs and qualifiers; None for void."""
    for _ in range(_MOST_ALIASES):
        if of is None or of.kind is not _ALIAS:
            return of
        of = of.target
    return None


def byte_size(of: Type | None) -> int:
    """Return the size of a type in bytes; 0: unknown."""
    stripped = bare(of)
    if stripped is None:
        return 0
    if stripped.kind is Kind.POINTER:
        return stripped.size or _POINTER_SIZE
    if stripped.kind is Kind.ARRAY:
        element = byte_size(stripped.target)  # completes the type, and so the count
        return element * stripped.count
    return stripped.size


def spell(of: Type | None) -> str:
    """Return the name of a type as a C programmer writes it."""
    if of is None:
        return "void"
    if of.name:
        return of.name
    if of.kind is Kind.POINTER:
        return f"{spell(of.target)} *"
    if of.kind is Kind.ARRAY:
        return f"{spell(of.target)}[]"
    if of.kind is Kind.ALIAS:
        return spell(of.target)
    return f"({'unnamed ' * (of.kind is not Kind.SCALAR)}{of.kind.name.lower()})"
