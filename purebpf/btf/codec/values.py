"""Codecs of single values: integers, booleans, floats, enums, and the base of all codecs.

A codec gives its value one slot of a `struct.Struct` format. `convert` makes the slot into the
Python value (None: the slot is the value), `lower` does the reverse.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from operator import itemgetter
from typing import Any, NoReturn
from weakref import WeakValueDictionary

from purebpf.btf.types.names import legal_names
from purebpf.errors import FormatError, SchemaError

Buffer = bytes | bytearray | memoryview

INTEGER_CODES = {1: "Bb", 2: "Hh", 4: "Ii", 8: "Qq"}
"""struct codes by size: unsigned, signed."""

_TOGETHER = 256
"""Values in one format."""

_KEPT_ENUMS = 256

_SHOWN = 80
"""Characters of a value that an error shows."""

_FLOAT_CODES = {2: "e", 4: "f", 8: "d"}


UNFIT = (struct.error, TypeError, OverflowError)
"""What `struct.Struct.pack` raises for a value that does not fit."""


class Misfit(Exception):  # noqa: N818 -- never leaves the codecs: it becomes a SchemaError
    """A value that does not fit; each level it passes adds its step to the path."""

    def __init__(self, c_type: str, problem: str) -> None:
        self.c_type = c_type
        self.problem = problem
        self.steps: list[str] = []
        super().__init__(c_type, problem)

    def under(self, step: str) -> Misfit:
        """The same, seen from the parent; `step` is ".field" or "[3]"."""
        self.steps.append(step)
        return self


def shown(value: Any) -> str:
    """`value` for an error message, not longer than a line."""
    try:
        return _cut(repr(value))
    except ValueError:  # an int with more digits than Python prints
        return object.__repr__(value)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


@lru_cache(64)
def repeated(layout: struct.Struct, count: int) -> struct.Struct:
    """The format of `count` records, one after the other."""
    return struct.Struct(layout.format[:1] + count * layout.format[1:])


class Codec:
    """Values of one BTF type, to and from bytes.

    Attributes:
        c_type: the type as C spells it.
        size: its size in bytes, without a flexible array at its end.
        code: its slot in a struct format, without byte order.
        order: "<" or ">".
        convert: slot to value, or None when the slot is the value.
        weight: how many values one decoding makes.
        pack_slot: a slot as bytes.
        takes_bytes: whether bytes of another size mean something.
        plain: the class of values that are their own slot, or None.
        of_kernel: True if the kernel does not copy it into a map's value or out of it.
    """

    takes_bytes = False
    of_kernel = False
    plain: type | None = None
    convert: Callable[[Any], Any] | None = None

    def __init__(self, c_type: str, size: int, code: str, order: str) -> None:
        self.c_type = c_type
        self.size = size
        self.code = code
        self.order = order
        self.weight = 1
        self._slot = struct.Struct(order + code)
        self.pack_slot = self._slot.pack

    def __repr__(self) -> str:
        return f"<{type(self).__name__} codec of {self.c_type}, {self.size} bytes>"

    def decode(self, buffer: Buffer, offset: int = 0) -> Any:
        """The value at `offset` of `buffer`; FormatError when the buffer is too short."""
        try:
            (slot,) = self._slot.unpack_from(buffer, offset)
        except struct.error:
            self._too_short(buffer, offset)
        return slot if self.convert is None else self.convert(slot)

    def iter_decode(self, buffer: Buffer) -> Iterator[Any]:
        """The values that fill `buffer` back to back; FormatError when one is cut short."""
        self._check_whole(buffer)
        return self.elements(buffer)

    def elements(self, buffer: Buffer) -> Iterator[Any]:
        """Do the same as `iter_decode` for a whole number of values."""
        if not self.size:
            return iter(())
        return self._of_slots(self._slot.iter_unpack(buffer))

    def spaced(self, before: int, after: int) -> Callable[[Buffer], Iterator[Any]] | None:
        """Do the same as `elements` where each value has that many bytes around it.

        None where values must be decoded one by one. Nothing but the values' own bytes is read.
        """
        if not self.size:
            return None
        unpack = struct.Struct(f"{self.order}{before}x{self.code}{after}x").iter_unpack
        return lambda buffer: self._of_slots(unpack(buffer))

    def _of_slots(self, unpacked: Iterator[tuple[Any, ...]]) -> Iterator[Any]:
        slots = map(itemgetter(0), unpacked)
        return slots if self.convert is None else map(self.convert, slots)

    def encode(self, value: Any) -> bytes:
        """Return `value` as bytes; bytes of exactly `size` are returned unchanged.

        SchemaError names the field, its C type and the value when it does not fit.
        """
        if value.__class__ is self.plain:
            try:
                return self.pack_slot(value)
            except UNFIT:
                pass  # what is wrong is worth a closer look
        try:
            return self.to_bytes(value)
        except Misfit as misfit:
            place = self.c_type + "".join(reversed(misfit.steps))
            kind = f": {misfit.c_type}" if misfit.steps else ""
            raise SchemaError(f"{place}{kind}: {misfit.problem}") from None

    def writer(self) -> Callable[[bytearray, Any], object]:
        """Return a function that puts the bytes of `encode` into a buffer of their size."""
        encode, pack_into, plain = self.encode, self._slot.pack_into, self.plain

        def write(buffer: bytearray, value: Any) -> None:
            if value.__class__ is plain:
                try:
                    pack_into(buffer, 0, value)
                except UNFIT:
                    pass
                else:
                    return
            buffer[:] = encode(value)

        return write

    def encode_many(self, values: Sequence[Any]) -> bytes:
        """The bytes of many values, one after the other; SchemaError as `encode`.

        Some hundred at a time are written in one call of struct where their types allow that.
        """
        starts = range(0, len(values), _TOGETHER)
        return b"".join([self.encode_some(values[at : at + _TOGETHER]) for at in starts])

    def encode_some(self, values: Sequence[Any]) -> bytes:
        """Do the same as `encode_many`, for as many values as one format should have."""
        if self.plain is not None and {self.plain}.issuperset(map(type, values)):
            try:
                return repeated(self._slot, len(values)).pack(*values)
            except UNFIT:
                pass
        if {bytes}.issuperset(map(type, values)) and {self.size}.issuperset(map(len, values)):
            return b"".join(values)
        return b"".join(map(self.encode, values))

    def to_bytes(self, value: Any) -> bytes:
        """Do the same as `encode`, but raise Misfit."""
        return self.pack_slot(self.to_slot(value))

    def to_slot(self, value: Any) -> Any:
        """`value` as its slot; raises Misfit."""
        if isinstance(value, (bytes, bytearray, memoryview)):
            count = memoryview(value).nbytes
            if count == self.size:
                return self._slot.unpack(value)[0]
            if not self.takes_bytes:
                raise Misfit(self.c_type, f"{shown(value)} has {count} bytes, not {self.size}")
        if value is None:
            raise Misfit(self.c_type, "is missing")
        return self.lower(value)

    def lower(self, value: Any) -> Any:
        """Do the same as `to_slot` for anything but raw bytes."""
        raise NotImplementedError

    def _too_short(self, buffer: Buffer, offset: int) -> NoReturn:
        length = memoryview(buffer).nbytes
        problem = f"takes {self.size} bytes, but {max(length - offset, 0)} are left"
        raise FormatError("record", f"offset {offset}", f"{self.c_type} {problem}") from None

    def _check_whole(self, buffer: Buffer) -> None:
        length = memoryview(buffer).nbytes
        if length % self.size if self.size else length:
            problem = f"is not a whole number of {self.c_type} of {self.size} bytes"
            raise FormatError("record", f"{length} bytes", problem)


class Integer(Codec):
    """An int of 1, 2, 4 or 8 bytes; pointers too."""

    plain = int

    def __init__(self, c_type: str, size: int, order: str, *, signed: bool) -> None:
        super().__init__(c_type, size, INTEGER_CODES[size][signed], order)
        self.low, self.high = int_range(8 * size, signed=signed)
        self._is_native = (order == "<") == (sys.byteorder == "little")

    def elements(self, buffer: Buffer) -> Iterator[int]:
        """As `Codec.elements`; a view of numbers takes two thirds of the time of tuples."""
        if not self._is_native:
            return super().elements(buffer)
        return iter(memoryview(buffer).cast("B").cast(self.code))  # type: ignore[call-overload]

    def lower(self, value: Any) -> int:
        """An int in range; anything with `__index__`, so enums and bools too."""
        return check_int(self.c_type, value, self.low, self.high)


class KernelPointer(Integer):
    """A kptr: a reference that the kernel keeps in a map's value, zero where it is not given."""

    of_kernel = True

    def to_slot(self, value: Any) -> Any:
        """As `Codec.to_slot`."""
        return 0 if value is None else super().to_slot(value)


class WideInteger(Codec):
    """An int of a size that struct does not have: __int128."""

    def __init__(self, c_type: str, size: int, order: str, *, signed: bool) -> None:
        super().__init__(c_type, size, f"{size}s", order)
        self.low, self.high = int_range(8 * size, signed=signed)
        self._signed = signed

    def convert(self, slot: bytes) -> int:
        """The number in the bytes."""
        return int.from_bytes(slot, "little" if self.order == "<" else "big", signed=self._signed)

    def lower(self, value: Any) -> bytes:
        """The bytes of the number."""
        number = check_int(self.c_type, value, self.low, self.high)
        return number.to_bytes(
            self.size, "little" if self.order == "<" else "big", signed=self._signed
        )


class Boolean(Codec):
    """A C bool: False, True, or the stored int of any other value.

    C does not define such an int, but a look-up must find a map key with it again, and a union's
    other members may put it there.
    """

    def __init__(self, c_type: str, size: int, order: str) -> None:
        super().__init__(c_type, size, INTEGER_CODES[size][0], order)
        self._high = int_range(8 * size, signed=False)[1]

    @staticmethod
    def convert(slot: int) -> int:
        """A bool for 0 and 1."""
        return slot == 1 if slot < 2 else slot

    def lower(self, value: Any) -> int:
        """Return a bool, or the result of `convert` for another int."""
        return check_int(self.c_type, value, 0, self._high)


class FloatingPoint(Codec):
    """A float, double or _Float16."""

    plain = float

    def __init__(self, c_type: str, size: int, order: str) -> None:
        super().__init__(c_type, size, _FLOAT_CODES[size], order)

    def lower(self, value: Any) -> float:
        """A number that the format can hold."""
        try:
            number = float(value)
            self._slot.pack(number)
        except (TypeError, ValueError, OverflowError) as error:
            raise Misfit(self.c_type, f"{shown(value)} does not fit: {_cut(str(error))}") from None
        return number


class Enumeration(Codec):
    """An enum: its IntEnum's members, and plain ints for values it does not name.

    Attributes:
        values: by name, as in C.
    """

    plain = int

    def __init__(
        self, c_type: str, size: int, order: str, *, signed: bool, values: Mapping[str, int]
    ) -> None:
        super().__init__(c_type, size, INTEGER_CODES[size][signed], order)
        self.low, self.high = int_range(8 * size, signed=signed)
        self.values = values
        self._members = _Members(c_type, values)
        self.convert = self._members.__getitem__

    def lower(self, value: Any) -> int:
        """A member, its name or any int in range."""
        if isinstance(value, str):
            if value not in self.values:
                raise Misfit(self.c_type, f"does not have a value {shown(value)}")
            value = self.values[value]
        return check_int(self.c_type, value, self.low, self.high)


def enum_class(name: str, values: Mapping[str, int]) -> type[IntEnum]:
    """The class of the members that an enum with these names decodes to."""
    return _enum(name, tuple(zip(legal_names(values), values.values(), strict=True)))


class _Members(dict[int, int]):
    """Enum members by value, made at the first look-up: a class of 200 names takes 4 ms."""

    def __init__(self, c_type: str, values: Mapping[str, int]) -> None:
        super().__init__()
        self._c_type = c_type
        self._names = values

    def __missing__(self, value: int) -> int:
        if not self and self._names:
            made = enum_class(self._c_type.removeprefix("enum "), self._names)
            self.update((int(member), member) for member in made)
            return self.get(value, value)
        return value


class _Member(IntEnum):
    """The base of all members of enums; they can be pickled."""

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        made = type(self)
        return _rebuilt, (made.__name__, _pairs(made), int(self))


_enums: WeakValueDictionary[tuple[str, tuple[tuple[str, int], ...]], type[_Member]] = (
    WeakValueDictionary()
)
"""Every enum that is in use: members of the same kind have the same class, copies too."""


@lru_cache(_KEPT_ENUMS)
def _enum(name: str, pairs: tuple[tuple[str, int], ...]) -> type[_Member]:
    """The same class again, for the values of another BTF and for those that were pickled."""
    if (known := _enums.get((name, pairs))) is not None:
        return known
    made: type[_Member] = _Member(name, pairs, module="btf")  # type: ignore[call-arg, assignment, arg-type]
    _enums[name, pairs] = made
    return made


@lru_cache(_KEPT_ENUMS)
def _pairs(made: type[_Member]) -> tuple[tuple[str, int], ...]:
    """The same tuple again, which pickle writes once for many members."""
    return tuple((name, int(member)) for name, member in made.__members__.items())


def _rebuilt(name: str, pairs: tuple[tuple[str, int], ...], value: int) -> _Member:
    return _enum(name, pairs)(value)


def int_range(bits: int, *, signed: bool) -> tuple[int, int]:
    """The least and the greatest integer of that many bits."""
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def check_int(c_type: str, value: Any, low: int, high: int) -> int:
    """`value` as an int from `low` to `high`, or Misfit."""
    if value is None:
        raise Misfit(c_type, "is missing")
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        raise Misfit(c_type, f"{shown(value)} is not an integer") from None
    if not low <= number <= high:
        raise Misfit(c_type, f"{shown(value)} is out of range, {low} to {high}")
    return int(number)
