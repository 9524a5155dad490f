"""The `format` file of a tracepoint: its fields, and the meaning of their bytes. Pure.

The line `print fmt` has the meaning of numbers, as C: `__print_flags(REC->bits, "|", {1, "RED"},
...)` and `__print_symbolic(REC->vec, {0, "HI"}, ...)`. Layout: Documentation/trace/events.rst.
"""

from __future__ import annotations

import ast
import operator
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from purebpf.tools.trace.quoting import quote
from purebpf.tuples import NamedTuple

__all__ = ["Field", "Value", "ValueNames", "fields_of"]

Value = int | str | tuple[int, ...]
"""Of a field: a number, a text (bytes that are neither: in hex), or an array of numbers."""

_FIELD = re.compile(
    r"^\tfield:(.+?);\toffset:(\d+);\tsize:(\d+);(?:\tsigned:([01]);)?", re.MULTILINE
)
_DECLARED = re.compile(r"(.*?)\s*(\w+)\s*(\[.*\])?")
_NAMES = re.compile(r"__print_(flags|symbolic)\w*\(\s*\(?\s*REC->(\w+)\s*\)?\s*(&?)")
_OTHERWISE = re.compile(r'\)*\s*:\s*"([^"]*)"')
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[()]')
_PAIR = re.compile(r'\{\s*([^{}"]*?)\s*,\s*"([^"]*)"\s*\}')
_CAST = re.compile(
    r"\(\s*(?:unsigned|signed|[a-z_]\w*_t|u?(?:int|long|char|short)|[us](?:8|16|32|64))(?:\s+\w+)*\s*\)"
)
_SUFFIX = re.compile(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b")
_OCTAL = re.compile(r"\b0+(?=[0-7]+\b)")
_SIZES = (1, 2, 4, 8)
_U64 = (1 << 64) - 1
_ELEMENTS = {
    "char": 1, "u8": 1, "s8": 1, "__u8": 1, "unsigned char": 1, "u16": 2, "__u16": 2, "short": 2,
    "unsigned short": 2, "u32": 4, "__u32": 4, "s32": 4, "int": 4, "unsigned int": 4,
    "u64": 8, "__u64": 8, "s64": 8, "long": 8, "unsigned long": 8,
}  # fmt: skip
_OPERATORS: dict[type[ast.AST], Callable[..., int]] = {
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Invert: operator.invert,
    ast.USub: operator.neg,
}
_LONGEST_SHIFT = 64


class ValueNames(NamedTuple):
    """The names of a field's values; `zero`: the name for no flag."""

    values: tuple[tuple[int, str], ...]
    flags: bool
    zero: str = ""

    def show(self, value: int) -> str:
        """Return `WRITE|SYNC`, `TIMER`; a value without a name is a number."""
        if not self.flags:
            return dict(self.values).get(value, str(value))
        left, names = value & _U64, []
        for bits, name in self.values:
            if bits and left & bits == bits:
                names.append(name)
                left &= ~bits
        if not names and self.zero:
            names.append(self.zero)
        return "|".join([*names, f"{left:#x}"] if left else names) or "0"


class Field(NamedTuple):
    """A field of the record of a tracepoint.

    Attributes:
        name, type: as they are declared.
        offset, size: of the field in the record; where `dynamic`, of the 32 bits that say where.
        signed: of its numbers.
        element: the size of the elements of an array; 0: not an array.
        dynamic: "": the field is here; "abs": 16 bits of length and 16 of offset are, from the
            begin of the record; "rel": from the end of the field (Linux 5.17, commit 55de2c0b5610).
        names: of its values.
    """

    name: str
    type: str
    offset: int
    size: int
    signed: bool
    element: int = 0
    dynamic: str = ""
    names: ValueNames | None = None

    def value(self, record: bytes) -> Value:
        """Return the value in the record; a field behind the end of the record is 0, or missing."""
        offset, size = self.offset, self.size
        if self.dynamic:
            location = int.from_bytes(record[offset : offset + 4], sys.byteorder)
            offset = (location & 0xFFFF) + (offset + 4 if self.dynamic == "rel" else 0)
            size = location >> 16
        data = record[offset : offset + size]
        if self._is_text:
            return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
        if not self.element:
            return self._number(data) if size in _SIZES else data.hex()
        if self.element not in _SIZES:
            return data.hex()
        steps = range(0, len(data) // self.element * self.element, self.element)
        return tuple(self._number(data[at : at + self.element]) for at in steps)

    @property
    def _is_text(self) -> bool:
        return self.element == 1 and self.type.split()[-1] == "char" and "unsigned" not in self.type

    def _number(self, data: bytes) -> int:
        return int.from_bytes(data, sys.byteorder, signed=self.signed)

    def show(self, value: Value) -> str:
        """A value as text."""
        if isinstance(value, tuple):
            return f"[{', '.join(map(str, value))}]"
        if isinstance(value, str):
            return quote(value.encode("utf-8", "surrogateescape")) if self._is_text else value
        if self.names is not None:
            return self.names.show(value)
        return f"{value & _U64:#x}" if "*" in self.type else str(value)


def fields_of(text: str) -> tuple[Field, ...]:
    """The fields of a tracepoint, without those that all have (`common_pid` and its like).

    Args:
        text: of its file `format`.
    """
    declared, _, printed = text.partition("\nprint fmt:")
    names = dict(_names(printed))
    fields = [
        _field(declaration, int(at), int(size), names, signed=signed == "1")
        for declaration, at, size, signed in _FIELD.findall(declared)
    ]
    return tuple(field for field in fields if not field.name.startswith("common_"))


def _field(
    declaration: str, at: int, size: int, names: Mapping[str, ValueNames], *, signed: bool
) -> Field:
    dynamic = ""
    for word, kind in (("__data_loc ", "abs"), ("__rel_data_loc ", "rel")):
        if declaration.startswith(word):
            # `__data_loc char[] filename`
            dynamic, declaration = kind, declaration.removeprefix(word).replace("[]", "", 1)
    match = _DECLARED.fullmatch(declaration)
    kind, name, array = match.groups() if match else (declaration, declaration, None)
    element = 0
    if dynamic:
        element = _ELEMENTS.get(kind, 16)
    elif array:
        count = array[1:-1]
        element = size // int(count) if count.isdecimal() and int(count) else 0
        element = element or _ELEMENTS.get(kind, 16)
    return Field(name, kind, at, size, signed, element, dynamic, names.get(name))


def _names(printed: str) -> Iterator[tuple[str, ValueNames]]:
    for match in _NAMES.finditer(printed):
        kind, name, _ = match.groups()
        end = _end_of_call(printed, printed.index("(", match.start()))
        pairs = [
            (value, text)
            for number, text in _PAIR.findall(printed[match.end() : end])
            if (value := _evaluate(number)) is not None
        ]
        otherwise = _OTHERWISE.match(printed, end) if kind == "flags" else None
        if pairs:
            yield name, ValueNames(tuple(pairs), kind == "flags", otherwise[1] if otherwise else "")


def _end_of_call(text: str, begin: int) -> int:
    """Behind the parenthesis that closes the one at `begin`."""
    depth = 0
    for match in _TOKEN.finditer(text, begin):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    return len(text)


def _evaluate(expression: str) -> int | None:
    """A constant of C: numbers and their operators, casts left out; None: it is another one."""
    text = _SUFFIX.sub(r"\1", _CAST.sub("", expression)).strip()
    text = _OCTAL.sub("0o", text)
    try:
        return _number_of(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _number_of(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_number_of(node.operand))
    if isinstance(node, ast.BinOp):
        sides: Sequence[int] = (_number_of(node.left), _number_of(node.right))
        if type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](*sides)
        if isinstance(node.op, ast.LShift) and 0 <= sides[1] < _LONGEST_SHIFT:
            return sides[0] << sides[1] & _U64
    raise ValueError(ast.dump(node))
