"""Random filters and samples, and a machine that runs the code of filters."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from purebpf.abi.helpers import bpf_func_id
from purebpf.abi.instruction import Instruction
from purebpf.filter.fields import CONSTANTS, FIELDS, Field, Kind
from purebpf.filter.sample_layout import Cast, SampleAccess, Word
from purebpf.filter.syntax import And, Comparison, Expression, Membership, Not, Or, Range, Value

TOP = (1 << 64) - 1
_COMPARISONS = ("==", "!=", ">", ">=", "<", "<=", "&")
EDGES = (0, 1, 2, 3, 7, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, 1 << 63, TOP - 1, TOP)

numbers = st.one_of(st.sampled_from(EDGES), st.integers(0, 8), st.integers(0, TOP))
"""Numbers of 64 bits, mostly those where something may go wrong."""


def _number(field: Field) -> st.SearchStrategy[Value]:
    plain = numbers.flatmap(
        lambda number: st.sampled_from([Value(str(number), number), Value(hex(number), number)])
    )
    constants = CONSTANTS.get(field.name)
    if constants is None:
        return plain
    return st.one_of(plain, st.sampled_from([Value(*each) for each in constants.items()]))


def _comparison(field: Field) -> st.SearchStrategy[Expression]:
    operators = st.sampled_from(_COMPARISONS)
    return st.builds(Comparison, st.just(field.name), operators, _number(field))


def _range(field: Field) -> st.SearchStrategy[Range]:
    pairs = st.tuples(_number(field), _number(field)).map(
        lambda pair: Range(*sorted(pair, key=lambda value: value.number or 0))
    )
    return st.one_of(_number(field).map(Range), pairs)


def _membership(field: Field) -> st.SearchStrategy[Expression]:
    ranges = st.lists(_range(field), min_size=1, max_size=9).map(tuple)
    return st.builds(Membership, st.just(field.name), ranges)


_NUMERIC = [field for field in FIELDS.values() if field.kind is Kind.NUMBER]
_numeric = st.sampled_from(_NUMERIC).flatmap(lambda f: st.one_of(_comparison(f), _membership(f)))

_words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=15).filter(
    lambda word: len(word.encode()) <= 15
)
_named = st.builds(
    Comparison,
    st.sampled_from(["comm", "symbol", "cgroup"]),
    st.sampled_from(["==", "!="]),
    st.builds(Value, _words),
)
_subtrees = st.builds(Comparison, st.just("cgroup"), st.just("under"), st.builds(Value, _words))


def _trees(leaves: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def bigger(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(parts, min_size=2, max_size=4).map(tuple)
        return st.one_of(st.builds(And, several), st.builds(Or, several), st.builds(Not, parts))

    return st.recursive(leaves, bigger, max_leaves=12)


expressions = _trees(st.one_of(_numeric, _named, _subtrees))
"""Trees of every kind, with names that stand for nothing."""

numeric_expressions = _trees(_numeric)
"""Trees that ask about numbers only."""

WORDS = tuple(dict.fromkeys((field.word, field.size) for field in _NUMERIC))
"""Every word of a sample, and its size."""

ACCESS = SampleAccess(
    Cast(99, 8), {word: Word(8 * place, size) for place, (word, size) in enumerate(WORDS)}
)
"""A kernel with every word in its samples."""

samples = st.fixed_dictionaries(
    {word: numbers.map(lambda n, size=size: n & (1 << 8 * size) - 1) for word, size in WORDS}
)
"""The words of a sample."""

_SAMPLE, _KERNEL_CONTEXT, _COUNTERS, _STACK = 1 << 40, 2 << 40, 3 << 40, 4 << 40
_CONDITIONS = {
    0x10: lambda a, b: a == b,
    0x20: lambda a, b: a > b,
    0x30: lambda a, b: a >= b,
    0x40: lambda a, b: a & b,
    0x50: lambda a, b: a != b,
    0xA0: lambda a, b: a < b,
    0xB0: lambda a, b: a <= b,
}
_OPERATIONS = {
    0x00: lambda a, b: a + b,
    0x20: lambda a, b: a * b,
    0x40: lambda a, b: a | b,
    0x50: lambda a, b: a & b,
    0x60: lambda a, b: a << b,
    0x70: lambda a, b: a >> b,
    0xB0: lambda a, b: b,
}
_SIZES = {0x71: 1, 0x69: 2, 0x61: 4, 0x79: 8}


class Machine:
    """Runs a filter program on CPU 0 as RFC 9669 says, with a sample and counters as its memory.

    What its stack holds before the program has written there is chance: not 0. The helper that
    tells the thread's name writes no more than the name and a NUL, as that of Linux 6.1.

    Attributes:
        counters: the bytes that the program counts in.
    """

    def __init__(self, words: Mapping[str, int], counters: int, comm: bytes = b"") -> None:
        sample = bytearray(8 * len(WORDS))
        for place, (word, _) in enumerate(WORDS):
            struct.pack_into("<Q", sample, 8 * place, words[word])
        context = bytearray(struct.pack("<QQ", 0, _SAMPLE))
        self.counters = bytearray(counters)
        self._regions = {
            _SAMPLE: sample,
            _KERNEL_CONTEXT: context,
            _COUNTERS: self.counters,
            _STACK: bytearray(b"\xee" * 512),
        }
        self._comm = comm + b"\0"

    def run(self, code: Sequence[Instruction]) -> int:
        """What the program returns."""
        registers = [0] * 10 + [_STACK + 512]
        at = 0
        while True:
            opcode, dst, src, offset, imm = code[at]
            at += 1
            if opcode == 0x95:
                return registers[0]
            if opcode == 0x85:
                if (src, imm) == (0, bpf_func_id.BPF_FUNC_get_current_comm):
                    region, place = self._place(registers[1])
                    region[place : place + len(self._comm)] = self._comm
                registers[0] = _KERNEL_CONTEXT if src == 2 else 0
                registers[1:6] = [0xDEAD] * 5
            elif opcode == 0x18:
                value = (imm & 0xFFFFFFFF) | (code[at].imm & 0xFFFFFFFF) << 32
                registers[dst] = _COUNTERS if src == 2 else value
                at += 1
            elif opcode in _SIZES:
                registers[dst] = self._load(registers[src] + offset, _SIZES[opcode])
            elif opcode == 0x7B:
                region, place = self._place(registers[dst] + offset)
                struct.pack_into("<Q", region, place, registers[src])
            else:
                operand = registers[src] if opcode & 8 else imm & TOP
                if opcode & 7 == 7:
                    result = _OPERATIONS[opcode & 0xF0](registers[dst], operand)
                    registers[dst] = result & TOP
                elif opcode == 0x05 or _CONDITIONS[opcode & 0xF0](registers[dst], operand):
                    at += offset

    def _load(self, address: int, size: int) -> int:
        region, place = self._place(address)
        return int.from_bytes(region[place : place + size], "little")

    def _place(self, address: int) -> tuple[bytearray, int]:
        base = address >> 40 << 40
        return self._regions[base], address - base


def as_sample(words: Mapping[str, int]) -> Any:
    """A decoded sample with these words."""
    from purebpf.filter.evaluate import _ATTRIBUTES
    from purebpf.wire.perf_records import Sample

    return Sample(0, **{_ATTRIBUTES.get(word, word): value for word, value in words.items()})
