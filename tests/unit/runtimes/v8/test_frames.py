"""Frames of each tier, left and named; and stacks that lie."""

from __future__ import annotations

import struct

import pytest

from purebpf.runtimes.memory import MOST_READS
from purebpf.runtimes.v8.frames import JavaScriptFrames
from purebpf.runtimes.v8.functions import Functions
from purebpf.runtimes.v8.javascript_frame import UNKNOWN_FUNCTION, JavaScriptFrame
from purebpf.unwind.generated import Caller, FrameState
from purebpf.unwind.machine import X86_64
from tests.unit.runtimes.v8.fake_v8 import BUILTINS, JIT, VERSIONS, FakeV8, smi, unsigned
from tests.unit.runtimes.v8.test_tables import safepoints, signed

SOURCE = "\n".join(f"line {number}" for number in range(1, 100))
SP, FP, RETURN = 0x7000_0000_0000, 0x7000_0000_0100, 0x1234
SIZES = bytes([2, 2, 2, 2, 1, 2]) + bytes([3, 3, 3, 3, 1, 3]) + bytes([5, 5, 5, 5, 1, 5])


def character(line: int) -> int:
    return SOURCE.index(f"line {line}\n")


class Stack:
    """A process with functions, and one frame of a stack.

    Args:
        version: of its V8.
    """

    def __init__(self, version: int = 1306) -> None:
        self.v8 = v8 = FakeV8(version)
        self.script = v8.script("/srv/shop.js", SOURCE)
        self.shared = v8.shared(v8.text("handle"), self.script)
        self.other = v8.shared(v8.text("query"), self.script, 4)
        self.built_in = v8.shared(v8.text("forEach"), v8.object(131, 32))
        self.bytecodes = v8.bytecode(
            bytes([4, 5, 0, 5, 0, 4]), v8.positions((0, character(3)), (3, character(20)))
        )
        self.words = {FP: FP + 0x200, FP + 8: RETURN}
        self.frame(v8.function(self.shared))

    def frame(self, function: int, *, context: int = 0x501, bytecode: int = 0, at: int = 0) -> None:
        """The words below the frame pointer."""
        words = (context, function, smi(1), bytecode, at)
        self.words |= {FP - 8 - 8 * number: word for number, word in enumerate(words)}

    def walk(self) -> JavaScriptFrames:
        reader = self.v8.reader(SIZES)
        return JavaScriptFrames(
            self.v8.ranges(), Functions(self.v8.heap()), reader, {3: "ExitFrame"}
        )

    def leave(
        self, pc: int, *, walk: JavaScriptFrames | None = None, is_exact: bool = False, fp: int = FP
    ) -> tuple[Caller | None, list[JavaScriptFrame], JavaScriptFrames]:
        registers: list[int | None] = [None] * 17
        registers[X86_64.sp], registers[X86_64.fp] = SP, fp
        walk = walk or self.walk()
        state = FrameState(2, pc, is_exact, registers, lambda at: self.words.get(at, 0))
        caller = walk.leave(state)
        return caller, walk.found.get(2, []), walk

    def offset(self, bytecode: int) -> int:
        """As a frame of the interpreter has it."""
        return smi(bytecode + self.v8.layout.bytecode_data - 1)


CALLER = Caller(RETURN, FP + 16, FP + 0x200)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_interpreted_frame_has_the_line_of_its_bytecode(version: int) -> None:
    stack = Stack(version)
    function = stack.v8.function(stack.shared)
    for at, line in ((0, 3), (1, 3), (3, 20), (5, 20)):
        stack.frame(function, bytecode=stack.bytecodes, at=stack.offset(at))
        caller, found, walk = stack.leave(BUILTINS + 0x40)
        assert caller == CALLER
        assert found == [JavaScriptFrame("handle", "/srv/shop.js", line, is_function=True)]
        assert walk.problems == []


@pytest.mark.parametrize("at", [-1, 6, 1 << 20])
def test_a_bytecode_that_its_array_does_not_have_is_no_line(at: int) -> None:
    stack = Stack()
    function = stack.v8.function(stack.shared)
    stack.frame(function, bytecode=stack.bytecodes, at=stack.offset(at))
    assert stack.leave(BUILTINS + 0x40)[1][0].line == 0
    stack.frame(function, bytecode=stack.script, at=stack.offset(1))
    assert stack.leave(BUILTINS + 0x40)[1][0].line == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_baseline_frame_has_the_line_of_its_bytecode(version: int) -> None:
    stack = Stack(version)
    table = b"".join(map(unsigned, (64, 10, 20, 30, 10)))
    kind = stack.v8.layout.kind_baseline
    _, start = stack.v8.code(kind, 400, positions=table)
    stack.frame(stack.v8.function(stack.shared), bytecode=stack.bytecodes)
    lines = [stack.leave(start + pc)[1][0].line for pc in (64, 74, 94, 95, 124, 134)]
    assert lines == [3, 3, 3, 20, 20, 20]
    assert stack.leave(start + 390)[1][0].line == 0


def optimised(stack: Stack, kind: int, *, has_positions: bool = True) -> int:
    """Code in which `query` is inlined at one return address; `query` is literal 0, and the root
    is literal 1.
    """
    v8, layout = stack.v8, stack.v8.layout
    is_maglev = kind == layout.kind_maglev
    inner = character(50) + 1 << 1 | 1 << 31
    table = unsigned((0x30 + 1) << (2 if layout.version >= 1400 else 1)) + unsigned(inner << 1)
    calls = struct.pack("<qi4x", character(7) + 1 << 1, 0)
    header = [0] * (layout.deopt_positions + 4)
    header[layout.deopt_literals] = v8.array([stack.other, stack.shared])
    header[layout.deopt_shared] = stack.shared
    header[layout.deopt_positions] = v8.byte_array(calls)
    header[0] = v8.byte_array(b"")
    raw = safepoints(layout.version, (0x38, 0, 0), (0x60, 0, 0), is_maglev=is_maglev)
    positions = table if has_positions else b""
    _, start = v8.code(kind, 0x100, positions=positions, deopt=v8.array(header), tables=raw)
    return start


@pytest.mark.parametrize("version", VERSIONS)
def test_optimised_code_has_the_functions_that_it_inlined(version: int) -> None:
    stack = Stack(version)
    start = optimised(stack, stack.v8.layout.kind_turbofan)
    caller, found, walk = stack.leave(start + 0x38)
    assert caller == CALLER
    assert walk.problems == []
    assert found == [
        JavaScriptFrame("query", "/srv/shop.js", 50, is_function=True, is_inlined=True),
        JavaScriptFrame("handle", "/srv/shop.js", 7, is_function=True),
    ]


def test_a_return_address_that_the_code_does_not_have() -> None:
    """The function of the frame is known all the same, but not its line."""
    stack = Stack()
    start = optimised(stack, stack.v8.layout.kind_turbofan)
    _, found, walk = stack.leave(start + 0x40)
    assert found == [JavaScriptFrame("handle", "/srv/shop.js", 0, is_function=True)]
    assert walk.problems == ["1 frames: optimised code whose inlined functions are not known"]


def test_code_of_another_function_is_not_believed() -> None:
    stack = Stack()
    start = optimised(stack, stack.v8.layout.kind_turbofan)
    stack.frame(stack.v8.function(stack.other))
    _, found, walk = stack.leave(start + 0x38)
    assert found == [JavaScriptFrame("query", "/srv/shop.js", 0, is_function=True)]
    assert walk.problems


@pytest.mark.parametrize("version", [1306, 1401, 1406])
@pytest.mark.parametrize("tier", ["kind_maglev", "kind_turbofan"])
def test_translations_have_inlined_functions_with_their_bytecodes(version: int, tier: str) -> None:
    stack = Stack(version)
    v8, layout = stack.v8, stack.v8.layout
    kind = getattr(layout, tier)
    for_each = v8.function(stack.built_in) | 2  # a weak pointer
    frames = b"\x0e\x00\x03\x02\x00" + b"".join(map(signed, (1, 1, 0, 0, 0, 1)))
    frames += b"\x02" + b"".join(map(signed, (9, 1, 4))) + b"\x26" + signed(2)
    frames += b"\x01" + b"".join(map(signed, (3, 0, 0, 0)))
    header = [0] * (layout.deopt_positions + 4)
    header[layout.deopt_literals] = v8.array([stack.other | 2, stack.shared | 2, for_each])
    header[layout.deopt_literals - 1] = v8.array([stack.bytecodes])
    header[0] = v8.byte_array(b"\x0e" + frames)
    header += [0, smi(1), 0]
    raw = safepoints(version, (0x38, 1, 0x81), is_maglev=tier == "kind_maglev")
    _, start = v8.code(kind, 0x100, deopt=v8.array(header), tables=raw)
    for pc in (start + 0x38, start + 0x80):  # and where deoptimisation led it
        _, found, walk = stack.leave(pc)
        assert walk.problems == []
        assert found == [
            JavaScriptFrame("query", "/srv/shop.js", 20, is_function=True, is_inlined=True),
            JavaScriptFrame("forEach", "built-in", 0, is_function=True, is_inlined=True),
            JavaScriptFrame("handle", "/srv/shop.js", 3, is_function=True),
        ]


@pytest.mark.parametrize("version", [1001, 1103, 1204])
def test_older_translations_have_the_bytecodes_of_their_functions(version: int) -> None:
    stack = Stack(version)
    v8, layout = stack.v8, stack.v8.layout
    begin = {1001: b"\x06\x02\x02\x00\x24", 1103: b"\x02\x00\x01\x01\x17"}
    frames = begin.get(version, b"\x0c\x00\x01\x01\x00") + b"".join(map(signed, (3, 0, 1, 0, 1)))
    data = v8.object(layout.type_interpreter, 24)  # with a trampoline of its own
    v8.field(data, 8, stack.bytecodes)
    baseline, _ = v8.code(layout.kind_baseline, 64, deopt=data)
    for holder in (stack.bytecodes, data, baseline):
        v8.field(stack.shared, layout.shared_data, holder)
        header = [0] * (layout.deopt_positions + 4)
        header[layout.deopt_literals] = v8.array([stack.shared])
        header[0] = v8.byte_array(frames)
        raw = safepoints(version, (0x38, 1, 0), is_maglev=False)
        deopt = v8.array([*header, 0, smi(0), 0])
        _, start = v8.code(layout.kind_turbofan, 0x100, deopt=deopt, tables=raw)
        _, found, walk = stack.leave(start + 0x38)
        assert walk.problems == []
        assert found == [JavaScriptFrame("handle", "/srv/shop.js", 20, is_function=True)]


def test_generated_code_without_its_tables_has_no_line() -> None:
    stack = Stack()
    _, found, walk = stack.leave(JIT + 0x20000)
    assert found == [JavaScriptFrame("handle", "/srv/shop.js", 0, is_function=True)]
    assert walk.problems == ["1 frames: generated code whose tables are not found, without lines"]


def test_frames_of_v8s_own() -> None:
    stack = Stack()
    stack.frame(0, context=3 << 1)
    assert stack.leave(BUILTINS + 5)[1] == [JavaScriptFrame("ExitFrame", "", 0, is_function=False)]
    stack.frame(0, context=0xFE << 1)
    assert "254" in stack.leave(BUILTINS + 5)[1][0].name
    stack.frame(0x33)
    assert stack.leave(BUILTINS + 5)[1] == [JavaScriptFrame("[V8]", "", 0, is_function=False)]


def test_built_in_functions_have_their_name() -> None:
    stack = Stack()
    expected = [JavaScriptFrame("forEach", "built-in", 0, is_function=True)]
    stack.frame(stack.v8.function(stack.built_in))
    assert stack.leave(BUILTINS + 5)[1] == expected
    stack.frame(0, context=stack.v8.layout.frame_builtin_exit << 1)
    stack.words[FP + 24] = stack.v8.function(stack.built_in)
    assert stack.leave(BUILTINS + 5)[1] == expected


def test_a_function_that_cannot_be_read_is_unknown() -> None:
    stack = Stack()
    v8, layout = stack.v8, stack.v8.layout
    broken = v8.object(layout.type_shared, 96)
    v8.field(broken, layout.shared_name, 0x71)
    v8.field(broken, layout.shared_script, 8)
    script = v8.object(layout.type_script, 128)
    v8.field(script, layout.script_id, 0x7777_7777_7777_7777)
    v8.field(broken, layout.shared_script, script)
    stack.frame(v8.function(broken))
    _, found, _ = stack.leave(BUILTINS + 5)
    assert found == [JavaScriptFrame(UNKNOWN_FUNCTION, "", 0, is_function=True)]


@pytest.mark.parametrize("fp", [SP - 8, SP + (1 << 21), FP + 1, 0])
def test_a_frame_pointer_elsewhere_cuts_the_stack(fp: int) -> None:
    caller, found, walk = Stack().leave(BUILTINS + 5, fp=fp)
    assert caller is None
    assert found == []
    assert walk.problems == ["javascript_cut: a frame of V8 elsewhere"]


def test_an_interrupted_frame_is_left_by_its_frame_pointer_as_a_guess() -> None:
    caller, _, walk = Stack().leave(BUILTINS + 5, is_exact=True)
    assert caller == CALLER._replace(is_guess=True)
    assert "interrupted in JavaScript code" in walk.problems[0]


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (b"\x90", b"\x55\x48\x89\xe5", 1),  # push %rbp; mov %rsp, %rbp
        (b"\x90", b"\x55\x48\x8b\xec", 1),
        (b"\x55", b"\x48\x89\xe5\x90", 2),
        (b"\x90", b"\xc3\x90\x90\x90", 1),
        (b"\x90", b"\xc2\x10\x00\x90", 1),
        (b"\x90", b"\x5d\xc3\x90\x90", 2),
        (b"\x90", b"\x5d\xc2\x10\x00", 2),
        (b"\x90", b"\x48\x89\xe5\x90", 0),
        (b"\x90", b"\xc2\x10\x01\x90", 0),
        (b"\x90", b"\x5d\x90\x90\xc3", 0),
    ],
)
def test_a_leaf_without_a_frame_is_left_by_the_code_at_it(
    before: bytes, now: bytes, words: int
) -> None:
    stack = Stack()
    stack.v8.put_bytes(JIT + 0x20000, before + now)
    stack.words |= {SP: 0x77 if words == 1 else 0x9990, SP + 8: 0x88}
    caller, found, walk = stack.leave(JIT + 0x20001, is_exact=True)
    expected = {0: CALLER._replace(is_guess=True), 1: Caller(0x77, SP + 8, FP)}
    assert caller == expected.get(words, Caller(0x88, SP + 16, 0x9990))
    assert bool(found) is not bool(words)
    assert bool(walk.problems) is not bool(words)


def test_an_interrupted_instruction_of_turbofan_has_the_functions_of_its_position() -> None:
    stack = Stack()
    start = optimised(stack, stack.v8.layout.kind_turbofan)
    _, found, _ = stack.leave(start + 0x31, is_exact=True)
    assert [(frame.name, frame.line) for frame in found] == [("query", 50), ("handle", 7)]


def test_code_full_of_maps_that_lead_nowhere_is_bounded() -> None:
    stack = Stack()
    v8 = stack.v8
    stream = v8.map(v8.layout.type_stream)
    for at in range(JIT + 0x20000, JIT + 0x30000, 64):
        v8.put(at, stream, stream, stream, stream)
    v8.reads = 0
    walk = stack.walk()
    for pc in range(JIT + 0x20001, JIT + 0x30000, 4096):
        stack.leave(pc, walk=walk)
    assert v8.reads < MOST_READS // 100
    words = [0x501 + 16 * number for number in range(0x8000 // 8)]
    v8.put(JIT + 0x20000, *words)
    v8.reads = 0
    assert stack.leave(JIT + 0x28000)[2].problems
    assert v8.reads < MOST_READS // 50
