"""Frames of Ruby read from memory: names and lines, and memory that holds anything else."""

from __future__ import annotations

import random

import pytest

from purebpf.runtimes.interpreted import InterpretedStack
from purebpf.runtimes.memory import CachedMemory, UnreadableError
from purebpf.runtimes.ruby.frames import (
    BUILT_IN,
    UNKNOWN_METHOD,
    RubyFunctions,
    first_instruction,
    read_ruby_frames,
)
from purebpf.runtimes.ruby.layout import LAYOUTS, RubyLayout
from tests.unit.runtimes.ruby.fake_ruby import CONTEXT, SYMBOLS, THREAD, FakeRuby

LAYOUT = LAYOUTS[3, 3]
UNREADABLE = "a frame of Ruby cannot be read"


def frames(ruby: FakeRuby, symbols: int = SYMBOLS, most: int = 100) -> InterpretedStack | None:
    memory = CachedMemory(ruby.read)
    functions = RubyFunctions(ruby.layout, memory, symbols)
    return read_ruby_frames(ruby.layout, memory, functions, CONTEXT, most)


def places(ruby: FakeRuby) -> list[tuple[str, str, int]]:
    stack = frames(ruby)
    assert stack is not None
    return [(each.name, each.file, each.line) for each in stack.frames]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=lambda layout: str(layout.version))
def test_names_and_lines_of_each_version(layout: RubyLayout) -> None:
    ruby = FakeRuby(layout)
    ruby.frame(ruby.code(b"<main>", {0: 7}), 5)
    ruby.frame(0, method=ruby.method(b"each", 0xF20))
    block = ruby.code(b"block in <main>", {0: 8, 4: 9, 20: 12}, real=False)
    ruby.frame(block, 5, entry=True)
    ruby.frame(0, method=ruby.method(b"+", 43, shared=True))
    assert places(ruby) == [
        ("+", BUILT_IN, 0),
        ("block in <main>", "/srv/a.rb", 9),
        ("each", BUILT_IN, 0),
        ("<main>", "/srv/a.rb", 7),
    ]
    stack = frames(ruby)
    assert stack is not None
    assert [each.is_entry for each in stack.frames] == [False, True, False, True]
    assert stack.problem == ""


def test_every_instruction_of_long_code_has_its_line() -> None:
    generator = random.Random(5)
    positions = [0, *sorted(generator.sample(range(1, 1500), 400))]
    lines = {position: 10 + number for number, position in enumerate(positions)}
    ruby = FakeRuby(LAYOUT)
    code = ruby.code(b"long", lines, 1500)
    memory = CachedMemory(ruby.read)
    functions = RubyFunctions(LAYOUT, memory, 0)
    known = functions.code(code)
    assert known is not None
    line = 10
    for position in range(1500):
        line = lines.get(position, line)
        assert functions.line(known, known.start + 8 * (position + 1)) == line
    assert functions.line(known, known.start) == 10
    assert functions.line(known, known.start + 4) == 0
    assert functions.line(known, known.start - 8) == 0
    assert functions.line(known, known.start + 8 * 1501) == 0


def test_code_without_lines_has_none() -> None:
    ruby = FakeRuby(LAYOUT)
    ruby.frame(ruby.code(b"f", {}), 3)
    assert places(ruby) == [("f", "/srv/a.rb", 0)]


def test_frames_of_no_function_are_left_out() -> None:
    ruby = FakeRuby(LAYOUT)
    ruby.frame(ruby.code(b"<main>", {0: 7}), 5)
    function = ruby.room(40)
    ruby.put(function, 0x1A | 4 << 12)  # of C, in place of a block
    ruby.frame(function, 0)
    ruby.frame(ruby.code(b"pushed", {0: 7}), 0)
    assert [name for name, _, _ in places(ruby)] == ["<main>"]


def test_without_the_table_of_names_methods_of_c_are_all_the_same() -> None:
    ruby = FakeRuby(LAYOUT)
    ruby.frame(0, method=ruby.method(b"each", 0xF10))
    stack = frames(ruby, symbols=0)
    assert stack is not None
    assert [each.name for each in stack.frames] == [UNKNOWN_METHOD]


def test_nothing_runs() -> None:
    assert frames(FakeRuby(LAYOUT)) == InterpretedStack((), "")


def test_a_context_of_another_thread_has_no_frames() -> None:
    ruby = FakeRuby(LAYOUT)
    ruby.put(THREAD + LAYOUT.thread_context, 0x1300)
    assert frames(ruby) is None
    ruby.put(CONTEXT + LAYOUT.context_thread, 0)
    assert frames(ruby) is None


@pytest.mark.parametrize("value", [0, 0x7000, 0x8004, 0x1F000, (1 << 64) - 8])
def test_an_innermost_frame_outside_of_its_memory_is_none(value: int) -> None:
    ruby = FakeRuby(LAYOUT)
    ruby.frame(ruby.code(b"f", {0: 1}))
    ruby.put(CONTEXT + LAYOUT.context_frame, value)
    assert frames(ruby) is None


def test_long_stacks_end() -> None:
    ruby = FakeRuby(LAYOUT)
    code = ruby.code(b"again", {0: 1})
    for _ in range(120):
        ruby.frame(code)
    stack = frames(ruby)
    assert stack is not None
    assert (len(stack.frames), stack.problem) == (100, "more than 100 frames")


@pytest.mark.parametrize("flags", [0, 5, 0x1A, 0x1A | 6 << 12, (1 << 64) - 1])
def test_code_and_methods_that_are_none_end_the_frames(flags: int) -> None:
    ruby = FakeRuby(LAYOUT)
    ruby.frame(ruby.code(b"<main>", {0: 1}))
    code, method = ruby.code(b"f", {0: 1}), ruby.method(b"each", 0xF10)
    if flags & 0x1F == 0x1A:  # functions of C in place of code have no name
        ruby.put(method, flags & ~(6 << 12))
        ruby.frame(0, method=method)
    else:
        ruby.put(code, flags)
        ruby.frame(code)
    assert frames(ruby) == InterpretedStack((), UNREADABLE)


@pytest.mark.parametrize(("offset", "value"), [(0, 7), (16, 1 << 40), (24, 0)])
def test_a_name_that_is_no_string_ends_the_frames(offset: int, value: int) -> None:
    ruby = FakeRuby(LAYOUT)
    code = ruby.code(b"f", {0: 1})
    body = int.from_bytes(ruby.read(code + LAYOUT.iseq_body, 8), "little")
    label = int.from_bytes(ruby.read(body + LAYOUT.body_label, 8), "little")
    ruby.put(label + offset, value)
    ruby.frame(code)
    assert frames(ruby) == InterpretedStack((), UNREADABLE)


@pytest.mark.parametrize("number", [0, 501 << 4, 1 << 60])
def test_a_number_without_a_name_ends_the_frames(number: int) -> None:
    ruby = FakeRuby(LAYOUT)
    method = ruby.method(b"each", 0xF10)
    definition = int.from_bytes(ruby.read(method + LAYOUT.entry_definition, 8), "little")
    ruby.put(definition + LAYOUT.definition_id, number)
    ruby.frame(0, method=method)
    assert frames(ruby) == InterpretedStack((), UNREADABLE)


def test_the_first_instruction_is_that_of_code() -> None:
    ruby = FakeRuby(LAYOUT)
    code = ruby.code(b"<main>", {0: 1})
    memory = CachedMemory(ruby.read)
    with pytest.raises(UnreadableError):
        first_instruction(LAYOUT, memory, CONTEXT)
    body = int.from_bytes(ruby.read(code + LAYOUT.iseq_body, 8), "little")
    ruby.put(int.from_bytes(ruby.read(body + LAYOUT.body_code, 8), "little"), 0x1234)
    ruby.frame(code)
    ruby.frame(0, method=ruby.method(b"each", 0xF10))
    assert first_instruction(LAYOUT, CachedMemory(ruby.read), CONTEXT) == 0x1234


def test_any_memory_ends_in_time_and_in_bounds() -> None:
    generator = random.Random(7)
    for _ in range(300):
        ruby = FakeRuby(generator.choice(list(LAYOUTS.values())))
        codes = [ruby.code(b"f", {0: 1, 2: 3}) for _ in range(3)]
        method = ruby.method(b"each", 0xF10)
        for _ in range(20):
            code = generator.choice([*codes, 0])
            ruby.frame(code, generator.randrange(40), method=method)
        for _ in range(40):
            at = generator.randrange(0x1000, 0xC000) & -8
            value = generator.choice([0, 1, generator.randrange(0x1000, 0xC000), (1 << 64) - 1])
            ruby.put(at, value)
        stack = frames(ruby)
        if stack is not None:
            assert len(stack.frames) <= 100
            assert all(len(each.name) <= 1024 and len(each.file) <= 4096 for each in stack.frames)
