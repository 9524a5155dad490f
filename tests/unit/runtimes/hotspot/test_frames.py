"""Frames that are left by their form, and frames that are not what they should be."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.runtimes.hotspot.code_cache import CodeCache
from purebpf.runtimes.hotspot.frames import JavaFrame, JavaFrames
from purebpf.runtimes.hotspot.inlined import InlinedMethods
from purebpf.runtimes.hotspot.layout import read_jvm
from purebpf.runtimes.hotspot.methods import Methods
from purebpf.runtimes.memory import Memory
from purebpf.unwind.address_space import AddressSpace, CodeMapping
from purebpf.unwind.machine import X86_64
from purebpf.unwind.reason import Reason
from purebpf.unwind.unwinder import Unwinder, Unwound
from tests.unit.runtimes.hotspot.fake_jvm import BASE, LOW, VERSIONS, FakeJvm, Tables, packed

OUTER, INNER, LEAF = BASE + 0x70000, BASE + 0x72000, BASE + 0x74000
SP = 0x7FFC_0000_0000
NATIVE = 0x5555_0000_0000
"""A page of a program without rules; its frames are left by the frame pointer."""
LINES = {OUTER: 30, INNER: 20, LEAF: 10}


class Jvm(FakeJvm):
    """A JVM with three methods: `outer` is interpreted; `inner`, compiled, has inlined `leaf`."""

    def __init__(self, version: int = 17) -> None:
        super().__init__(version)
        least = self.layout.least_byte
        for at, name in ((OUTER, "outer"), (INNER, "inner"), (LEAF, "leaf")):
            lines = b"\xff" + packed(least, 0, 2 * LINES[at]) + bytes([6 << 3 | 1, 0])
            self.method(at, name, lines)
        # scopes: inner at bytecode 7 at offset 1; leaf at bytecode 3, called by it, behind that
        scopes = b"\0" + packed(least, 0, 1, 8)
        first = len(scopes)
        scopes += packed(least, 1, 2, 4)
        tables = Tables([(-1, 0), (0x20, 1), (0x40, first), (0x7FFFFFFF, 0)], scopes, (INNER, LEAF))
        self.interpreter = self.blob(LOW, 0x1000, "Interpreter", 0) + 0x100
        self.code = self.compiled(LOW + 0x2000, INNER, 77, tables)
        self.stub = self.blob(LOW + 0x3000, 0x400, "StubRoutines (1)", 0) + 0x20
        self.describe()

    def walk(self, stack: list[int], fp: int, registers: tuple[int, ...] = ()) -> Walk:
        memory = Memory(self.read)
        cache = CodeCache(memory, read_jvm(memory, self.symbols))
        methods, inlined = Methods(memory, self.layout), InlinedMethods(memory, self.layout)
        frames = JavaFrames(cache, methods, inlined, memory)
        code = [CodeMapping(NATIVE, NATIVE + 4096, 0, None)]
        code.append(CodeMapping(LOW, LOW + 0x10000, 0, None))
        unwinder = Unwinder(X86_64, AddressSpace(code), lambda _: None)
        values: list[int | None] = [0] * 16
        values[X86_64.sp], values[X86_64.fp] = SP, SP
        raw = struct.pack(f"<{len(stack) + 2}Q", fp % 2**64, *(each % 2**64 for each in stack), 0)
        return Walk(unwinder.unwind(NATIVE + 1, values, raw, frames), frames)


class Walk:
    def __init__(self, trace: Unwound, frames: JavaFrames) -> None:
        self.trace, self.java = trace, frames
        self.names = [frame for at in sorted(frames.found) for frame in frames.found[at]]


def java(name: str, line: int, *, inlined: bool = False) -> JavaFrame:
    return JavaFrame(f"shop.Orders.{name}", "Orders.java", line, True, inlined)


def stack_of(
    jvm: Jvm, *, method: int = OUTER, bytecode: int | None = None
) -> tuple[list[int], int]:
    """The words from SP + 8 up: native -> compiled -> interpreted -> call stub -> native."""
    top = SP + 16  # of the compiled frame, which has 4 words
    fp = SP + 48 + 80  # of the interpreted one
    stub_fp = fp + 16 + 32
    if bytecode is None:
        bytecode = jvm.bytecodes(OUTER) + 9
    words = [jvm.code + 0x40, 0, 0, fp, jvm.interpreter]
    assert SP + 8 + 8 * len(words) == top + 32
    words += [0] * ((fp - 80 - (top + 32)) // 8)
    # fp-80 .. fp-8: ..., bytecode at -8, method at -3, sender's sp at -1
    words += [0, 0, bytecode, 0, 0, 0, 0, method, 0, fp + 16]
    words += [stub_fp, jvm.stub, 0, 0, 0, 0]
    words += [0, NATIVE + 9]
    return words, top


@pytest.mark.parametrize("version", VERSIONS)
def test_inlined_compiled_interpreted_and_stub_frames(version: int) -> None:
    jvm = Jvm(version)
    walk = jvm.walk(*stack_of(jvm))
    stub = JavaFrame("StubRoutines (1)", "", 0, is_method=False)
    compiled = [java("leaf", 10, inlined=True), java("inner", 21)]
    assert walk.names == [*compiled, java("outer", 31), stub]
    assert walk.java.problem == ""
    assert walk.trace.frames[-1] == NATIVE + 9


def test_a_deoptimised_frame_returns_elsewhere() -> None:
    jvm = Jvm()
    words, fp = stack_of(jvm)
    words[0], words[2] = jvm.code + 0x300, jvm.code + 0x40
    assert [frame.name for frame in jvm.walk(words, fp).names[:2]] == [
        "shop.Orders.leaf",
        "shop.Orders.inner",
    ]
    words[2] = NATIVE
    assert "return address" in jvm.walk(words, fp).java.problem


@pytest.mark.parametrize("offset", [-1, 40, 1 << 40])
def test_a_bytecode_of_another_method_cuts_the_stack(offset: int) -> None:
    jvm = Jvm()
    words, fp = stack_of(jvm, bytecode=jvm.bytecodes(OUTER) + offset)
    walk = jvm.walk(words, fp)
    assert [frame.name for frame in walk.names] == ["shop.Orders.leaf", "shop.Orders.inner"]
    assert "bytecode" in walk.java.problem
    assert not walk.trace.reason.is_whole


def test_code_that_was_freed_has_no_false_name() -> None:
    """Another compilation takes the place after the blob was read."""
    jvm = Jvm()
    memory = Memory(jvm.read)
    cache = CodeCache(memory, read_jvm(memory, jvm.symbols))
    blob = cache.find(jvm.code + 0x40)
    assert blob is not None
    jvm.put_number(blob.at + jvm.layout.nmethod_id, 4, 78)
    methods, inlined = Methods(memory, jvm.layout), InlinedMethods(memory, jvm.layout)
    frames = JavaFrames(cache, methods, inlined, memory)
    assert [frame.name for frame in frames._name_compiled(blob, jvm.code + 0x40)] == [
        "[unknown Java method]"
    ]
    assert "freed" in frames.problem


def test_between_two_entries_the_next_one_counts() -> None:
    jvm = Jvm()
    memory = Memory(jvm.read)
    blob = CodeCache(memory, read_jvm(memory, jvm.symbols)).find(jvm.code + 0x20)
    assert blob is not None
    inlined = InlinedMethods(memory, jvm.layout)
    for at, names in ((0x40, 2), (0x21, 2), (0x20, 1), (0x05, 1)):
        assert len(inlined.find(blob, jvm.code + at)) == names


@pytest.mark.parametrize("at", [0x21, 0x05])
def test_a_return_address_behind_no_call_cuts_the_stack(at: int) -> None:
    """Other code has taken the place of the compilation that was called."""
    jvm = Jvm()
    words, fp = stack_of(jvm)
    words[0] = jvm.code + at
    walk = jvm.walk(words, fp)
    assert "return address" in walk.java.problem
    assert not walk.trace.reason.is_whole


@pytest.mark.parametrize("scopes", [b"\0\2\1\4" * 9, b"\xff" * 40, b"", b"\0\0\0\0"])
def test_scopes_that_lead_nowhere_name_the_method_itself(scopes: bytes) -> None:
    jvm = Jvm()
    tables = Tables([(0x40, 1)], scopes, (INNER,))
    jvm.code = jvm.compiled(LOW + 0x2000, INNER, 77, tables)
    words, fp = stack_of(jvm)
    assert jvm.walk(words, fp).names[0].name == "shop.Orders.inner"


def test_a_frame_below_its_callee_is_not_followed() -> None:
    jvm = Jvm()
    words, fp = stack_of(jvm)
    at = words.index(SP + 48 + 80 + 16)
    words[at] = SP
    assert jvm.walk(words, fp).trace.reason is Reason.NO_UNWIND_INFO


def test_code_that_is_interrupted_is_not_guessed_at() -> None:
    jvm = Jvm()
    memory = Memory(jvm.read)
    cache = CodeCache(memory, read_jvm(memory, jvm.symbols))
    methods, inlined = Methods(memory, jvm.layout), InlinedMethods(memory, jvm.layout)
    frames = JavaFrames(cache, methods, inlined, memory)
    unwinder = Unwinder(X86_64, AddressSpace([]), lambda _: None)
    values: list[int | None] = [0] * 16
    values[X86_64.sp] = SP
    trace = unwinder.unwind(jvm.code + 0x40, values, bytes(256), frames)
    assert (trace.frames, trace.reason) == ([jvm.code + 0x40], Reason.NO_UNWIND_INFO)
    assert frames.problem == "interrupted in nmethod"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 7)), max_size=12))
def test_any_stack_ends(changes: list[tuple[int, int]]) -> None:
    jvm = Jvm()
    words, fp = stack_of(jvm)
    choices = [0, SP, SP + 64, SP + 4096, jvm.code + 0x40, jvm.interpreter, jvm.stub, OUTER]
    for at, choice in changes:
        words[at % len(words)] = choices[choice]
    walk = jvm.walk(words, fp)
    assert len(walk.trace.frames) <= len(words) + 2
