"""Names for dumped C: legal identifiers, and a number behind the second of the same name.

BTF of a kernel has several types called alike, from different files; BTF of other languages has
names that are none in C. Tags and other identifiers have a name space each, as in C. The number is
written as a CO-RE flavour (`name___2`), so that programs compiled with it find `name`.
"""

from __future__ import annotations

import re

from purebpf.btf.types.kinds import Float, Int, Kind
from purebpf.btf.types.parse import Btf

__all__ = ["CNames", "identifier", "is_c_type"]

_KEYWORDS = frozenset(
    [
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "asm",
        "typeof",
        "_Bool",
        "_Complex",
    ]
)
_C_TYPES = frozenset(
    [
        "char",
        "signed char",
        "unsigned char",
        "short",
        "short int",
        "short unsigned int",
        "unsigned short",
        "int",
        "unsigned int",
        "unsigned",
        "long",
        "long int",
        "long unsigned int",
        "unsigned long",
        "long long int",
        "long long",
        "long long unsigned int",
        "unsigned long long",
        "__int128",
        "__int128 unsigned",
        "unsigned __int128",
        "_Bool",
        "float",
        "double",
        "long double",
        "_Float16",
        "__float128",
    ]
)
"""How C spells its own types, in BTF of gcc, clang and pahole."""

_SIZES = {"char": 1, "short": 2, "__int128": 16, "_Bool": 1, "long": 8}
"""Bytes of integers whose names have one of these words, as clang has them for BPF; others: 4."""
_BUILT_IN = {"__builtin_va_list": "__kernel_va_list"}
"""Typedefs that compilers define themselves, and their names in the dump. Clang's own for BPF is a
pointer of 8 bytes, an x86_64 kernel's is an array of 24.
"""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


def is_c_type(number: Int | Float) -> bool:
    """Return True if C calls a number by its name in BTF, and has the same size for it.

    A `long` of a 32-bit kernel has four bytes. Sizes of floating-point types are not looked at.
    """
    if number.name not in _C_TYPES or isinstance(number, Float):
        return number.name in _C_TYPES
    size = next((size for word, size in _SIZES.items() if word in number.name.split()), 4)
    return number.size == size


def identifier(name: str) -> str:
    """Return `name` as a legal C identifier; a legal one is unchanged."""
    legal = _NOT_IN_NAMES.sub("_", name)
    if legal in _KEYWORDS:
        return legal + "_"
    return f"_{legal}" if legal[:1].isdigit() else legal


class CNames:
    """The names of one dump: each type keeps the name that it got first."""

    def __init__(self, btf: Btf) -> None:
        self._btf = btf
        self._given: dict[int, str] = {}
        self._tags: dict[str, int] = {}
        self._others: dict[str, int] = {}

    def tag(self, type_id: int) -> str:
        """Return the tag of a struct, union, enum or forward declaration; "" if it has none."""
        if type_id not in self._given:
            name = identifier(self._btf.name(type_id))
            is_fwd = self._btf.kind(type_id) is Kind.FWD
            if name:
                name = self._forward(type_id, name) if is_fwd else _number_name(self._tags, name)
            self._given[type_id] = name
        return self._given[type_id]

    def _forward(self, type_id: int, name: str) -> str:
        """A forward declaration means the struct of its name, unless only a union has it."""
        forward = self._btf.type(type_id)
        assert forward.kind is Kind.FWD
        here, there = (Kind.UNION, Kind.STRUCT) if forward.is_union else (Kind.STRUCT, Kind.UNION)
        if self._btf.find(forward.name, there, Kind.ENUM) and not self._btf.find(
            forward.name, here
        ):
            return f"{name}___fwd"
        return name

    def typedef(self, type_id: int) -> str:
        """Return the name of a typedef, or of an integer that C cannot name."""
        if type_id not in self._given:
            name = self._btf.name(type_id)
            self._given[type_id] = self.other(_BUILT_IN.get(name, name))
        return self._given[type_id]

    def other(self, name: str) -> str:
        """A new ordinary identifier: an enumerator, function or variable."""
        return _number_name(self._others, identifier(name))


def _number_name(taken: dict[str, int], name: str) -> str:
    count = taken[name] = taken.get(name, 0) + 1
    return name if count == 1 else f"{name}___{count}"
