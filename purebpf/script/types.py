"""Types of values in a script, and the room that a value takes in memory.

A number takes 8 bytes wherever it is kept, whatever its type; strings, buffers and structs take
their size rounded up to 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from purebpf.slotted import Slotted
from purebpf.tuples import NamedTuple

__all__ = [
    "AGGREGATES",
    "BOOL",
    "CHAR",
    "I64",
    "NONE",
    "SCALARS",
    "U32",
    "U64",
    "VOID",
    "Layout",
    "Member",
    "Type",
    "c_size",
    "integer",
    "late",
    "literal_type",
    "offsets",
    "pointer",
    "room",
    "spell",
    "string",
    "tuple_of",
    "unify",
    "word",
]

SCALARS = frozenset(
    {
        "int",
        "bool",
        "ptr",
        "ksym",
        "kstack",
        "probe",
        "username",
        "cgroup",
        "strerror",
        "signal",
        "syscall",
    }
)
"""Kinds whose value is one word."""
AGGREGATES = frozenset({"count", "sum", "avg", "min", "max", "stats", "hist", "lhist",
                        "tseries"})  # fmt: skip
"""Kinds of maps that each CPU updates for itself."""
_LATE_SIZES = {"ksym": 8, "usym": 16, "kstack": 8, "ustack": 16, "inet": 24, "time": 16,
               "probe": 8, "username": 8, "mac": 8, "cgroup": 8, "strerror": 8,
               "signal": 8, "syscall": 8}  # fmt: skip


class Layout(Protocol):
    """The members of a struct or union."""

    def member(self, name: str) -> Member | None:
        """Return a member by name, also from members without a name."""

    def members(self) -> Sequence[tuple[str, Member]]:
        """Return the names and members."""


class Type(Slotted, frozen=True):
    """A type.

    `kind` is "int", "bool", "string", "buffer", "ptr", "struct", "array", "tuple", "record",
    "none", "void", "args", a kind of `AGGREGATES`, or the kind of a value that user space turns
    into text ("ksym", "inet", ...). `size` is the size in C, in bytes; `narrow` is the size that
    `sizeof()` reports for a number that is kept in 8 bytes, 0 if it is `size`.
    """

    kind: str
    size: int = 0
    signed: bool = False
    name: str = ""
    count: int = 0
    items: tuple[Type, ...] = ()
    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    text: str = ""
    space: str = ""
    resolve: Callable[[], Type] | None = None
    layout: Layout | None = None
    narrow: int = 0

    def _identity(self) -> tuple[object, ...]:
        """The values that make a type another one: neither its memory nor its width matter."""
        return (self.kind, self.size, self.signed, self.name, self.count, self.items,
                self.names, self.numbers, self.text)  # fmt: skip

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Type):
            return NotImplemented
        return self is other or self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        return f"Type{self._identity()}"

    @property
    def is_scalar(self) -> bool:
        """Return True if a register holds the value."""
        return self.kind in SCALARS

    @property
    def target(self) -> Type:
        """The type that a pointer refers to, or the type of an array's elements."""
        if self.items:
            return self.items[0]
        return self.resolve() if self.resolve is not None else VOID

    @property
    def has_no_value(self) -> bool:
        """Return True for types that no variable, map or event can hold."""
        return self.kind in ("none", "void") or (self.kind == "args" and self.layout is None)

    def in_space(self, space: str) -> Type:
        """Return the type for memory of the "kernel" or of the "user"."""
        return Type(
            self.kind, self.size, self.signed, self.name, self.count, self.items,
            self.names, self.numbers, self.text, space, self.resolve, self.layout, self.narrow,
        )  # fmt: skip


class Member(NamedTuple):
    """A member at `offset` bytes; a bit field has `bits` bits from bit `bit` on."""

    offset: int
    type: Type
    bit: int = 0
    bits: int = 0


def integer(size: int, signed: bool, name: str = "") -> Type:
    """Return the type of integers of `size` bytes."""
    return Type("int", size, signed, name)


def word(*, signed: bool, narrow: int) -> Type:
    """Return the type of integers that take 8 bytes, and whose own type has `narrow` bytes."""
    return Type("int", 8, signed, narrow=narrow)


def literal_type(value: int) -> Type:
    """Return the type of a number in a script: the smallest signed one that holds it."""
    if value >= 1 << 63:
        return U64
    narrow = next(size for size in (1, 2, 4, 8) if value < 1 << (8 * size - 1))
    return word(signed=True, narrow=narrow)


I64, U64, U32 = integer(8, True), integer(8, False), integer(4, False)
BOOL, NONE, VOID = Type("bool", 1), Type("none"), Type("void")
CHAR = integer(1, True, "char")


def string(size: int) -> Type:
    """Return the type of strings of at most `size` bytes with their NUL."""
    return Type("string", size)


def pointer(name: str, resolve: Callable[[], Type], space: str = "") -> Type:
    """Return the type of pointers to a type that is looked up when somebody asks for it."""
    return Type("ptr", 8, name=name, resolve=resolve, space=space)


def late(kind: str, *numbers: int, text: str = "") -> Type:
    """Return the type of values that become text in user space."""
    return Type(kind, _LATE_SIZES[kind], numbers=numbers, text=text)


def tuple_of(types: Iterable[Type], names: Iterable[str] = ()) -> Type:
    """Return the type of tuples, or of records if there are names."""
    items, labels = tuple(types), tuple(names)
    size = offsets(items)[1]
    return Type("record" if labels else "tuple", size, items=items, names=labels)


def room(type_: Type) -> int:
    """Return the bytes that a value takes where it is kept."""
    if type_.is_scalar:
        return 8
    if type_.kind == "buffer":
        return 8 + _rounded(type_.size)
    if type_.kind in ("tuple", "record"):
        return offsets(type_.items)[1]
    return max(8, _rounded(type_.size))


def offsets(types: Iterable[Type]) -> tuple[list[int], int]:
    """Return the places of a tuple's items, and the room of the whole."""
    places, place = [], 0
    for item in types:
        places.append(place)
        place += room(item)
    return places, max(8, place)


def c_size(type_: Type) -> int:
    """Return the size of a type in the layout of C, in bytes: the result of `sizeof()`."""
    if type_.kind not in ("tuple", "record"):
        return type_.narrow or type_.size
    end, widest = 0, 1
    for item in type_.items:
        alignment = _alignment(item)
        end = -(-end // alignment) * alignment + c_size(item)
        widest = max(widest, alignment)
    return -(-end // widest) * widest


def _alignment(type_: Type) -> int:
    match type_.kind:
        case "string" | "buffer":
            return 1
        case "tuple" | "record":
            return max(map(_alignment, type_.items), default=1)
        case "array":
            return _alignment(type_.target)
        case "struct":
            members = type_.layout.members() if type_.layout is not None else ()
            return max((_alignment(member.type) for _, member in members), default=1)
    return min(8, c_size(type_) or 8)


def _rounded(size: int) -> int:
    return -(-size // 8) * 8


def spell(type_: Type, *, is_narrow: bool = False) -> str:
    """Return the name of a type as messages show it; by its narrow size if `is_narrow`."""
    match type_.kind:
        case "int":
            size = type_.narrow if is_narrow and type_.narrow else type_.size
            return type_.name or f"{'' if type_.signed else 'u'}int{8 * size}"
        case "string" | "buffer":
            return f"{type_.kind}[{type_.size}]"
        case "ptr":
            return f"{type_.name or spell(type_.target)} *"
        case "struct":
            return type_.name
        case "array":
            return f"{spell(type_.target)}[{type_.count}]"
        case "tuple":
            return f"({','.join(spell(item, is_narrow=is_narrow) for item in type_.items)})"
        case "record":
            pairs = zip(type_.names, type_.items, strict=True)
            return f"({','.join(f'{name}={spell(item)}' for name, item in pairs)})"
        case "none" | "bool" | "void" | "args":
            return type_.kind
        case kind:
            return f"{kind}_t"


def unify(old: Type, new: Type) -> Type | None:
    """Return the type that holds values of both, or None."""
    kinds = {old.kind, new.kind}
    if old == new and not kinds <= {"int", "tuple", "record"}:
        return old
    if kinds == {"int"}:
        if old.name.startswith("enum") and old.name == new.name:
            return old
        narrow = max(c_size(old), c_size(new))
        return word(signed=old.signed or new.signed, narrow=narrow)
    if kinds == {"int", "bool"}:
        return I64
    if kinds == {"int", "ptr"}:
        return old if old.kind == "ptr" else new
    if kinds <= {"string"} or kinds <= {"buffer"}:
        return old if old.size >= new.size else new
    if kinds == {"tuple"} and len(old.items) == len(new.items):
        return _unify_items(old, new.items)
    if kinds == {"record"} and set(old.names) == set(new.names):
        by_name = dict(zip(new.names, new.items, strict=True))
        return _unify_items(old, [by_name[name] for name in old.names])
    if kinds & {"tuple", "record"}:
        return None
    same = old.kind == new.kind and (old.name == new.name and old.size == new.size)
    return old if same or kinds == {"ptr"} else None


def _unify_items(old: Type, items: Sequence[Type]) -> Type | None:
    unified = [unify(a, b) for a, b in zip(old.items, items, strict=True)]
    if any(item is None for item in unified):
        return None
    return tuple_of([item for item in unified if item is not None], old.names)
