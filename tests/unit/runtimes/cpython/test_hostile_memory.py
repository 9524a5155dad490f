"""A process may hold anything where CPython keeps its frames: reading it ends, with a reason."""

from __future__ import annotations

import random
import struct
import time

import pytest

from purebpf.runtimes.cpython.code_objects import CodeObjects, decode_string, read_string
from purebpf.runtimes.cpython.debug_offsets import HEADER_SIZE, read_debug_offsets
from purebpf.runtimes.cpython.frames import read_frames
from purebpf.runtimes.cpython.layouts import LAYOUTS
from purebpf.runtimes.cpython.objects import Objects
from purebpf.runtimes.cpython.task_layouts import TASK_LAYOUTS
from purebpf.runtimes.cpython.tasks import read_tasks
from purebpf.runtimes.cpython.threads import Interpreter, ThreadState, read_interpreters
from purebpf.runtimes.memory import CachedMemory, Memory, UnreadableError

_BASE = 0x10000
_SIZE = 1 << 16


class Process:
    """A piece of memory that a test fills."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content.ljust(_SIZE, b"\0"))

    def read(self, address: int, size: int) -> bytes:
        at = address - _BASE
        return bytes(self.content[at : at + size]) if 0 <= at < _SIZE else b""

    def put(self, address: int, *words: int) -> None:
        struct.pack_into(f"<{len(words)}Q", self.content, address - _BASE, *words)


@pytest.mark.parametrize("version", sorted(LAYOUTS))
def test_random_memory_ends_in_reasons(version: tuple[int, int]) -> None:
    layout = LAYOUTS[version]
    for seed in range(20):
        source = random.Random(seed)  # noqa: S311
        process = Process()
        for at in range(0, _SIZE, 8):  # mostly pointers into itself
            process.put(_BASE + at, _BASE + source.randrange(0, _SIZE, 8))
        memory = CachedMemory(process.read)
        codes = CodeObjects(version, layout, memory)
        read_interpreters(layout, memory, _BASE)
        assert read_frames(version, layout, memory, codes, _BASE).problem


@pytest.mark.parametrize("version", sorted(TASK_LAYOUTS))
def test_tasks_in_random_memory_end(version: tuple[int, int]) -> None:
    layouts = LAYOUTS[version], TASK_LAYOUTS[version]
    if version >= (3, 14):  # what _asyncio says of itself
        names = ("task_name", "task_coroutine", "task_node", "awaited_by", "awaited_by_is_set")
        places = dict(zip(names, range(16, 96, 8), strict=False))
        layouts = layouts[0], layouts[1]._replace(**places, thread_tasks=8, interpreter_tasks=16)
    thread = ThreadState(_BASE + 64, 0, 0)
    for seed in range(20):
        source = random.Random(seed)  # noqa: S311
        process = Process()
        for at in range(0, _SIZE, 8):  # mostly pointers into itself, some numbers
            far = source.choice((source.randrange(0, _SIZE, 8), -_BASE + source.randrange(64)))
            process.put(_BASE + at, _BASE + far)
        memory = CachedMemory(process.read)
        codes = CodeObjects(version, layouts[0], memory)
        interpreters = [Interpreter(0, (thread,), None, _BASE + 128)]
        for task in read_tasks(version, layouts, memory, codes, interpreters):
            assert task.problem or not task.frames


@pytest.mark.parametrize("version", sorted(TASK_LAYOUTS))
def test_containers_that_lie_about_their_size_are_refused(version: tuple[int, int]) -> None:
    process = Process()
    process.put(_BASE, *[1 << 62] * 1024)
    process.put(_BASE + 0x4000 + 32, _BASE)  # of a dict: its keys; of a set: its mask
    objects = Objects(version, LAYOUTS[version], Memory(process.read), 256)
    for read in (objects.list_items, objects.set_items, objects.number):
        with pytest.raises(UnreadableError):
            read(_BASE)
    with pytest.raises(UnreadableError):
        list(objects.dict_items(_BASE + 0x4000))


@pytest.mark.parametrize("one_string", [False, True])
@pytest.mark.parametrize("version", [(3, 8), (3, 11), (3, 12), (3, 14)])
def test_frames_that_call_themselves_end(version: tuple[int, int], *, one_string: bool) -> None:
    layout = LAYOUTS[version]
    process, frame, code = Process(), _BASE + 0x1000, _BASE + 0x2000
    kind, name, text, table = _BASE + 0x3000, _BASE + 0x3800, _BASE + 0x3200, _BASE + 0x3300
    path = _BASE + 0x3400
    thread = _BASE + 0x100
    process.put(thread + layout.frame, frame if layout.current < 0 else thread)
    if layout.current >= 0:
        process.put(thread + layout.current, frame)
    tag = version >= (3, 14)  # of a _PyStackRef
    process.put(frame + layout.frame_code, code + tag)
    process.put(frame + layout.frame_previous, frame)
    process.put(code + 8, kind)
    process.put(kind + layout.type_name, name)
    process.content[name - _BASE : name - _BASE + 5] = b"code\0"
    for field in (layout.code_name, layout.code_qualname):
        if field >= 0:
            process.put(code + field, text)
    process.put(code + layout.code_filename, text if one_string else path)
    process.put(code + layout.code_lines, table)
    for string in (text, path):
        process.put(string + layout.string_length, 1)
        process.put(string + layout.string_state, 1 << 2 | 1 << 5 | 1 << 6)
        process.content[string - _BASE + layout.ascii_size] = ord("f")
    memory = CachedMemory(process.read)
    found = read_frames(version, layout, memory, CodeObjects(version, layout, memory), thread)
    assert found.problem == "the frames are a cycle"
    # one string as name and as file: a trampoline of the interpreter, which has them since 3.12
    is_shown = not one_string or version < (3, 12)
    assert [each.name for each in found.frames] == ["f"] * is_shown


def test_lengths_of_2_to_62_are_not_believed() -> None:
    layout, process = LAYOUTS[3, 12], Process()
    process.put(_BASE + layout.string_length, 1 << 62)
    process.put(_BASE + layout.string_state, 1 << 2 | 1 << 5 | 1 << 6)
    began = time.monotonic()
    assert read_string(Memory(process.read), layout, _BASE, 100).endswith("...")
    with pytest.raises(UnreadableError):
        Memory(process.read).bytes(_BASE, 1 << 62)
    assert time.monotonic() - began < 1


@pytest.mark.parametrize("text", ["plain", "größe", "名前", "\U0001d4b3", "\ud800", "a\x1b[2Jb\n"])
def test_strings_of_every_kind_are_read(text: str) -> None:
    layout, process = LAYOUTS[3, 12], Process()
    widest = max(map(ord, text))
    kind = 1 if widest < 1 << 8 else 2 if widest < 1 << 16 else 4
    codec = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[kind]
    is_ascii = widest < 1 << 7
    process.put(_BASE + layout.string_length, len(text))
    process.put(_BASE + layout.string_state, kind << 2 | 1 << 5 | is_ascii << 6)
    at = layout.ascii_size if is_ascii else layout.compact_size
    raw = text.encode(codec, "surrogatepass")
    process.content[at : at + len(raw)] = raw
    assert read_string(Memory(process.read), layout, _BASE, 100) == text


@pytest.mark.parametrize("kind", [1, 2, 4])
def test_characters_that_do_not_exist_are_replaced(kind: int) -> None:
    layout, process = LAYOUTS[3, 12], Process()
    process.put(_BASE + layout.string_length, 8)
    process.put(_BASE + layout.string_state, kind << 2 | 1 << 5)
    garbage = b"\xff" * 8 * kind
    at = layout.compact_size
    process.content[at : at + len(garbage)] = garbage
    text = read_string(Memory(process.read), layout, _BASE, 100)
    assert decode_string(garbage, kind << 2 | 1 << 5, 8) == text
    assert len(text) == 8
    text.encode(errors="surrogatepass")


def test_offsets_that_no_structure_has_are_not_believed() -> None:
    head = b"xdebugpy" + struct.pack("<QQ", 0x030D00F0, 0)
    said = read_debug_offsets((head + b"\xff" * HEADER_SIZE)[:HEADER_SIZE])
    assert said is not None
    assert said.version == (3, 13)
    assert said.layout is None
    assert read_debug_offsets(bytes(HEADER_SIZE)) is None
    assert read_debug_offsets(b"") is None
