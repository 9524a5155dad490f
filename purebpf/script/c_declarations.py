"""C in a script: `#define`, and declarations of structs, unions and enums."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from purebpf.late_pattern import compile_later
from purebpf.script.script_error import ScriptError
from purebpf.script.token_stream import TokenStream
from purebpf.script.types import CHAR, Member, Type, integer, pointer, string

__all__ = ["StructLayout", "read_declaration", "read_define"]

_DEFINE = compile_later(r"#\s*define\s+(\w+)(\()?[ \t]*(.*)", re.DOTALL)
_COMMENT = compile_later(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_FLOATS = {"float": 4, "double": 8}
"""Types that BPF cannot compute with: their members have no value."""
_C_WORDS = ("unsigned", "signed", "long", "short", "int", "char")
Look = Callable[[str], Type | None]
Define = Callable[[str, Type], None]


class StructLayout:
    """The members of a struct that the script declares."""

    def __init__(self) -> None:
        self._members: list[tuple[str, Member]] = []

    def add(self, name: str, member: Member) -> None:
        """Add a member behind the others."""
        self._members.append((name, member))

    def packed(self, *, is_union: bool) -> tuple[StructLayout, int]:
        """Return the layout without padding between members, and its size in bytes."""
        made, size = StructLayout(), 0
        moved: dict[int, int] = {}
        for name, member in self._members:
            shares_bytes = bool(member.bit) and member.offset in moved
            place = 0 if is_union else moved[member.offset] if shares_bytes else size
            moved[member.offset] = place
            made.add(name, Member(place, member.type, member.bit, member.bits))
            size = max(size, place + member.type.size)
        return made, size

    def member(self, name: str) -> Member | None:
        """Return a member by name, also from members without a name."""
        for label, item in self._members:
            if label == name:
                return item
        for label, item in self._members:
            if not label and item.type.layout is not None:
                inner = item.type.layout.member(name)
                if inner is not None:
                    return Member(item.offset + inner.offset, inner.type, inner.bit, inner.bits)
        return None

    def members(self) -> Sequence[tuple[str, Member]]:
        """Return the names and members."""
        return self._members


def read_define(text: str) -> tuple[str, str] | None:
    """Return the name and the text of a macro; None for other lines, and macros with arguments."""
    match = _DEFINE.match(text.replace("\\\n", " "))
    if match is None or match[2]:
        return None
    return match[1], _COMMENT.sub("", match[3]).strip()


def read_declaration(
    text: str, position: int, look: Look, define: Define, constants: dict[str, int]
) -> None:
    """Read one declaration of the script, and `define` its types.

    Raises:
        ScriptError: C that is not understood.
    """
    _Declarations(text, position, look, define, constants).declaration()


class _Declarations(TokenStream):
    def __init__(
        self, text: str, position: int, look: Look, define: Define, constants: dict[str, int]
    ) -> None:
        super().__init__(text, position)
        self._look, self._define, self._constants = look, define, constants

    def declaration(self) -> None:
        if self.accept("typedef"):
            base = self._base()
            name, made, _ = self._declarator(base)
            self._define(name, made)
            return
        self._base()

    def _base(self) -> Type:
        while self.token.text in ("const", "volatile"):
            self.take()
        token = self.token
        word = self.expect_kind("name").text
        if word in ("struct", "union"):
            return self._struct(word)
        if word == "enum":
            return self._enum()
        if word in _FLOATS:
            return Type("none", _FLOATS[word], name=word)
        if word in _C_WORDS:
            words = [word]
            while self.token.text in _C_WORDS:
                words.append(self.take().text)
            word = " ".join(words)
        found = self._look(word)
        if found is None:
            raise ScriptError(f"unknown type {word!r}", token.start, token.end)
        return found

    def _struct(self, word: str) -> Type:
        tag = self.take().text if self.token.kind == "name" else ""
        name = f"{word} {tag}" if tag else f"{word} (anonymous)"
        if not self.is_next("{"):
            return self._look(name) or Type("struct", 0, name=name)
        self.take()
        layout, size, alignment = StructLayout(), 0, 1
        bit = 0
        while not self.accept("}"):
            base = self._base()
            first = True
            while first or self.accept(","):
                first = False
                label, kind, bits = ("", base, 0)
                if not self.is_next(";"):
                    label, kind, bits = self._declarator(base)
                step = min(8, _alignment(kind))
                alignment = max(alignment, step)
                if bits and bit and bit + bits <= 8 * kind.size:
                    layout.add(label, Member(size - kind.size, kind, bit, bits))
                    bit += bits
                    continue
                place = 0 if word == "union" else -(-size // step) * step
                layout.add(label, Member(place, kind, 0, bits))
                bit = bits
                size = max(size, kind.size) if word == "union" else place + kind.size
            if not self.is_next("}"):
                self.expect(";")
        is_packed = False
        while self.token.kind == "name" and self.token.text.startswith("__attribute"):
            is_packed |= "packed" in self._skip_attribute()
        if is_packed:
            layout, size = layout.packed(is_union=word == "union")
            alignment = 1
        size = -(-size // alignment) * alignment
        made = Type("struct", size, name=name, layout=layout, count=alignment)
        if tag:
            self._define(name, made)
        return made

    def _skip_attribute(self) -> list[str]:
        """Read an attribute, and return its words."""
        words = [self.take().text]
        depth = 0
        while self.token.kind != "end":
            words.append(self.take().text)
            depth += {"(": 1, ")": -1}.get(words[-1], 0)
            if depth == 0:
                break
        return words

    def _enum(self) -> Type:
        place = self.token.start
        tag = self.take().text if self.token.kind == "name" else f"#{place}"
        if self.accept(":"):
            self._base()
        made = integer(4, False, f"enum {tag}")
        if not self.is_next("{"):
            return self._look(f"enum {tag}") or made
        self.take()
        value = 0
        while not self.accept("}"):
            name = self.expect_kind("name").text
            if self.accept("="):
                value = self._number()
            self._constants[name] = value
            if tag:
                self._constants[f"enum {tag}.{name}"] = value
            value += 1
            if not self.is_next("}"):
                self.expect(",")
        if tag:
            self._define(f"enum {tag}", made)
        return made

    def _number(self) -> int:
        """Read a constant: numbers, and names of constants, with `+`, `-` and `*` between."""
        total = self._product()
        while self.is_next("+", "-"):
            sign = 1 if self.take().text == "+" else -1
            total += sign * self._product()
        return total

    def _product(self) -> int:
        product = self._factor()
        while self.accept("*"):
            product *= self._factor()
        return product

    def _factor(self) -> int:
        if self.accept("("):
            inner = self._number()
            self.expect(")")
            return inner
        sign = -1 if self.accept("-") else 1
        if self.token.kind == "name" and self.token.text in self._constants:
            return sign * self._constants[self.take().text]
        number = self.expect_kind("number").number
        if self.accept("<<"):
            number <<= min(63, self.expect_kind("number").number)
        return sign * number

    def _declarator(self, base: Type) -> tuple[str, Type, int]:
        """Return the name, the type and the bits of a member."""
        while self.accept("*"):
            target = base
            base = pointer(target.name or "", partial(self._known, target))
            while self.accept("const"):
                pass
        if self.accept("("):
            return self._function_pointer()
        name = self.expect_kind("name").text if self.token.kind == "name" else ""
        counts: list[int] = []
        while self.accept("["):
            counts.append(0 if self.is_next("]") else self._number())
            self.expect("]")
        for count in reversed(counts):
            if base is CHAR or base.name == "char":
                base = string(count)
            else:
                base = Type("array", count * base.size, count=count, items=(base,))
        bits = self._number() if self.accept(":") else 0
        return name, base, bits

    def _known(self, target: Type) -> Type:
        """Return the members of a struct that was only named, such as in itself."""
        if target.kind == "struct" and target.layout is None:
            return self._look(target.name) or target
        return target

    def _function_pointer(self) -> tuple[str, Type, int]:
        self.expect("*")
        name = self.expect_kind("name").text
        self.expect(")")
        self.expect("(")
        depth = 1
        while depth and self.token.kind != "end":
            depth += {"(": 1, ")": -1}.get(self.take().text, 0)
        return name, pointer("void", lambda: Type("void")), 0


def _alignment(kind: Type) -> int:
    if kind.kind == "array":
        return _alignment(kind.target)
    if kind.kind == "struct":
        return kind.count or 8
    return 1 if kind.kind == "string" else max(1, kind.size)


BASIC: Mapping[str, tuple[int, bool]] = {
    "char": (1, True), "short": (2, True), "int": (4, True), "long": (8, True),
    "size_t": (8, False), "ssize_t": (8, True), "pid_t": (4, True), "uid_t": (4, False),
    "gid_t": (4, False), "umode_t": (2, False), "dev_t": (4, False), "loff_t": (8, True),
    "off_t": (8, True), "uintptr_t": (8, False), "intptr_t": (8, True), "__be16": (2, False),
    "__be32": (4, False),
    **{f"{sign}int{8 * size}{tail}": (size, not sign)
       for sign in ("u", "") for size in (1, 2, 4, 8) for tail in ("_t", "")},
    **{f"{under}{sign}{8 * size}": (size, sign == "s")
       for under in ("", "__") for sign in "us" for size in (1, 2, 4, 8)},
}  # fmt: skip
"""Sizes and signs of integer types by name."""
