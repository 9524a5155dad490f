"""Codecs of arrays: text, bytes, and anything else as tuples."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Self

from purebpf.btf.codec.values import Codec, Misfit, shown


def cut_at_nul(raw: bytes) -> str:
    """Return the string that `raw` starts with; the bytes behind its NUL are ignored."""
    return raw.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def strip_nuls(raw: bytes) -> str:
    """All of `raw` but the NULs at its end, so that no two keys become one string."""
    return raw.rstrip(b"\0").decode("utf-8", "surrogateescape")


_SHORT = 16
"""TASK_COMM_LEN: few names, again and again."""
_cut_short = lru_cache(4096)(cut_at_nul)
"""The same for such names, three times as fast where they have been seen before."""


class ArrayCodec(Codec):
    """`count` elements of `element_size` bytes."""

    def __init__(self, c_type: str, element_size: int, count: int, order: str) -> None:
        size = element_size * count
        super().__init__(c_type, size, f"{size}s", order)
        self.element_size = element_size
        self.count = count

    def resized(self, count: int) -> Self:
        """The same with another number of elements."""
        raise NotImplementedError


class Text(ArrayCodec):
    """A char array as str. A value ends at its first NUL; a key keeps the bytes behind it."""

    takes_bytes = True

    def __init__(self, c_type: str, count: int, order: str, *, key: bool) -> None:
        super().__init__(c_type, 1, count, order)
        cut = _cut_short if count <= _SHORT else cut_at_nul
        self.convert: Callable[[bytes], str] = strip_nuls if key else cut
        self._key = key

    def resized(self, count: int) -> Self:
        """The same with another number of characters."""
        return type(self)(self.c_type, count, self.order, key=self._key)

    def lower(self, value: Any) -> bytes:
        """A str (as UTF-8) or bytes that fit; the rest becomes NUL."""
        return _lower_text(self, value)


class Octets(ArrayCodec):
    """An array of unsigned char as bytes."""

    takes_bytes = True

    def __init__(self, c_type: str, count: int, order: str) -> None:
        super().__init__(c_type, 1, count, order)

    def resized(self, count: int) -> Self:
        """The same with another number of bytes."""
        return type(self)(self.c_type, count, self.order)

    def lower(self, value: Any) -> bytes:
        """Exactly `count` bytes, or that many integers."""
        try:
            raw = bytes(value) if isinstance(value, Iterable) else None
        except (TypeError, ValueError):
            raw = None
        if raw is None:
            raise Misfit(self.c_type, f"{shown(value)} is neither bytes nor integers from 0 to 255")
        if len(raw) != self.size:
            raise Misfit(self.c_type, f"{shown(value)} has {len(raw)} bytes, not {self.size}")
        return raw


class CharBytes(Octets):
    """A char array as bytes, all of them."""

    def lower(self, value: Any) -> bytes:
        """As `Text`."""
        return _lower_text(self, value)


def _lower_text(codec: ArrayCodec, value: Any) -> bytes:
    if isinstance(value, str):
        raw = value.encode("utf-8", "surrogateescape")
    elif isinstance(value, (bytes, bytearray, memoryview)):
        raw = bytes(value)
    else:
        raise Misfit(codec.c_type, f"{shown(value)} is neither str nor bytes")
    if len(raw) > codec.size:
        problem = f"{shown(value)} takes {len(raw)} bytes, but there are {codec.size}"
        raise Misfit(codec.c_type, problem)
    return raw


class Array(ArrayCodec):
    """Elements of any other type as a tuple."""

    def __init__(self, c_type: str, element: Codec, count: int, order: str) -> None:
        super().__init__(c_type, element.size, count, order)
        self.element = element
        self.weight = element.weight * count if element.size else 1
        self.convert = self._choose_convert()

    def resized(self, count: int) -> Self:
        """The same with another number of elements."""
        return type(self)(self.c_type, self.element, count, self.order)

    def _choose_convert(self) -> Callable[[bytes], tuple[Any, ...]]:
        element, count = self.element, self.count
        if not element.size:
            return lambda _: (element.decode(b""),) * count
        if len(element.code) == 1:
            unpack = struct.Struct(f"{self.order}{count}{element.code}").unpack
            convert = element.convert
            return unpack if convert is None else lambda raw: tuple(map(convert, unpack(raw)))
        return lambda raw: tuple(element.elements(raw))

    def lower(self, value: Any) -> bytes:
        """`count` elements, in any iterable but text, bytes and mappings."""
        if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
            raise Misfit(self.c_type, f"{shown(value)} is not a sequence of {self.count}")
        elements = tuple(value)
        if len(elements) != self.count:
            raise Misfit(
                self.c_type, f"{shown(value)} has {len(elements)} elements, not {self.count}"
            )
        pack, to_slot = self.element.pack_slot, self.element.to_slot
        lowered = []
        for index, element in enumerate(elements):
            try:
                lowered.append(pack(to_slot(element)))
            except Misfit as misfit:
                raise misfit.under(f"[{index}]") from None
        return b"".join(lowered)
