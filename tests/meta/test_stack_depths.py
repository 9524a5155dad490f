"""The stack that the shipped programs take together with the functions they call.

Verifiers allow 512 bytes, and eight functions. They round each function up to 32 bytes, newer ones
to 16, and leave out code that a configuration switches off: see `check_max_stack_depth()` in the
kernel's source, kernel/bpf/verifier.c.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from purebpf import objects
from purebpf.spec import FunctionSpec, ObjectSpec, RelocationKind

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.stem for path in (ROOT / "purebpf/objects").glob("*.spec"))
MOST_BYTES, MOST_CALLS = 512, 8
ROUNDED = 32

_INSTRUCTION = struct.Struct("<BBhi")
_LOAD, _STORES = 1, (2, 3)
_MOVE, _ADD = 0xBF, 0x07
_FRAME_POINTER = 10
_CALLS = (RelocationKind.CALL, RelocationKind.FUNCTION)


def frame_bytes(function: FunctionSpec) -> int:
    """The bytes of stack that a function reads, writes, or takes the address of."""
    deepest = 0
    copies = dict[int, bool]()  # registers with the frame pointer itself
    for code, registers, offset, number in _INSTRUCTION.iter_unpack(function.code):
        to, source = registers & 15, registers >> 4
        kind = code & 7
        if (kind == _LOAD and source == _FRAME_POINTER) or (
            kind in _STORES and to == _FRAME_POINTER
        ):
            deepest = max(deepest, -offset)
        if code == _ADD and copies.get(to):
            deepest = max(deepest, -number)
        copies[to] = code == _MOVE and source == _FRAME_POINTER
    return deepest


def chains(spec: ObjectSpec, name: str) -> Iterator[tuple[str, int]]:
    """The functions of the chain of calls that takes the most stack, with their rounded sizes."""

    @cache
    def deepest(function_name: str) -> tuple[tuple[str, int], ...]:
        function = spec.functions[function_name]
        called = [deepest(each.target) for each in function.relocations if each.kind in _CALLS]
        size = max(frame_bytes(function), 1)
        own = (function_name, -(-size // ROUNDED) * ROUNDED)
        return own, *max(called, key=lambda chain: sum(size for _, size in chain), default=())

    yield from deepest(name)


def test_size_of_a_frame() -> None:
    """Stores, loads, and addresses that are passed to helpers."""
    code = [(0x7B, 0x1A, -16, 0), (0x61, 0xA2, -4, 0), (0xBF, 0xA2, 0, 0), (0x07, 0x02, 0, -24)]
    packed = [_INSTRUCTION.pack(*each) for each in code]
    sizes = [frame_bytes(FunctionSpec("f", "s", 0, each, "static")) for each in packed]
    assert sizes == [16, 4, 0, 0]
    assert frame_bytes(FunctionSpec("f", "s", 0, b"".join(packed), "static")) == 24


@pytest.mark.parametrize("name", NAMES)
def test_programs_fit_into_the_stack(name: str) -> None:
    spec = objects.spec(name)
    for program in spec.programs.values():
        chain = list(chains(spec, program.function))
        assert sum(size for _, size in chain) <= MOST_BYTES, chain
        assert len(chain) <= MOST_CALLS, chain
