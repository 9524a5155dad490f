"""The types of the records of a ring or perf buffer.

BTF gives such a map no value type that the kernel would accept, so purebpf looks, in this order:

1. `type=`, where the records are read: `"struct event"` (or `"event"`) by its name in the object's
   BTF, a codec, or `bytes` for the bytes as they are; a NamedTuple or dataclass mirrors the type by
   2 and 3, or the struct of the same name (`purebpf.btf.codec.record_class`);
2. the map's declaration, `__type(value, struct event)`: the type stays in `MapSpec.value_type_id`
   and is not sent to the kernel (libbpf would send it, and the kernel refuse it);
3. a global variable, `struct event *events_record;`, named after the map `events`: its type, or the
   type that it points to. It also anchors the struct in BTF, and libbpf loads such an object.

Without any of these there is a SchemaError, never a guess. A record may be longer than its type
(the kernel pads, a program may append); a shorter one is a FormatError, or with `short="zero"` is
filled with zeros.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, Protocol

from purebpf.btf.types.kinds import Kind, Ptr, Var
from purebpf.errors import FormatError, SchemaError

if TYPE_CHECKING:
    from purebpf.btf.codec.codecs import Codec
    from purebpf.btf.types.parse import Btf
    from purebpf.wire.perf_ring import Buffer
    from purebpf.wire.uniform_records import UniformRecords

__all__ = [
    "Decoder",
    "RecordCodec",
    "RecordMap",
    "RecordType",
    "Short",
    "Wakeable",
    "decoder",
    "record_type_id",
    "too_short",
    "type_named",
]


class RecordCodec(Protocol):
    """The interface of `purebpf.btf.codec.codecs.codec`: values of `size` bytes."""

    @property
    def size(self) -> int:
        """Bytes of one value."""

    def decode(self, buffer: Buffer, offset: int = 0, /) -> Any:
        """The value at `offset`."""


RecordType = str | RecordCodec | type | None
"""A type's name in BTF, a codec, `bytes`, a record class, or None for what the object says."""


Short = Literal["error", "zero"]
"""What to make of a record that is shorter than its type."""


class Wakeable(Protocol):
    """A reader that may be waiting."""

    def wake(self) -> None:
        """Make everything that waits for its records look again."""


class RecordMap(Protocol):
    """The parts of a map that a reader needs."""

    @property
    def name(self) -> str:
        """The map's name in the object."""

    @property
    def max_entries(self) -> int:
        """Bytes of a ring buffer; elements of a perf event array."""

    @property
    def btf(self) -> Btf | None:
        """The object's BTF."""

    @property
    def value_type_id(self) -> int:
        """The value type of the declaration, in `btf`; 0: none."""

    @property
    def text(self) -> bool:
        """True if char arrays are text, False for bytes."""

    def fileno(self) -> int:
        """The map's descriptor."""

    def wakes(self, reader: Wakeable) -> None:
        """Wake this reader when the map is closed."""


class Decoder:
    """Makes values of records.

    Attributes:
        one: the value of a record's bytes; FormatError when they are too few.
    """

    def __init__(self, codec: RecordCodec | None, short: Short = "error") -> None:
        """By a codec; without one, records are bytes."""
        self.one: Callable[[bytes], Any] = bytes if codec is None else _decoding(codec, short)
        self._codec = codec
        self._shape = (0, 0)
        self._many: Callable[[bytes], Iterator[Any]] | None = None

    def run(self, run: UniformRecords) -> Iterator[Any] | None:
        """The values of all records of a run; None where they must be decoded one by one.

        No code of the caller's runs for a value, and none is refused.
        """
        if self._codec is None:
            return run.records()
        after = run.step - run.before - self._codec.size
        if run.length < self._codec.size:
            return None
        if self._shape != (run.before, after):
            self._shape = (run.before, after)
            spaced = getattr(self._codec, "spaced", None)
            self._many = spaced and spaced(*self._shape)
        return self._many(run.data) if self._many else None


def decoder(source: RecordMap, type_: RecordType, short: Short = "error") -> Decoder:
    """Return the function that makes values of records, by the rules above.

    Raises:
        SchemaError: no rule gives a type, or the one named is not in the object's BTF.
        ValueError: `short` is neither "error" nor "zero".
    """
    if short not in ("error", "zero"):
        raise ValueError(f'short= is "error" or "zero", not {short!r}')
    return Decoder(_record_codec(source, type_), short)


def _record_codec(source: RecordMap, type_: RecordType) -> RecordCodec | None:
    """The codec of the records; None: they are bytes."""
    if type_ is bytes:
        return None
    if type_ is None:
        return _codec(source, _type_by_declaration(source))
    if isinstance(type_, str):
        return _codec(source, _type_by_name(source, type_))
    if isinstance(type_, type):
        from purebpf.btf.codec.record_class import bind

        return bind(_codec(source, _mirrored_type(source, type_)), type_)
    return type_


def record_type_id(source: RecordMap, type_: RecordType) -> tuple[Btf, int]:
    """The type of the records in BTF.

    Raises:
        SchemaError: as `decoder`; or the records were requested as bytes, or by a codec.
    """
    if isinstance(type_, type) and type_ is not bytes:
        type_id = _mirrored_type(source, type_)
    elif type_ is not None and not isinstance(type_, str):
        raise SchemaError(f"map {source.name!r}: its BTF does not have type {type_!r}")
    else:
        type_id = _type_by_declaration(source) if type_ is None else _type_by_name(source, type_)
    assert source.btf is not None
    return source.btf, type_id


def _mirrored_type(source: RecordMap, cls: type) -> int:
    """The struct that a class mirrors: the map's, or else the one of the class's name."""
    try:
        return _type_by_declaration(source)
    except SchemaError:
        names = {cls.__name__, re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()}
        for name in sorted(names):
            if source.btf is not None and source.btf.find(name, Kind.STRUCT):
                return _type_by_name(source, f"struct {name}")
        raise


def _decoding(codec: RecordCodec, short: Short) -> Callable[[bytes], Any]:
    size = codec.size
    from_start = getattr(codec, "from_start", None) or codec.decode

    def one(record: bytes) -> Any:
        if len(record) < size:
            if short == "error":
                raise too_short(len(record), size)
            record = record.ljust(size, b"\0")
        return from_start(record)

    return one


def too_short(length: int, size: int) -> FormatError:
    """The error of a record of `length` bytes with a type of `size`."""
    problem = f'its type has {size}; short="zero" makes what is missing zero'
    return FormatError("record", f"{length} bytes", problem)


def _codec(source: RecordMap, type_id: int) -> Codec:
    from purebpf.btf.codec.codecs import codec

    assert source.btf is not None
    return codec(source.btf, type_id, text=source.text)


_KEYWORDS = {"struct": Kind.STRUCT, "union": Kind.UNION, "enum": Kind.ENUM}


def type_named(btf: Btf | None, text: str, where: str) -> int:
    """The id of `"struct event"`, or `"event"`; `where` is for the error.

    Raises:
        SchemaError: there is no such type, or several.
    """
    keyword, _, name = text.rpartition(" ")
    kinds = (_KEYWORDS[keyword],) if keyword in _KEYWORDS else (Kind.TYPEDEF, *_KEYWORDS.values())
    type_ids = btf.find(name, *kinds) if btf is not None else ()
    if len(type_ids) == 1:
        return type_ids[0]
    if type_ids:
        raise SchemaError(f"{where}: the object's BTF has {len(type_ids)} types {text!r}")
    variable = f"{keyword or 'struct'} {name} *unused;"
    raise SchemaError(
        f"{where}: the object's BTF does not have type {text!r}; if only functions use it, add a "
        f"global variable `{variable}`"
    )


def _type_by_name(source: RecordMap, text: str) -> int:
    return type_named(source.btf, text, f"map {source.name!r}")


def _type_by_declaration(source: RecordMap) -> int:
    btf = source.btf
    if btf is not None:
        for type_id in (source.value_type_id, *_anchors(btf, f"{source.name}_record")):
            # A perf event array may declare its value as int: that is a descriptor, no record.
            if type_id and btf.kind(btf.resolve(type_id)) in (Kind.STRUCT, Kind.UNION):
                return type_id
    raise SchemaError(
        f'map {source.name!r}: unknown record type; read it with type="struct NAME" or '
        f"type=bytes, or declare `struct NAME *{source.name}_record;`"
    )


def _anchors(btf: Btf, name: str) -> list[int]:
    """Return the types of the variables named `name`, or their targets."""
    type_ids = []
    for variable_id in btf.find(name, Kind.VAR):
        variable = btf.type(variable_id)
        assert isinstance(variable, Var)
        target = btf.type(btf.resolve(variable.type_id))
        type_ids.append(target.type_id if isinstance(target, Ptr) else variable.type_id)
    return type_ids
