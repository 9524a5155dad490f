"""A C struct as the kernel lays it out: pack keyword values, unpack bytes.

The layouts themselves are generated (see `scripts/generate_abi.py`); this is all the code they
need. A field of an anonymous union or struct is a field of its parent; a field of a named one is
joined with an underscore (`link_create.perf_event.bpf_cookie` is `perf_event_bpf_cookie`).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from purebpf.tuples import NamedTuple


class Layout(NamedTuple):
    """A struct of `size` bytes.

    `fields` maps a name to its offset in bytes and its `struct` format; `bits` maps the name of a
    bit field to its offset in bits and its width (little-endian hosts).
    """

    name: str
    size: int
    fields: Mapping[str, tuple[int, str]]
    bits: Mapping[str, tuple[int, int]] = {}

    def pack(self, **values: int | bytes) -> bytearray:
        """The struct with `values` set and every other byte zero.

        Raises:
            KeyError: for a name that is not a field of this struct.
            ValueError: for a value that does not fit its field.
        """
        data = bytearray(self.size)
        for name, value in values.items():
            if (field := self.fields.get(name)) is not None:
                try:
                    struct.pack_into("=" + field[1], data, field[0], value)
                except struct.error:
                    size = struct.calcsize(field[1])
                    problem = f"{value!r} does not fit in its {size} bytes"
                    raise ValueError(f"{self.name}.{name}: {problem}") from None
            else:
                self._pack_bits(data, name, value)
        return data

    def _pack_bits(self, data: bytearray, name: str, value: int | bytes) -> None:
        offset, width = self.bits[name]
        if not isinstance(value, int) or not 0 <= value < 1 << width:
            raise ValueError(f"{self.name}.{name} holds {width} bit(s), not {value!r}")
        start = offset // 64 * 8
        word = int.from_bytes(data[start : start + 8], "little") | value << offset % 64
        data[start : start + 8] = word.to_bytes(8, "little")

    def unpack(self, data: bytes | bytearray | memoryview) -> dict[str, int | bytes]:
        """Every whole field that `data` reaches, by name; an older kernel fills fewer."""
        values: dict[str, int | bytes] = {}
        for name, (offset, code) in self.fields.items():
            if offset + struct.calcsize("=" + code) <= len(data):
                (values[name],) = struct.unpack_from("=" + code, data, offset)
        for name, (offset, width) in self.bits.items():
            if offset + width <= len(data) * 8:
                start = offset // 64 * 8
                word = int.from_bytes(data[start : start + 8], "little")
                values[name] = word >> offset % 64 & (1 << width) - 1
        return values
