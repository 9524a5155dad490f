"""Records as instances of a class of the user's: a NamedTuple or dataclass that mirrors a C struct.

    class Event(NamedTuple):
        pid: Annotated[int, "u32"]
        delta_ns: Annotated[int, "u64"]
        comm: Annotated[str, 16]

The annotations declare the layout that the class expects; binding compares it with BTF, once. A
plain `int`, `str`, `bytes`, `float`, `bool`, tuple or class of the same sort declares its kind
only; "u8" to "s64" declares a size and a sign, a number with `str` or `bytes` a length. Where every
field declares its size, the offsets that C would give them are compared as well: padding is never
guessed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from purebpf.btf.codec.arrays import Array, Octets, Text
from purebpf.btf.codec.layout import FieldPlace
from purebpf.btf.codec.padding import KeyStruct, like
from purebpf.btf.codec.records import instances
from purebpf.btf.codec.structs import StructCodec
from purebpf.btf.codec.values import (
    Boolean,
    Buffer,
    Codec,
    Enumeration,
    FloatingPoint,
    Integer,
    WideInteger,
)
from purebpf.errors import SchemaError
from purebpf.tuples import NamedTuple

__all__ = ["BoundCodec", "bind", "is_record_class"]

_NUMBERS = {f"{sign}{8 * size}": (size, sign == "s") for sign in "us" for size in (1, 2, 4, 8)}
_KINDS: dict[type, tuple[type[Codec], ...]] = {
    int: (Integer, WideInteger, Enumeration, Boolean),
    bool: (Boolean,),
    float: (FloatingPoint,),
    str: (Text,),
    bytes: (Octets,),
    tuple: (Array,),
}


class _Belief(NamedTuple):
    """A class's declaration of a field; `size` is 0 where there is none."""

    name: str
    text: str
    kind: Any
    size: int
    signed: bool | None
    offset: int | None


def is_record_class(candidate: object) -> bool:
    """Return True if `bind` can accept it: a NamedTuple or a dataclass."""
    return isinstance(candidate, type) and (
        dataclasses.is_dataclass(candidate)
        or (
            issubclass(candidate, tuple)
            and hasattr(candidate, "_fields")
            and candidate.__module__ != "btf"
        )
    )


class BoundCodec:
    """A struct's codec with instances of a class as values; they encode as before.

    Attributes:
        size: bytes of one value.
        inner: the struct's own codec.
    """

    def __init__(self, codec: StructCodec, cls: type) -> None:
        make = _maker(codec, cls)
        self.size = codec.size
        self.encode = codec.encode
        self.encode_many = codec.encode_many
        self.inner = codec
        self._make = make
        # Only a class that adds nothing to a tuple can be made of one without a call of its own.
        plain = _is_plain(codec, cls) and not isinstance(codec, KeyStruct)
        self._plain = cls if plain else None
        inner = codec.from_start
        self.from_start = None if inner is None else lambda buffer: make(inner(buffer))

    def decode(self, buffer: bytes | bytearray | memoryview, offset: int = 0, /) -> Any:
        """The value at `offset`; FormatError when the buffer is too short."""
        return self._make(self.inner.decode(buffer, offset))

    def iter_decode(self, buffer: bytes | bytearray | memoryview, /) -> Iterator[Any]:
        """The values that fill `buffer`."""
        many = self.spaced(0, 0)
        if many is None or len(buffer) % self.size:
            return map(self._make, self.inner.iter_decode(buffer))
        return many(buffer)

    def spaced(self, before: int, after: int) -> Callable[[Buffer], Iterator[Any]] | None:
        """As `Codec.spaced`; None for a dataclass too, since its code runs for each value."""
        cls = self._plain
        if cls is None or self.inner.spaced(before, after) is None:
            return None
        rows = self.inner.rows(before, after)
        return lambda buffer: instances(cls, rows(buffer))


def bind(codec: Codec | BoundCodec, cls: type) -> BoundCodec:
    """Give the records of a struct a class.

    Raises:
        SchemaError: the class is none that mirrors a struct, or differs from this one; shows both
            side by side.
    """
    if isinstance(codec, BoundCodec):  # another class than before
        codec = codec.inner
    if not isinstance(codec, StructCodec):
        raise SchemaError(f"class {cls.__name__}: {codec.c_type} is not a struct")
    return BoundCodec(codec, cls)


def _maker(codec: StructCodec, cls: type) -> Callable[[Any], Any]:
    if not is_record_class(cls):
        raise SchemaError(f"class {cls.__name__} is neither a NamedTuple nor a dataclass")
    beliefs = _beliefs(cls)
    places = codec.places()
    names = codec.record._fields
    same_names = [belief.name for belief in beliefs] == list(names)
    if not same_names or not all(map(_agrees, beliefs, places)):
        raise SchemaError(_side_by_side(cls, beliefs, codec))
    inner = [_inner(belief, place) for belief, place in zip(beliefs, places, strict=True)]
    make = _of_fields(cls, inner) if any(inner) else lambda record: cls(*record)
    if isinstance(codec, KeyStruct):
        return lambda record: like(make(record), record)
    return make


def _of_fields(cls: type, inner: list[Callable[[Any], Any] | None]) -> Callable[[Any], Any]:
    """Return the function that makes a record; some of its fields get separate classes."""
    return lambda record: cls(
        *(value if make is None else make(value) for make, value in zip(inner, record, strict=True))
    )


def _is_plain(codec: StructCodec, cls: type) -> bool:
    """Return True for a NamedTuple, not derived from one, without classes of the user's in it."""
    inner = map(_inner, _beliefs(cls), codec.places())
    return cls.__bases__[0] is tuple and not any(inner)


def _inner(belief: _Belief, place: FieldPlace) -> Callable[[Any], Any] | None:
    """Return the function that makes the field's own class, if it has one."""
    if is_record_class(belief.kind) and isinstance(place.codec, StructCodec):
        return _maker(place.codec, belief.kind)
    return None


def _beliefs(cls: type) -> list[_Belief]:
    hints = get_type_hints(cls, include_extras=True)
    if dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls) if field.init]
    else:
        names = list(getattr(cls, "_fields", ()))
    beliefs = []
    at: int | None = 0  # None: after a field of unknown size
    for name in names:
        kind, size, signed, text = _annotation(hints.get(name, Any))
        align = size if kind is int else 1
        offset = -(-at // align) * align if at is not None and size else None
        at = None if offset is None else offset + size
        beliefs.append(_Belief(name, text, kind, size, signed, offset))
    return beliefs


def _annotation(hint: Any) -> tuple[Any, int, bool | None, str]:
    """Kind, size in bytes, sign and text."""
    if get_origin(hint) is Annotated:
        kind, *notes = get_args(hint)
        for note in notes:
            if note in _NUMBERS:
                size, signed = _NUMBERS[note]
                return kind, size, signed, str(note)
            if isinstance(note, int):
                return kind, note, None, f"{kind.__name__}[{note}]"
        return _annotation(kind)
    kind = get_origin(hint) or hint
    return kind, 0, None, getattr(kind, "__name__", str(kind))


def _agrees(belief: _Belief, place: FieldPlace) -> bool:
    codec = place.codec
    if is_record_class(belief.kind):
        return isinstance(codec, StructCodec)
    kinds = _KINDS.get(belief.kind)
    if kinds is not None and not isinstance(codec, kinds):
        return False
    if belief.size and (place.width or codec.size != belief.size):
        return False
    if belief.signed is not None and (getattr(codec, "low", 0) < 0) != belief.signed:
        return False
    return belief.offset is None or 8 * belief.offset == place.bit_offset


def _side_by_side(cls: type, beliefs: list[_Belief], codec: StructCodec) -> str:
    left = [f"class {cls.__name__}"]
    left += [f"{belief.name}: {belief.text}{_at(belief.offset, belief.size)}" for belief in beliefs]
    right = [f"{codec.c_type} ({codec.size} bytes)"]
    places = codec.places()
    for place, name in zip(places, codec.record._fields, strict=True):
        bits = f" : {place.width}" if place.width else ""
        where = f"at {place.bit_offset // 8}, {place.codec.size} bytes"
        right.append(f"{name}: {place.codec.c_type}{bits} {where}")
    rows = max(len(left), len(right))
    left += ["-"] * (rows - len(left))
    right += ["-"] * (rows - len(right))
    width = max(map(len, left))
    lines = []
    for number, (ours, theirs) in enumerate(zip(left, right, strict=True)):
        same = number == 0 or (
            number <= min(len(beliefs), len(places))
            and beliefs[number - 1].name == codec.record._fields[number - 1]
            and _agrees(beliefs[number - 1], places[number - 1])
        )
        lines.append(f"  {ours.ljust(width)} {'  ' if same else '!='} {theirs}")
    return f"class {cls.__name__} does not mirror {codec.c_type}:\n" + "\n".join(lines)


def _at(offset: int | None, size: int) -> str:
    if offset is not None:
        return f" at {offset}, {size} bytes"
    return f" {size} bytes" if size else ""
