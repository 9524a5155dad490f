"""Types, prototypes and per-CPU variables from BTF."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import islice, product
from typing import TYPE_CHECKING, Any

from purebpf.btf.types.kinds import Kind as BtfKind
from purebpf.btf.types.parse import ids_of, member_places, names_of
from purebpf.dataflow.containers import NO_HINTS, Hints, Use, contains, fits
from purebpf.dataflow.layout import find
from purebpf.dataflow.types import Kind, Member, Type, bare, byte_size
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf

__all__ = ["BtfTypes", "Prototype", "Variable"]

_RECORDS = {BtfKind.STRUCT: Kind.STRUCT, BtfKind.UNION: Kind.UNION}
_ALIASES = (
    *(BtfKind.TYPEDEF, BtfKind.CONST, BtfKind.VOLATILE, BtfKind.RESTRICT, BtfKind.TYPE_TAG),
)
_SCALARS = (BtfKind.INT, BtfKind.ENUM, BtfKind.ENUM64, BtfKind.FLOAT)
_PER_CPU = ".data..percpu"
_BITS = 8
_WORD = 8
_DEEPEST = 8
_MOST = 256
_SEARCHES = 64
"""Functions that are searched one by one, before all are listed."""


class Prototype(NamedTuple):
    """The types of a function's parameters, and of its result; None is void."""

    parameters: tuple[Type | None, ...]
    result: Type | None


class Variable(NamedTuple):
    """A per-CPU variable: its offset in the section, and its size, in bytes."""

    offset: int
    size: int
    name: str
    type: Type | None


class BtfTypes:
    """Types by their numbers, each made once.

    Args:
        btf: of the kernel.
    """

    def __init__(self, btf: Btf) -> None:
        self._btf = btf
        self._types: dict[int, Type] = {}
        self._numbers: dict[Type, int] = {}
        self._prototypes: dict[str, Prototype | None] = {}
        self._outer: dict[tuple[int, int, int], tuple[tuple[Type, int], ...] | None] = {}
        self._held: dict[tuple[int, int], frozenset[Type]] = {}

    def type(self, number: int) -> Type | None:
        """Return a type; None for void.

        Raises:
            FormatError: the BTF is malformed.
        """
        if not number:
            return None
        known = self._types.get(number)
        if known is None:
            known = self._types[number] = self._make(number)
            self._numbers.setdefault(known, number)
        return known

    def holders(self, of: Type, offset: int) -> frozenset[Type]:
        """Return the structs with a name that have a struct or union at an offset, in bytes."""
        number = self._numbers.get(of, 0)
        key = number, offset
        if key not in self._held:
            found = set(self._around(number, offset, _DEEPEST))
            named = (self.type(one) for one in found if self._btf.name(one))
            self._held[key] = frozenset(one for one in named if one is not None)
        return self._held[key]

    def struct(self, name: str) -> Type | None:
        """Return the struct of a name; None: there is none, or there are several."""
        numbers = self._btf.find(name, BtfKind.STRUCT)
        return self.type(numbers[0]) if len(numbers) == 1 else None

    def around(
        self, of: Type, offset: int, size: int, hints: Hints = NO_HINTS
    ) -> tuple[Type, int] | None:
        """Return the struct around a member, and the member's offset in it, in bytes.

        None: no struct has a member at the place, or several do that differ.

        Args:
            of: the type of the member.
            offset: the touched place, from the start of the member.
            size: of the place, in bytes.
            hints: choose among several structs.
        """
        holders = self._outside(of, offset, size)
        if holders is None:
            return None
        if hints.value is not None:
            holders = tuple(one for one in holders if _leads_to(one, offset, hints.value))
        named = [one for one in holders if hints.family and one[0].name.startswith(hints.family)]
        return _smallest(holders) or _smallest(named)

    def _outside(self, of: Type, offset: int, size: int) -> tuple[tuple[Type, int], ...] | None:
        """Return the structs around a member that have a place, and the member's offset in them.

        None: there are too many.
        """
        key = self._numbers.get(of, 0), offset, size
        if key not in self._outer:
            holders = list(islice(self._named_around(key[0], 0, _DEEPEST), _MOST + 1))
            found = {
                (struct, start)
                for number, start in holders
                if fits(struct := self.type(number), start + offset, size) and struct is not None
            }
            self._outer[key] = tuple(found) if len(holders) <= _MOST else None
        return self._outer[key]

    def _named_around(self, number: int, start: int, depth: int) -> Iterator[tuple[int, int]]:
        """Yield the structs with a name that have a member of a type, and its offset."""
        for struct, offset in self._members.get(number, ()) if depth else ():
            if self._btf.name(struct):
                yield struct, start + offset
            yield from self._named_around(struct, start + offset, depth - 1)

    def _around(self, number: int, offset: int, depth: int) -> Iterator[int]:
        for struct, start in self._members.get(number, ()) if depth else ():
            if start == offset:
                yield struct
            if start <= offset:
                yield from self._around(struct, offset - start, depth - 1)

    @cached_property
    def _members(self) -> dict[int, list[tuple[int, int]]]:
        """The structs and offsets of the members that are structs or unions, by their type."""
        btf, found = self._btf, defaultdict[int, list[tuple[int, int]]](list)
        blobs = [btf] if btf.base is None else [btf.base, btf]
        records: dict[int, int] = {}  # 60,000 members have 9,000 types
        for blob, kind in product(blobs, (BtfKind.STRUCT, BtfKind.UNION)):
            for number in ids_of(blob, kind):
                for member, bit_offset in member_places(btf, number):
                    of = records.get(member, -1)
                    if of < 0:
                        of = btf.resolve(member)
                        of = records[member] = of if btf.kind(of) in _RECORDS else 0
                    if of:
                        found[of].append((number, bit_offset // _BITS))
        return found

    def prototype(self, function: str) -> Prototype | None:
        """Return the prototype of a function; None: the BTF has none, or several.

        A clone whose parameters the compiler changed has a name of its own, such as `find.isra.0`.
        """
        if function not in self._prototypes:
            self._prototypes[function] = self._read_prototype(function)
        return self._prototypes[function]

    @cached_property
    def per_cpu(self) -> tuple[Variable, ...]:
        """The per-CPU variables, by offset."""
        found = []
        for number in self._btf.find(_PER_CPU, BtfKind.DATASEC):
            section: Any = self._btf.type(number)
            for entry in section.entries:
                variable: Any = self._btf.type(entry.type_id)
                of = _named(variable.name, self.type(variable.type_id))
                found.append(Variable(entry.offset, entry.size, variable.name, of))
        return tuple(sorted(found, key=lambda variable: variable.offset))

    def per_cpu_at(self, offset: int) -> Variable | None:
        """Return the per-CPU variable that contains an offset in the section."""
        variables = self.per_cpu
        number = bisect_right(variables, offset, key=lambda variable: variable.offset) - 1
        if number < 0:
            return None
        found = variables[number]
        return found if offset < found.offset + found.size else None

    def _read_prototype(self, function: str) -> Prototype | None:
        if len(self._prototypes) < _SEARCHES:
            found = list(self._btf.find(function, BtfKind.FUNC))
        else:
            found = self._functions.get(function, [])
        numbers = {self._prototype_of(number) for number in found}
        if len(numbers) != 1:
            return None
        described: Any = self._btf.type(numbers.pop())
        parameters = tuple(self.type(each.type_id) for each in described.params)
        return Prototype(parameters, self.type(described.return_type))

    @cached_property
    def _functions(self) -> dict[str, list[int]]:
        """All functions by name: a search for one reads the names up to it."""
        btf, found = self._btf, defaultdict[str, list[int]](list)
        blobs = [btf] if btf.base is None else [btf.base, btf]
        for blob in blobs:
            numbers = [*ids_of(blob, BtfKind.FUNC)]
            for name, number in zip(names_of(blob, numbers), numbers, strict=True):
                found[name].append(number)
        return dict(found)

    def _prototype_of(self, number: int) -> int:
        function: Any = self._btf.type(number)
        return int(function.type_id)

    def _make(self, number: int) -> Type:
        described: Any = self._btf.type(number)
        kind = described.kind
        if kind in _RECORDS:
            return Type(_RECORDS[kind], described.name, described.size, self._filler(described))
        if kind == BtfKind.PTR:
            return Type(Kind.POINTER, "", 0, self._leading_to(described.type_id))
        if kind == BtfKind.ARRAY:
            made = Type(Kind.ARRAY, "", 0, self._leading_to(described.element))
            made.count = described.count
            return made
        if kind in _ALIASES:
            name = described.name if kind == BtfKind.TYPEDEF else ""
            return Type(Kind.ALIAS, name, 0, self._leading_to(described.type_id))
        if kind == BtfKind.FUNC_PROTO:
            return Type(Kind.FUNCTION, "", 0, self._leading_to(described.return_type))
        if kind == BtfKind.FWD:
            return self._declared(described)
        return Type(Kind.SCALAR, described.name, described.size if kind in _SCALARS else 0)

    def _declared(self, described: Any) -> Type:  # noqa: ANN401 - a forward declaration
        """Return the one complete type of a declaration's name, or the declaration."""
        kind = BtfKind.UNION if described.is_union else BtfKind.STRUCT
        numbers = self._btf.find(described.name, kind)
        if len(numbers) == 1:
            complete = self.type(numbers[0])
            assert complete is not None
            return complete
        made = Type(_RECORDS[kind], described.name)
        made.is_complete = False
        return made

    def _leading_to(self, number: int) -> Any:  # noqa: ANN401 - a function
        def fill(of: Type) -> None:
            of.target = self.type(number)

        return fill

    def _filler(self, described: Any) -> Any:  # noqa: ANN401 - a function
        def fill(of: Type) -> None:
            of.members = tuple(
                Member(each.name, each.bit_offset // _BITS, self.type(each.type_id), each.bit_size)
                for each in sorted(described.members, key=lambda each: int(each.bit_offset))
            )

        return fill


def _smallest(found: Collection[tuple[Type, int]]) -> tuple[Type, int] | None:
    """Return the struct that all others have as a member, around the same place; None: none."""
    smallest = min(found, key=lambda one: byte_size(one[0]), default=None)
    if smallest is None:
        return None
    of, start = smallest
    is_in_all = all(contains(outer, far - start, of) for outer, far in found)
    return smallest if is_in_all else None


def _leads_to(around: tuple[Type, int], offset: int, value: Use) -> bool:
    """Return True if a struct has a pointer at a place that can have a value."""
    of, start = around
    place = find(of, start + offset, _WORD).type
    is_pointer = place is not None and place.kind is Kind.POINTER
    return is_pointer and contains(place.target, value.offset, value.of)  # type: ignore[union-attr]


def _named(variable: str, of: Type | None) -> Type | None:
    """Return the type of a variable; a plain one bears the name of the variable."""
    element = bare(of)
    while element is not None and element.kind is Kind.ARRAY:
        element = bare(element.target)
    if element is not None and element.kind in (Kind.STRUCT, Kind.UNION) and element.name:
        return of
    named = Type(Kind.ALIAS, f"{variable} (per CPU)")
    named.target = of
    return named
