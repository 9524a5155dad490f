# ruff: noqa: SLF001 -- a Btf reads its base, another Btf
"""BTF from bytes: one pass that finds where each type starts; the rest is decoded on demand.

The pass costs 13 ms and 1 MB for the 126,585 types of a 5.5 MB vmlinux (CPython 3.11); a list
of decoded types costs seconds and 100 MB. Names are searched in the bytes, see `strings`.

Source: Documentation/bpf/btf.rst, include/uapi/linux/btf.h.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from purebpf.btf.types import decode
from purebpf.btf.types import kinds as types
from purebpf.btf.types.kinds import MODIFIERS, Kind, Type
from purebpf.btf.types.name_index import NameIndex
from purebpf.btf.types.strings import Strings, essential_name
from purebpf.btf.types.type_starts import MalformedError, find_starts
from purebpf.errors import FormatError

__all__ = [
    "MAX_DEPTH",
    "Btf",
    "essential_name",
    "ids_of",
    "member_places",
    "names_of",
    "starts",
    "with_distinct_names",
    "with_starts",
]

MAX_DEPTH = 64
"""Longest chain of typedefs, qualifiers and arrays, and deepest nesting; the kernel's is 32."""

_MAGIC = 0xEB9F
_VERSION = 1
_HEADER = "HBBIIIII"
_HEADER_SIZE = 24
_HEADER_SIZE_WITH_LAYOUT = 32
_MAX_SIZE = 1 << 32
_COPIED = 1 << 20
"""Bytes of types that are copied: a word of an array is read in half the time of a memoryview's."""
_ANSWERS = 4096
"""Names with ids that a Btf remembers: objects that are loaded ask for the same few."""
_VOID = types.Void()
_LONG_NAMES = ("long int", "long unsigned int", "long", "unsigned long")


class Btf:
    """The types of one BTF blob, by id and by name.

    Args:
        data: the blob, of either byte order.
        base: the BTF that a split BTF (a kernel module's) continues: its ids and string offsets
            start where the base's end.
        source: the blob's name in errors.

    Ids run from 0 (`void`) to `len(btf) - 1`, the base's included. Two objects are equal when their
    data and bases are. Every method with an id or an offset as argument raises FormatError when it,
    or its target, is malformed.

    Attributes:
        data: the blob.
        base: the base, or None.
        byteorder: "little" or "big".
        source: as given.
        memo: results that other modules derive from these types and want to keep with them.
    """

    __slots__ = (
        "__weakref__",
        "_answers",
        "_blob",
        "_first",
        "_layout",
        "_names",
        "_offsets",
        "_pointer_size",
        "_strings",
        "_types",
        "_words",
        "base",
        "byteorder",
        "data",
        "memo",
        "source",
    )

    def __init__(
        self,
        data: bytes | bytearray | memoryview,
        base: Btf | None = None,
        source: str = "BTF",
    ) -> None:
        self._open(bytes(data), base, source)
        self._offsets = self._index()

    def _open(self, data: bytes | memoryview, base: Btf | None, source: str) -> None:
        """Everything but where the types are. A view must stay as it is: it is not copied."""
        self._blob = data
        if isinstance(data, bytes):
            self.data = data
        self.base = base
        self.source = source
        self.memo: dict[object, Any] = {}
        self.byteorder: Literal["little", "big"]
        self._types: dict[int, Type] = {}
        self._names: NameIndex | None = None
        self._answers: dict[tuple[str, bool], tuple[int, ...]] = {}
        self._pointer_size = 0
        self._first = len(base) if base is not None else 1
        self._strings: Strings
        self._words = self._read_header()

    def __getattr__(self, name: str) -> bytes:
        """Copy the blob of a view when somebody asks for `data`."""
        if name != "data":
            raise AttributeError(name)
        self.data = bytes(self._blob)
        return self.data

    def __len__(self) -> int:
        return self._first + len(self._offsets)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the data, and read it again; the memo and decoded types stay behind."""
        return _read_again, (self.data, self.base, self.source, self._offsets, self._pointer_size)

    def __deepcopy__(self, _: dict[int, Any]) -> Btf:
        """Return the types themselves: they do not change."""
        return self

    def __repr__(self) -> str:
        return f"<Btf {self.source}: {len(self)} types>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Btf):
            return NotImplemented
        return self is other or (self.data == other.data and self.base == other.base)

    def __hash__(self) -> int:
        return hash((self.data, self.base))

    # The header and the index

    def _read_header(self) -> array[int] | memoryview[int]:
        """Set the byte order and the strings; the words of the type section."""
        data = self._blob
        if len(data) < _HEADER_SIZE:
            raise FormatError(self.source, "header", f"{len(data)} bytes are too short for BTF")
        self.byteorder = "big" if data[:2] == b"\xeb\x9f" else "little"
        order = "<" if self.byteorder == "little" else ">"
        magic, version, _, length, type_offset, type_size, string_offset, string_size = (
            struct.unpack_from(order + _HEADER, data)
        )
        if magic != _MAGIC or version != _VERSION:
            raise FormatError(
                self.source, "header", f"{bytes(data[:4]).hex()} is not BTF version 1"
            )
        if length < _HEADER_SIZE:
            raise FormatError(self.source, "header", f"it cannot be {length} bytes long")
        begin, strings = length + type_offset, length + string_offset
        if begin + type_size > len(data) or type_size % 4:
            problem = f"{type_size} bytes at {begin} do not fit the {len(data)} bytes of data"
            raise FormatError(self.source, "type section", problem)
        end = strings + string_size
        if end > len(data) or (string_size and data[end - 1]):
            problem = f"{string_size} bytes at {strings} are truncated, or do not end with NUL"
            raise FormatError(self.source, "string section", problem)
        if self.base is None and (not string_size or data[strings]):
            raise FormatError(self.source, "string section", "does not start with NUL")
        inherited = self.base._strings if self.base else None
        if isinstance(data, bytes):
            self._strings = Strings(data, strings, end, inherited)
        else:  # no view can be searched; the byte in front of the strings is looked at, too
            names = bytes(data[strings - 1 : end])
            self._strings = Strings(names, 1, len(names), inherited)
        self._layout = self._read_layout(order, length)
        if self.byteorder == sys.byteorder and type_size > _COPIED:
            return memoryview(data)[begin : begin + type_size].cast("I")
        words = array("I", data[begin : begin + type_size])
        if self.byteorder != sys.byteorder:
            words.byteswap()
        return words

    def _read_layout(self, order: str, length: int) -> bytes:
        """Read the BTF's description of the sizes of its kinds; without one, use the base's."""
        offset = size = 0
        if _HEADER_SIZE_WITH_LAYOUT <= length <= len(self._blob):
            offset, size = struct.unpack_from(order + "II", self._blob, _HEADER_SIZE)
        if not size:
            return self.base._layout if self.base is not None else b""
        layout = bytes(self._blob[length + offset :][:size])
        if len(layout) != size or size % decode.LAYOUT_SIZE:
            problem = f"{size} bytes at {length + offset} are truncated, or not whole entries"
            raise FormatError(self.source, "layout section", problem)
        return layout

    def _index(self) -> array[int]:
        """The first word of each type of this blob."""
        try:
            return find_starts(self._words, self._layout, self._first)
        except MalformedError as error:
            raise FormatError(self.source, error.where, error.problem) from None

    # By id

    def string(self, offset: int) -> str:
        """The string at an offset, as in .BTF.ext and in types."""
        try:
            return self._strings.get(offset)
        except ValueError as error:
            raise FormatError(self.source, "strings", str(error)) from None

    def kind(self, type_id: int) -> Kind:
        """The kind of a type, without decoding it; VOID for one that is not known."""
        own = type_id - self._first
        if 0 <= own < len(self._offsets):  # as `_locate`, for what is asked for most
            return _KINDS.get(self._words[self._offsets[own] + 1] >> 24 & 127, Kind.VOID)
        if type_id == 0:
            return Kind.VOID
        owner, at = self._locate(type_id)
        return _KINDS.get(owner._words[at + 1] >> 24 & 127, Kind.VOID)

    def name(self, type_id: int) -> str:
        """The name of a type, or "", without decoding it."""
        if type_id == 0:
            return "void"
        owner, at = self._locate(type_id)
        try:
            return owner._strings.name(owner._words[at])
        except ValueError as error:
            raise FormatError(self.source, f"type {type_id}", str(error)) from None

    def type(self, type_id: int) -> Type:
        """A type; decoded once."""
        btf_type = self._types.get(type_id)
        if btf_type is None:
            if type_id == 0:
                return _VOID
            if type_id < self._first and self.base is not None:
                return self.base.type(type_id)
            _, at = self._locate(type_id)
            following = type_id - self._first + 1
            end = self._offsets[following] if following < len(self._offsets) else len(self._words)
            strings = self._strings
            record = decode.Record(self._words[at:end], strings.name, strings.names, len(self))
            try:
                btf_type = self._types[type_id] = decode.decode(record)
            except ValueError as error:
                raise FormatError(self.source, f"type {type_id}", str(error)) from None
        return btf_type

    def _locate(self, type_id: int) -> tuple[Btf, int]:
        """The blob that holds a type, and the type's first word."""
        own = type_id - self._first
        if 0 <= own < len(self._offsets):
            return self, self._offsets[own]
        if not 0 < type_id < self._first or self.base is None:
            raise FormatError(self.source, f"type {type_id}", f"there are {len(self)} types")
        return self.base._locate(type_id)

    def resolve(self, type_id: int) -> int:
        """The id behind typedefs, qualifiers and type tags."""
        own = type_id - self._first
        if 0 <= own < len(self._offsets):  # as below, for what is asked for most
            at = self._offsets[own]
            if self._words[at + 1] >> 24 & 127 not in _MODIFIERS:
                return type_id
        current = type_id
        for _ in range(MAX_DEPTH):
            if current == 0:
                return 0
            owner, at = self._locate(current)
            words = owner._words
            if words[at + 1] >> 24 & 127 not in _MODIFIERS:
                return current
            current = words[at + 2]
        problem = f"more than {MAX_DEPTH} typedefs and qualifiers, or a cycle"
        raise FormatError(self.source, f"type {type_id}", problem)

    @property
    def pointer_size(self) -> int:
        """The size of a pointer in bytes: the size of `long`, or 8 when no `long` is described."""
        if not self._pointer_size:
            sizes = (
                integer.size
                for name in _LONG_NAMES
                for integer in map(self.type, self.find(name, Kind.INT))
                if isinstance(integer, types.Int) and integer.size in (4, 8)
            )
            self._pointer_size = next(sizes, 8)
        return self._pointer_size

    def sizeof(self, type_id: int) -> int:
        """The size of a type in bytes; a variable's is its type's.

        Void, functions and forward declarations have none: FormatError.
        """
        current, count = type_id, 1
        for _ in range(MAX_DEPTH):
            current = self.resolve(current)
            if self.kind(current) in _OF_MEMBERS:  # which need not be decoded
                owner, at = self._locate(current)
                return self._check_size(type_id, count * owner._words[at + 2])
            btf_type = self.type(current)
            if isinstance(btf_type, types.Array):
                current, count = btf_type.element, min(count * btf_type.count, _MAX_SIZE)
            elif isinstance(btf_type, types.Var):
                current = btf_type.type_id
            elif isinstance(btf_type, types.Ptr):
                return self._check_size(type_id, count * self.pointer_size)
            elif isinstance(btf_type, _SIZED):
                return self._check_size(type_id, count * btf_type.size)
            else:
                problem = f"{btf_type.kind.name} {btf_type.name} has no size"
                raise FormatError(self.source, f"type {type_id}", problem)
        problem = f"more than {MAX_DEPTH} dimensions, or a cycle"
        raise FormatError(self.source, f"type {type_id}", problem)

    def _check_size(self, type_id: int, size: int) -> int:
        if size >= _MAX_SIZE:
            raise FormatError(self.source, f"type {type_id}", "takes 4 GiB or more")
        return size

    def dump_c(self, *types: int | str) -> str:
        """The C of some types and of all that they need, in an order that compiles.

        Args:
            types: ids, or names: "struct file", "u64". Without any, every type.

        Raises:
            KeyError: there is no such type.
            FormatError: as `type`; types that are not C's.
        """
        from purebpf.btf.dump.declarations import dump_c  # reading BTF need not pay for it

        return dump_c(self, types)

    # By name

    def find(self, name: str, *kinds: Kind) -> tuple[int, ...]:
        """The ids of types called `name`, of these kinds or of any, ascending.

        In a vmlinux the first call lists the names (8 ms), and each takes 0.05 to 0.3 ms.
        """
        return tuple(self._find(name, kinds, essential=False))

    def find_essential(self, name: str, *kinds: Kind) -> tuple[int, ...]:
        """The ids of types that match `name` without their flavour (`___x`), ascending."""
        return tuple(sorted(self._find(essential_name(name), kinds, essential=True)))

    def _find(self, name: str, kinds: tuple[Kind, ...], *, essential: bool) -> Iterator[int]:
        if self.base is not None:
            yield from self.base._find(name, kinds, essential=essential)
        question = (name, essential)
        if (own := self._answers.get(question)) is None:
            own = tuple(sorted(self._own(name, essential=essential)))
            if len(self._answers) < _ANSWERS:
                self._answers[question] = own
        for type_id in own:
            if not kinds or self.kind(type_id) in kinds:
                yield type_id

    def _own(self, name: str, *, essential: bool) -> Iterator[int]:
        """Ids of this blob's own types by name."""
        try:
            for number in self._name_index().find(name, essential=essential):
                yield self._first + number
        except ValueError as error:
            raise FormatError(self.source, "strings", str(error)) from None

    def _name_index(self) -> NameIndex:
        if self._names is None:
            self._names = NameIndex(self._words, self._offsets, self._strings)
        return self._names


_KINDS = {int(kind): kind for kind in Kind}
"""Quicker than Kind(number)."""


def _read_again(
    data: bytes, base: Btf | None, source: str, offsets: array[int], pointer_size: int
) -> Btf:
    btf = Btf.__new__(Btf)
    btf._open(data, base, source)
    btf._offsets = offsets
    btf._pointer_size = pointer_size
    return btf


def starts(btf: Btf) -> Sequence[int]:
    """The first word of each type of a blob itself, in its type section, by rising id."""
    return btf._offsets


def with_starts(data: bytes | memoryview, starts: Iterable[int], source: str) -> Btf:
    """Return the Btf of a blob without a base, given the starts of its types."""
    btf = Btf.__new__(Btf)
    btf._open(data, None, source)
    btf._offsets = starts if isinstance(starts, array) else array("I", starts)
    return btf


def decoded(btf: Btf) -> Mapping[int, Type]:
    """The types of a blob itself that were decoded so far, by id."""
    return btf._types


def with_decoded(btf: Btf, types: Mapping[int, Type]) -> Btf:
    """Return the same Btf with some decoded types, which belong to the same blob."""
    btf._types.update(types)
    return btf


def with_distinct_names(btf: Btf) -> Btf:
    """Return the same Btf, marked as having no string twice: look-ups by name are faster."""
    btf._strings.distinct = True
    return btf


def with_pointer_size(btf: Btf, size: int) -> Btf:
    """The same, with pointers of `size` bytes whatever it says about `long`."""
    btf._pointer_size = size
    return btf


def ids_of(btf: Btf, kind: Kind) -> Iterator[int]:
    """The ids of a blob's own types of a kind, ascending."""
    words, number = btf._words, int(kind)
    for type_id, at in enumerate(btf._offsets, btf._first):
        if words[at + 1] >> 24 & 127 == number:
            yield type_id


def names_of(btf: Btf, type_ids: Sequence[int]) -> list[str]:
    """The names of many of a blob's own types, in less time than one by one.

    Raises:
        FormatError: a name is longer than 4096 bytes, or outside of the strings.
    """
    words, offsets, first = btf._words, btf._offsets, btf._first
    try:
        return btf._strings.names([words[offsets[number - first]] for number in type_ids])
    except ValueError as error:
        raise FormatError(btf.source, "the names of types", str(error)) from None


def member_places(btf: Btf, type_id: int) -> Iterator[tuple[int, int]]:
    """The types of a struct's members, and their places in bits, without their names."""
    owner, at = btf._locate(type_id)
    words = owner._words
    info = words[at + 1]
    mask = _OFFSET if info >> 31 else _WHOLE
    for start in range(at + 3, at + 3 + 3 * (info & 0xFFFF), 3):
        yield words[start + 1], words[start + 2] & mask


_OFFSET, _WHOLE = 0xFFFFFF, 0xFFFFFFFF
"""The bits of a member's place; the others are the width of a bit field, if there are some."""
_MODIFIERS = frozenset(map(int, MODIFIERS))
_OF_MEMBERS = frozenset({Kind.STRUCT, Kind.UNION, Kind.DATASEC})
_SIZED = (types.Int, types.Enum, types.Enum64, types.Float)
