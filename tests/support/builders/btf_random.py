"""Random kernels: BTF with the names that tests/data/core asks for, in random shapes."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.support.builders.btf_builder import BtfBuilder

_STRUCTS = {
    "thing": ("moved", "widened", "gone", "list", "next", "buried", "tail"),
    "missing": ("x",),
    "deep": ("value", "pointee"),
    "sized": ("widened", "narrowed", "signed_widened", "pointer", "array", "same"),
}
_BITS = ("signed_bits", "bits", "long_bits", "flag", "whole", "wide")
_ENUMS = {
    "color": ("RED", "GREEN", "BLUE", "BLUE___other", "GONE", "PURPLE"),
    "large": ("HUGE", "NEGATIVE", "SMALL"),
}
_ARRAYS = ("list", "tail", "array")
_POINTERS = ("next", "pointee", "pointer")


def random_kernel(seed: int) -> BtfBuilder:
    """Types for the objects of tests/data/core; some are missing, some there several times."""
    return _Kernel(Random(seed)).builder


class _Kernel:
    def __init__(self, random: Random) -> None:
        self.builder = builder = BtfBuilder()
        self.random = random
        self.integers = [
            builder.int("int", 4, signed=True),
            builder.int("unsigned int", 4),
            builder.int("long int", 8, signed=True),
            builder.int("long unsigned int", 8),
            builder.int("short", 2, signed=True),
            builder.int("unsigned char", 1),
            builder.int("_Bool", 1, boolean=True),
        ]
        self.widths = (4, 4, 8, 8, 2, 1, 1)
        if self.chance(0.2):
            self.integers.append(builder.int("old", 4, bits=5, offset=3))
        self.inner = 0
        self.inner = builder.struct("inner", self.members(("first", "second")))
        for name, members in _STRUCTS.items():
            for _ in range(random.choice((0, 1, 1, 1, 1, 2, 3))):
                make = builder.struct if self.chance(0.97) else builder.union
                make(self.flavoured(name), self.members(members))
        for _ in range(random.choice((0, 1, 1, 1, 2))):
            builder.struct(self.flavoured("bits"), self.bit_fields(), size=128)
        if self.chance(0.8):
            builder.typedef("word", self.wrapped(random.choice(self.integers)))
        for name, values in _ENUMS.items():
            for _ in range(random.choice((0, 1, 1, 1, 2))):
                self.enum(self.flavoured(name), values)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def flavoured(self, name: str) -> str:
        return name if self.chance(0.7) else f"{name}___{self.random.randrange(9)}"

    def wrapped(self, type_id: int) -> int:
        """The type behind some qualifiers and typedefs."""
        builder = self.builder
        while self.chance(0.3):
            wrap = self.random.choice(("const", "volatile", "typedef"))
            if wrap == "typedef":
                type_id = builder.typedef("alias", type_id)
            else:
                type_id = getattr(builder, wrap)(type_id)
        return type_id

    def member_type(self, name: str) -> int:
        """Mostly what the local type has, sometimes something else."""
        builder, random = self.builder, self.random
        if name in _ARRAYS:
            elements = self.integers if name == "array" else [self.inner, *self.integers]
            return self.wrapped(
                builder.array(self.wrapped(random.choice(elements)), random.randrange(6))
            )
        if (name in _POINTERS) != self.chance(0.1):
            target = random.choice((0, self.inner)) if self.chance(0.7) else builder.fwd("inner")
            return self.wrapped(builder.ptr(target))
        if self.chance(0.1):
            return builder.enum(random.choice(("", "color")), {"OTHER": 1})
        return self.wrapped(random.choice(self.integers))

    def members(self, names: Sequence[str], depth: int = 0) -> list[tuple]:
        """Those names in random order, some left out, some inside nameless structs."""
        members: list[tuple] = []
        for name in self.random.sample(names, len(names)):
            if self.chance(0.12):
                continue
            if self.chance(0.3):
                members.append((f"pad{len(members)}", self.random.choice(self.integers)))
            if self.chance(0.2) and depth < 3:
                make = self.builder.struct if self.chance(0.6) else self.builder.union
                members.append(("", self.wrapped(make("", self.members([name], depth + 1)))))
            else:
                members.append((name, self.member_type(name)))
        return members

    def bit_fields(self) -> list[tuple]:
        """Bit fields and whole fields, most of them within a unit of their type."""
        members: list[tuple] = []
        at = self.random.randrange(40)
        for name in self.random.sample(_BITS, len(_BITS)):
            which = self.random.randrange(6)
            unit = 8 * self.widths[which]
            bits = self.random.randrange(1, unit + 1)
            if self.chance(0.4):
                at, bits = -(-at // 8) * 8, 0
            elif at % unit + bits > unit and self.chance(0.9):
                at = -(-at // unit) * unit
            members.append((name, self.integers[which], at, bits))
            at += (bits or unit) + self.random.randrange(9)
        return members

    def enum(self, name: str, values: Sequence[str]) -> None:
        chosen = self.random.sample(values, self.random.randrange(1, len(values)))
        make = self.builder.enum if self.chance(0.5) else self.builder.enum64
        make(name, {value: self.random.randrange(-9, 99) for value in chosen})
