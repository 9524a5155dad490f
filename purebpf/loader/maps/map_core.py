"""A map in the kernel and the reading of its bytes, for `Map` and the bulk operations."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from purebpf.abi.bpf import bpf_map_type
from purebpf.closable import SoleOwner
from purebpf.errors import SchemaError
from purebpf.loader.host import cpus
from purebpf.loader.maps import map_traits
from purebpf.loader.maps.map_batch import Shape
from purebpf.loader.maps.map_info import MapInfo
from purebpf.syscall.descriptor import Descriptor
from purebpf.syscall.map_element import Elements, Write
from purebpf.syscall.map_sizes import FD_VALUES, PER_CPU, Sizes, value_room

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf
    from purebpf.errors import KernelError
    from purebpf.loader.maps.map_plain_codecs import Codec

__all__ = ["Store"]

_UNLISTED = 1 << 16
"""Elements to expect where max_entries is 0: cgroup storage has one for each cgroup."""

_LONGEST_KEY_TEXT = 60
_OTHER_ROOM = PER_CPU | FD_VALUES
"""Types with values that take other room than their size."""


class Store(SoleOwner):
    """A map's descriptor, its sizes, and the codecs of its keys and values.

    Attributes:
        descriptor: the map.
        info: the kernel's description of it.
        elements: for single elements.
        shape: for many.
        batches: whether to try the batch commands: false once the kernel refused one.
        make_values: makes the codec of values that are more than bytes of a type: maps.
        name: the map's, for messages.
        text: whether char arrays are text, or bytes.
    """

    def __init__(
        self,
        descriptor: Descriptor,
        info: MapInfo,
        btf: Btf | None = None,
        key_type_id: int = 0,
        value_type_id: int = 0,
    ) -> None:
        self.descriptor = descriptor
        self.info = info
        self._btf = btf
        self._type_ids = (key_type_id, value_type_id)
        self._cpus = len(cpus.possible()) if info.type in map_traits.PER_CPU else 1
        room = info.value_size
        if info.type in _OTHER_ROOM:
            room = value_room(info.type, info.value_size, self._cpus)
        self.elements = Elements(descriptor, Sizes(info.type, info.key_size, room))
        self.shape = Shape(info.key_size, room, info.max_entries or _UNLISTED)
        self.batches = True
        self.make_values: Callable[[], Codec] | None = None
        self.name = info.name
        self.text = True
        self._classes: dict[str, type] = {}

    @cached_property
    def key(self) -> Codec:
        """The keys' codec, made when it is first needed.

        Raises:
            FormatError: the type is malformed.
        """
        return self._make_key(text=self.text)

    @cached_property
    def value(self) -> Codec:
        """The values' codec, as `key`; of tuples for a per-CPU map."""
        return self._make_value(text=self.text)

    def _make_key(self, *, text: bool) -> Codec:
        from purebpf.loader.maps import map_codecs

        info = self.info
        types = (self._btf, self._type_ids[0])
        return map_codecs.key_codec(info.type, info.key_size, *types, text=text)

    def _make_value(self, *, text: bool) -> Codec:
        if self.make_values is not None:
            return self.make_values()
        info = self.info
        if info.type == bpf_map_type.BPF_MAP_TYPE_STACK_TRACE and not self._type_ids[1]:
            from purebpf.loader.maps.map_stacks import stack_codec

            return stack_codec(info.value_size, info.flags)
        from purebpf.loader.maps import map_codecs

        return map_codecs.value_codec(
            *(info.type, info.value_size, self._btf, self._type_ids[1], self._cpus), text=text
        )

    @cached_property
    def read_value(self) -> Callable[[bytearray], Any]:
        """The decoder of an element's value, which has room for all of it."""
        quick: Callable[[bytearray], Any] | None = getattr(self.value, "from_start", None)
        return quick or self.value.decode

    @cached_property
    def look_up(self) -> Callable[..., Any]:
        """A function that returns for `(key, flags=0)` the value, or an `Errno`.

        It raises SchemaError as `encode_key`, without the map's name.
        """
        return self.elements.reader(_writer(self.key), self.read_value)

    @cached_property
    def update(self) -> Callable[..., int]:
        """A function that stores a value for `(key, value, flags=0)`: 0, or a negated
        errno; as `look_up`.
        """
        return self.elements.updater(_writer(self.key), _writer(self.value))

    def bind(self, key: type | None, value: type | None, *, text: bool | None) -> None:
        """Have keys or values be instances of these classes, and char arrays text or bytes.

        None leaves it as it was.

        Raises:
            SchemaError: as `bound`; nothing is changed then.
        """
        from purebpf.loader.maps.map_codecs import bound

        text = self.text if text is None else text
        given = {"key": key, "value": value}
        classes = self._classes | {part: cls for part, cls in given.items() if cls is not None}
        codecs = {"key": self._make_key(text=text), "value": self._make_value(text=text)}
        codecs |= {part: bound(codecs[part], cls) for part, cls in classes.items()}
        self.key, self.value = codecs["key"], codecs["value"]
        self._classes, self.text = classes, text
        for method in ("read_value", "look_up", "update"):
            self.__dict__.pop(method, None)

    def encode_key(self, key: Any) -> bytes:
        """The bytes of a key; SchemaError names the map."""
        try:
            return self.key.encode(key)
        except SchemaError as error:
            raise self.named(error, "key") from None

    def encode_value(self, value: Any) -> bytes:
        """The bytes of a value; SchemaError names the map."""
        try:
            return self.value.encode(value)
        except SchemaError as error:
            raise self.named(error, "value") from None

    def named(self, error: SchemaError, part: str) -> SchemaError:
        """The error of a key or value that does not fit, with the map's name."""
        return SchemaError(f"map {self.name!r}: {part}: {error}")

    def misfit(self, error: SchemaError, key: Any) -> SchemaError:
        """The same, of a key or of the value that was to be stored with it."""
        try:
            self.key.encode(key)
        except SchemaError:
            return self.named(error, "key")
        return self.named(error, "value")

    def close(self) -> None:
        """Close the map; again is harmless. A call that another thread is in ends first."""
        self.elements.close()

    def explain_failure(self, error: int, verb: str, command: str, detail: str = "") -> KernelError:
        """The error of a refused command: `failed(ENOMEM, "updating", "UPDATE_ELEM", "7")`."""
        from purebpf.loader.maps import map_errors

        return map_errors.operation(error, verb, f"bpf(BPF_MAP_{command})", self.info, detail)

    def key_text(self, raw: bytes | bytearray) -> str:
        """A key for an error message."""
        decoded: Any = self.key.decode(raw)
        text = repr(decoded)
        return text if len(text) <= _LONGEST_KEY_TEXT else text[: _LONGEST_KEY_TEXT - 3] + "..."


def _writer(codec: Codec) -> Write:
    if (writer := getattr(codec, "writer", None)) is not None:
        method: Write = writer()
        return method
    encode = codec.encode

    def write(buffer: bytearray, value: Any) -> None:
        buffer[:] = encode(value)

    return write
