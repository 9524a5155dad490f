"""Frames of PHP read from memory: names and lines, and memory that holds anything else."""

from __future__ import annotations

import itertools
import random

import pytest

from purebpf.runtimes.interpreted import InterpretedStack
from purebpf.runtimes.memory import CachedMemory
from purebpf.runtimes.php.frames import (
    BUILT_IN,
    EVAL,
    MAIN,
    PhpFunctions,
    PhpState,
    read_php_frames,
)
from purebpf.runtimes.php.layout import LAYOUTS, NONE, PhpLayout
from tests.unit.runtimes.php.fake_php import EXECUTOR, FakePhp

LAYOUT = LAYOUTS[420220829]
CLASS_POINTER, CLASS = 0x2000, 0x3000


def frames(php: FakePhp, layout: PhpLayout = LAYOUT, most: int = 100) -> InterpretedStack:
    memory = CachedMemory(php.read)
    state = PhpState(EXECUTOR, CLASS_POINTER)
    return read_php_frames(layout, memory, PhpFunctions(layout, memory), state, most)


def places(stack: InterpretedStack) -> list[tuple[str, str, int]]:
    return [(each.name, each.file, each.line) for each in stack.frames]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=lambda layout: str(layout.version))
def test_names_and_lines_of_each_version(layout: PhpLayout) -> None:
    php = FakePhp(layout)
    main, method = php.function(b"", lines=(1, 9)), php.function(b"run", b"App\\Box", (4, 5))
    sleep = php.function(b"sleep", kind=1)
    evaluated = php.function(b"", lines=(1, 2), kind=4)
    at = php.frame(main, 0, 1, top=True)
    at = php.frame(evaluated, at, 1)
    at = php.frame(method, at, 1)
    php.current(php.frame(sleep, at))
    found = frames(php, layout)
    assert places(found) == [
        ("sleep", BUILT_IN, 0),
        ("App\\Box::run", "/srv/a.php", 5),
        (EVAL, "/srv/a.php", 2),
        (MAIN, "/srv/a.php", 9),
    ]
    assert [each.is_entry for each in found.frames] == [False, False, False, True]
    assert found.problem == ""


def test_nothing_runs() -> None:
    assert frames(FakePhp(LAYOUT)) == InterpretedStack((), "")


def test_the_name_of_an_anonymous_class_ends_at_its_nul() -> None:
    php = FakePhp(LAYOUT)
    php.current(php.frame(php.function(b"go", b"class@anonymous\0/srv/a.php:3$0", (3,)), 0))
    assert places(frames(php)) == [("class@anonymous::go", "/srv/a.php", 3)]


def test_an_instruction_of_something_else_gives_no_line() -> None:
    php = FakePhp(LAYOUT)
    first, other = php.function(b"first", lines=(3,)), php.function(b"other", lines=(7, 8))
    at = php.frame(first, 0)
    php.put(at + LAYOUT.frame_opline, php.opline(other, 1))
    php.current(at)
    assert places(frames(php)) == [("first", "/srv/a.php", 0)]
    php.put(at + LAYOUT.frame_opline, php.opline(first, 0) + 8)
    assert places(frames(php)) == [("first", "/srv/a.php", 0)]


def test_generators_that_delegate_stand_between_the_running_one_and_its_caller() -> None:
    php = FakePhp(LAYOUT)
    php.put(CLASS_POINTER, CLASS)
    main = php.frame(php.function(b"", lines=(1,)), 0, top=True)
    generators = []
    for name in (b"outer", b"middle", b"inner"):
        one = php.room(256)
        php.put(one + LAYOUT.object_class, CLASS)
        php.put(
            one + LAYOUT.generator_frame, php.frame(php.function(name, lines=(2,)), 0, top=True)
        )
        generators.append(one)
    for above, below in itertools.pairwise(generators):
        php.put(above + LAYOUT.generator_parent, below)
    placeholder = php.frame(0, main, this=generators[0])
    php.current(php.frame(php.function(b"inner", lines=(2,)), placeholder, top=True))
    found = frames(php)
    assert [each.name for each in found.frames] == ["inner", "middle", "outer", MAIN]
    assert [each.is_entry for each in found.frames] == [True, False, False, True]
    unknown = LAYOUT._replace(generator_parent=NONE)
    assert [each.name for each in frames(php, unknown).frames] == ["inner", MAIN]
    php.put(generators[2] + LAYOUT.generator_parent, generators[0])  # a cycle
    assert frames(php).problem == "a frame of PHP cannot be read"


def test_cycles_and_long_chains_end() -> None:
    php = FakePhp(LAYOUT)
    function = php.function(b"again", lines=(1,))
    first = php.frame(function, 0)
    php.put(first + LAYOUT.frame_previous, php.frame(function, first))
    php.current(first)
    assert frames(php).problem == "the frames are a cycle"
    at = 0
    for _ in range(300):
        at = php.frame(function, at)
    php.current(at)
    found = frames(php)
    assert (len(found.frames), found.problem) == (100, "more than 100 frames")


@pytest.mark.parametrize("kind", [0, 3, 5, 255])
def test_a_function_of_no_kind_ends_the_frames(kind: int) -> None:
    php = FakePhp(LAYOUT)
    main = php.frame(php.function(b"", lines=(1,)), 0)
    function = php.function(b"f", lines=(1,))
    php.put(function, kind, 1)
    php.current(php.frame(function, main))
    assert frames(php) == InterpretedStack((), "a frame of PHP cannot be read")


@pytest.mark.parametrize(
    ("offset", "value", "size"), [(4, 7, 4), (16, 1 << 40, 8), (16, 1 << 30, 8)]
)
def test_a_name_that_is_no_string_ends_the_frames(offset: int, value: int, size: int) -> None:
    php = FakePhp(LAYOUT)
    function = php.function(b"f", lines=(1,))
    name = int.from_bytes(php.read(function + LAYOUT.function_name, 8), "little")
    php.put(name + offset, value, size)
    php.current(php.frame(function, 0))
    found = frames(php)
    if value == 1 << 30:  # as long as one may be: as much as a name has room for
        assert len(found.frames[0].name) <= 1024
    else:
        assert found == InterpretedStack((), "a frame of PHP cannot be read")


def test_any_memory_ends_in_time_and_in_bounds() -> None:
    generator = random.Random(7)
    for _ in range(300):
        php = FakePhp(LAYOUT)
        php.put(CLASS_POINTER, CLASS)
        functions = [php.function(b"f", b"C", (1, 2)) for _ in range(3)]
        made: list[int] = []
        for _ in range(20):
            previous = generator.choice([0, *made])
            made.append(php.frame(generator.choice([*functions, 0]), previous, this=CLASS))
        php.current(made[-1])
        for _ in range(40):
            at = generator.randrange(0x3000, 0x6000) & -8
            value = generator.choice([0, 1, generator.randrange(0x1000, 0x6000), (1 << 64) - 1])
            php.put(at, value)
        found = frames(php)
        assert len(found.frames) <= 100 + 256
        assert all(len(each.name) < 2100 and len(each.file) <= 4096 for each in found.frames)
