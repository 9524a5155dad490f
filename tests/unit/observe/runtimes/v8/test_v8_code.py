"""The functions of V8's code when BPF meets it first, and words for them."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest

from purebpf.observe.runtimes.hotspot.java_names import JavaCodeNames, JavaRecord, read_record
from purebpf.observe.runtimes.hotspot.java_process import UNKNOWN
from purebpf.observe.runtimes.v8.v8_code import V8Code
from purebpf.observe.runtimes.v8.v8_layout import pack_v8_process
from purebpf.observe.runtimes.v8.v8_process import V8Reading
from purebpf.runtimes.v8.code_ranges import CodeRanges
from purebpf.symbols.frame import Frame, Reason, Unknown
from purebpf.symbols.java_words import JavaWord
from tests.unit.runtimes.v8.fake_v8 import BUILTINS, VERSIONS, golden, unsigned
from tests.unit.runtimes.v8.test_frames import SIZES, Stack, optimised

SCRIPT, HANDLE = 7, 3
NUMBERS = SCRIPT << 32 | HANDLE


def reading(stack: Stack) -> V8Reading:
    """The process of a stack."""
    program: Any = SimpleNamespace(layout=stack.v8.layout, kinds={}, sizes=SIZES)
    memory: Any = SimpleNamespace(read=stack.v8.read)
    return V8Reading(memory, program, stack.v8.ranges())


def record(stack: Stack, pc: int, *, is_interpreted: bool = False) -> JavaRecord:
    return JavaRecord(1, NUMBERS, pc, stack.shared, pc, 0, UNKNOWN, 9, is_interpreted)


def named(names: JavaCodeNames, place: int = 0) -> list[tuple[str, str, int]]:
    answers = names.frames(JavaWord(9, place, is_interpreted=False))
    assert all(isinstance(each, Frame) for each in answers)
    return [(each.name, each.module, each.line) for each in answers if isinstance(each, Frame)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_function_of_the_interpreter_has_the_line_of_each_bytecode(version: int) -> None:
    stack = Stack(version)
    stack.v8.field(stack.shared, stack.v8.layout.shared_data, stack.bytecodes)
    names = JavaCodeNames(lines=True)
    assert names.add(record(stack, 0, is_interpreted=True), reading(stack))
    found = [named(names, place) for place in (0, 2, 3, 500)]
    assert found == [[("handle", "/srv/shop.js", line)] for line in (3, 3, 20, 20)]


@pytest.mark.parametrize("version", VERSIONS)
def test_optimised_code_has_its_inlined_functions(version: int) -> None:
    stack = Stack(version)
    start = optimised(stack, stack.v8.layout.kind_turbofan)
    names = JavaCodeNames(lines=True)
    assert names.add(record(stack, start + 0x38), reading(stack))
    assert named(names) == [("query", "/srv/shop.js", 50), ("handle", "/srv/shop.js", 7)]


@pytest.mark.parametrize("version", VERSIONS)
def test_baseline_code_has_the_line_of_its_bytecode(version: int) -> None:
    stack = Stack(version)
    v8, layout = stack.v8, stack.v8.layout
    v8.field(stack.shared, layout.shared_data, stack.bytecodes)
    table = b"".join(map(unsigned, (64, 10, 20, 30, 10)))
    for deopt, line in ((stack.bytecodes, 20), (v8.bytecode(b"\4"), 0)):  # of another function
        _, start = v8.code(layout.kind_baseline, 400, positions=table, deopt=deopt)
        names = JavaCodeNames(lines=True)
        assert names.add(record(stack, start + 100), reading(stack))
        assert named(names) == [("handle", "/srv/shop.js", line)]


def test_code_of_another_function_counts_no_inlined_ones() -> None:
    stack = Stack()
    start = optimised(stack, stack.v8.layout.kind_turbofan)
    other = record(stack, start + 0x38)._replace(address=SCRIPT << 32 | 4, method=stack.other)
    names = JavaCodeNames(lines=True)
    assert names.add(other, reading(stack))
    assert named(names) == [("query", "/srv/shop.js", 0)]


def test_a_function_that_moved_has_no_name() -> None:
    stack = Stack()
    names = JavaCodeNames(lines=True)
    moved = record(stack, 0, is_interpreted=True)._replace(method=stack.other)
    assert not names.add(moved, reading(stack))
    assert not names.add(moved._replace(method=stack.script), reading(stack))
    assert not names.add(moved, None)
    (answer,) = names.frames(JavaWord(9, 0, is_interpreted=False))
    assert isinstance(answer, Unknown)
    assert answer.reason is Reason.JAVA_UNNAMED
    assert names.unread == 3


def test_a_function_that_is_replaced_while_it_is_read_has_no_name() -> None:
    stack = Stack()
    now = reading(stack)
    now.functions.find(stack.shared)  # known from before
    stack.v8.put_number(stack.shared - 1 + stack.v8.layout.shared_flags + 4, 4, 5)
    assert not JavaCodeNames(lines=True).add(record(stack, 0, is_interpreted=True), now)


def test_other_code_at_the_same_address_takes_the_inlined_functions_away() -> None:
    stack = Stack()
    v8, layout = stack.v8, stack.v8.layout
    start = optimised(stack, layout.kind_turbofan)
    names = JavaCodeNames(lines=True)
    assert names.add(record(stack, start + 0x38), reading(stack))
    names.recheck(lambda _: reading(stack))
    assert len(named(names)) == 2
    code = stack.v8.reader().find(start + 0x38)
    assert code is not None
    deopt = v8.heap().word(code.at, layout.code_deopt)
    v8.field(deopt, 16 + 8 * layout.deopt_optimisation, 77 << 32)
    names.recheck(lambda _: reading(stack))
    assert named(names) == [("handle", "/srv/shop.js", 0)]
    assert names.unread == 1


def test_code_without_a_compilation_is_never_another_one() -> None:
    assert not V8Code((), (), 5).is_other(V8Code(()))
    assert not V8Code((), (), 5).is_other(V8Code((), (), 5))
    assert V8Code((), (), 5).is_other(V8Code((), (), 6))


def test_records_of_a_thread_belong_to_its_process() -> None:
    raw = struct.pack("<7QII", 4711 << 32 | 6 << 1 | 1, NUMBERS, 1, 2, 3, 4, 5, 9, 1)
    assert read_record(raw) == JavaRecord(6, NUMBERS, 1, 2, 3, 4, 5, 9, is_interpreted=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_process_is_packed_with_both_places_of_its_builtins(version: int) -> None:
    once = CodeRanges([], [(BUILTINS, BUILTINS + 64)])
    twice = CodeRanges([], [(BUILTINS, BUILTINS + 64), (BUILTINS + 4096, BUILTINS + 4160)])
    words = struct.Struct("<5Q")
    for ranges, places in ((once, (BUILTINS, BUILTINS)), (twice, (BUILTINS, BUILTINS + 4096))):
        packed = pack_v8_process(golden(version), ranges, 5, 6)
        assert len(packed) == 64
        assert words.unpack_from(packed) == (5, 6, *places, 64)
    nowhere = pack_v8_process(golden(version), CodeRanges([], []), 5, 6)
    assert words.unpack_from(nowhere) == (5, 6, 0, 0, 0)
