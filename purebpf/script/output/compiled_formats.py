"""Formatters of printf() that are made once for each call, and then run without Python code.

A formatter takes the records of many events of one printf(). `struct` cuts the values out of the
bytes, and one format string of Python makes the text: both were chosen from the types and the
conversions of C when the formatter was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from typing import Any

from purebpf.script.format_string import Conversion, split_format
from purebpf.script.output.decode import Decoder
from purebpf.script.output.text import show
from purebpf.script.types import Type, offsets

__all__ = ["Formatter", "compile_format"]

Formatter = Callable[[Iterable[bytes]], Iterable[str]]
"""Takes whole records, each with the number of its action, and returns their texts."""

_HEADER = 8
"""Bytes of the number of the action."""
_SIGNED = {8: "b7x", 16: "h6x", 32: "i4x", 64: "q"}
_UNSIGNED = {8: "B7x", 16: "H6x", 32: "I4x", 64: "Q"}
_SHORT = 64
"""The size of strings whose text is kept: names of processes repeat, paths less often."""
_MOST_TEXTS = 4096


class _Texts(dict[bytes, str]):
    """The texts of byte strings that came before."""

    def __init__(self, decode: Callable[[bytes], str]) -> None:
        super().__init__()
        self._decode = decode

    def __missing__(self, data: bytes) -> str:
        if len(self) >= _MOST_TEXTS:
            self.clear()
        text = self[data] = self._decode(data)
        return text


def compile_format(text: str, types: Sequence[Type], decoder: Decoder) -> Formatter | None:
    """Make the formatter of a printf(); None if C's conversions have none like them in Python."""
    conversions, rest = split_format(text)
    template, layout, end = "", f"<{_HEADER}x", 0
    converters: list[Callable[[bytes], str] | None] = []
    for conversion, type_, place in zip(conversions, types, offsets(types)[0], strict=True):
        piece = _number(conversion, type_) or _shown(conversion, type_, decoder)
        if piece is None:
            return None
        code, kind, convert = piece
        template += conversion.before.replace("%", "%%") + kind
        layout += f"{place - end}x{code}"
        end = place + Struct(f"<{code}").size
        converters.append(convert)
    unpack = Struct(layout).unpack_from
    write = (template + rest.replace("%", "%%")).__mod__
    if not any(converters):
        return lambda records: map(write, map(unpack, records))
    return lambda records: map(write, _converted(map(unpack, records), converters))


def _converted(
    rows: Iterator[tuple[Any, ...]], converters: list[Callable[[bytes], str] | None]
) -> Iterator[tuple[Any, ...]]:
    """Convert the bytes in rows of values to texts, column by column."""
    columns = zip(zip(*rows, strict=True), converters, strict=True)
    return zip(
        *(column if convert is None else map(convert, column) for column, convert in columns),
        strict=True,
    )


def _number(conversion: Conversion, type_: Type) -> tuple[str, str, None] | None:
    """Return the code of struct and the conversion of Python for a number; None for others."""
    flags, kind, precision = conversion.flags, conversion.kind, conversion.precision
    if type_.kind not in ("int", "ptr") or type_.name.startswith("enum") or "#" in flags:
        return None
    width = str(conversion.width or "")
    if kind in ("c", "p"):
        code, letter = ("B7x", "c") if kind == "c" else ("Q", "#x")
        return None if width else (code, f"%{letter}", None)
    if kind not in ("d", "i", "u", "x", "X", "o"):
        return None
    if precision >= 0:
        flags = flags.replace("0", "")
        width += f".{precision}"
    if kind not in ("d", "i"):
        flags = flags.replace("+", "").replace(" ", "")
    codes = _SIGNED if kind in ("d", "i") else _UNSIGNED
    return codes[conversion.bits], f"%{flags}{width}{kind}", None


def _shown(
    conversion: Conversion, type_: Type, decoder: Decoder
) -> tuple[str, str, Callable[[bytes], str] | None] | None:
    """Return the same for `%s`, and the function that makes the text from bytes."""
    if conversion.kind != "s":
        return None
    left = "-" if "-" in conversion.flags else ""
    width = str(conversion.width or "")
    precision = f".{conversion.precision}" if conversion.precision >= 0 else ""
    kind = f"%{left}{width}{precision}s"
    if type_.kind == "int" and not type_.name.startswith("enum"):
        return "q" if type_.signed else "Q", kind, None
    size = offsets([type_])[1]

    def decode(data: bytes) -> str:
        return show(decoder.value(type_, data))

    if type_.kind == "string":
        return f"{size}s", kind, _Texts(decode).__getitem__ if size <= _SHORT else decode
    return f"{size}s", kind, decode
