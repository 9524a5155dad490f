"""From registers and a copied stack to a stack trace, each rule by a frame made for it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.unwind.address_space import AddressSpace, CodeMapping
from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.machine import AARCH64, I386, X86_64, ends_in_call
from purebpf.unwind.perf_registers import MASKS, sampled_registers
from purebpf.unwind.reason import Reason
from purebpf.unwind.rule import DEPTH_OUTERMOST, How
from purebpf.unwind.unwinder import Unwinder, Unwound
from tests.unit.unwind.cfi_builder import (
    FRAME,
    FRAMES,
    TEXT,
    X86_CIE,
    Image,
    Section,
    advance,
    cfa_offset,
    cie,
    expression,
)

BIAS = 0x7F00_0000_0000
SP = 0x7FFF_0000_1000
BASE = BIAS + TEXT
OUTERMOST = BASE + 0xF00
"""A function in which every trace may end."""
ARM_CIE = {"code": b"\x0c\x1f\x00", "ra": 30, "code_factor": 1}


class Stack:
    """A stack as a process has it, from the stack pointer up."""

    def __init__(self, size=0x400, at=SP):
        self.at = at
        self.data = bytearray(size)

    def put(self, address, *values):
        struct.pack_into(f"<{len(values)}Q", self.data, address - self.at, *values)
        return self


def calls(size, machine=X86_64):
    """Code in which a call ends everywhere: `call *%rax`, or `bl`."""
    return ((b"\x94" if machine is AARCH64 else b"\xff\xd0") * size)[:size]


class Depths:
    """Functions that have all taken as much from the stack, but for those of some addresses."""

    def __init__(self, depth, others=()):
        self._depth = depth
        self._others = {address - BIAS: depth for address, depth in dict(others).items()}

    def depth(self, address):
        return self._others.get(address, self._depth)

    def depths(self, start, _end):
        yield start, self._depth


def trace(section, pc, stack, *, machine=X86_64, code=b"", max_frames=127, depth=None, **registers):
    """Unwind with the functions of a section, and `OUTERMOST`, mapped at `BIAS`."""
    if section is not None:
        undefined = bytes([0x07, machine.ra])
        section.fde(OUTERMOST - BIAS, 0x20, undefined)
    sections = {".eh_frame": (FRAME, section.data)} if section else {}
    code += calls(0xE00, machine)[len(code) :] + FRAMES * 32 + calls(0x100, machine)
    image = Image(sections, machine=machine.elf, code=code)
    cfi = CfiFile(image, depth)
    space = AddressSpace([CodeMapping(BASE, BASE + 0x10000, BIAS, "file")])
    values = [None] * machine.registers
    values[machine.sp] = registers.pop("sp", SP)
    for name, value in registers.items():
        values[{"fp": machine.fp, "ra": machine.ra}.get(name) or int(name[1:])] = value
    unwinder = Unwinder(machine, space, lambda _: cfi, max_frames=max_frames)
    return unwinder.unwind(pc, values, bytes(stack.data))


def test_a_chain_without_frame_pointers():
    section = Section().fde(TEXT, 0x20).fde(TEXT + 0x40, 0x40, advance(8) + cfa_offset(48))
    stack = Stack().put(SP, BASE + 0x50).put(SP + 8 + 40, OUTERMOST + 5)
    assert trace(section, BASE + 4, stack) == (
        [BASE + 4, BASE + 0x50, OUTERMOST + 5],
        Reason.COMPLETE,
        0,
    )


def test_an_address_that_no_call_left_is_not_a_return_address():
    """So libgcc jumps to an exception handler: the rules hold before the jump, not behind it."""
    section = Section().fde(TEXT, 0x20).fde(TEXT + 0x40, 0x40, advance(8) + cfa_offset(48))
    stack = Stack().put(SP, BASE + 0x50).put(SP + 8 + 40, OUTERMOST + 5)
    code = calls(0x48) + b"\x90" * 8
    found = trace(section, BASE + 4, stack, code=code)
    assert found == ([BASE + 4, BASE + 0x50], Reason.RULE_UNSUPPORTED, 0)


def test_a_return_address_of_0_does_not_end_it():
    """Only a rule says that a function is outermost: LuaJIT's rules give 0 where they are wrong."""
    assert trace(Section().fde(TEXT, 0x20), BASE, Stack()) == ([BASE], Reason.NO_CALLER, 0)
    section = Section().fde(TEXT, 0x20).fde(TEXT + 0x40, 0x40)
    stack = Stack().put(SP, BASE + 0x50, 0)
    assert trace(section, BASE, stack) == ([BASE, BASE + 0x50], Reason.NO_CALLER, 0)


def test_a_signal_at_address_0_does_not_end_it():
    """A call through a null pointer, in a program that handles SIGSEGV."""
    section = Section()
    code = X86_64.sigreturn + calls(0x40)
    found = trace(section, BASE, Stack(), code=code)
    assert found == ([BASE], Reason.UNKNOWN_MAPPING, 0)


def test_a_depth_does_not_end_it_at_0():
    found = trace(None, BASE, Stack(), depth=Depths(16), fp=0)
    assert found == ([BASE], Reason.NO_CALLER, 0)


def test_the_caller_is_looked_up_at_its_call():
    """The call is the last instruction: at the return address, the next function's rule holds."""
    section = Section().fde(TEXT, 0x20).fde(TEXT + 0x40, 0x40, cfa_offset(32))
    section.fde(TEXT + 0x80, 0x40, cfa_offset(16))
    stack = Stack().put(SP, BASE + 0x80).put(SP + 8 + 24, OUTERMOST + 5)
    assert trace(section, BASE, stack).frames[-1] == OUTERMOST + 5


def test_saved_registers_are_restored():
    """The frame pointer of the leaf's caller is in the leaf's frame."""
    section = Section().fde(TEXT, 0x20, cfa_offset(16) + b"\x86\x02")
    section.fde(TEXT + 0x40, 0x40, b"\x0c\x06\x10")
    stack = Stack().put(SP, SP + 0x100, BASE + 0x50).put(SP + 0x108, OUTERMOST + 5)
    assert trace(section, BASE, stack, fp=1).frames == [BASE, BASE + 0x50, OUTERMOST + 5]


def test_a_slot_below_the_stack_pointer_was_popped():
    """At the `ret` of an epilogue GCC still says that rbp is saved at CFA-16."""
    section = Section().fde(TEXT, 0x20, b"\x86\x02").fde(TEXT + 0x40, 0x40, b"\x0c\x06\x10")
    stack = Stack().put(SP, BASE + 0x50).put(SP + 0x108, OUTERMOST + 5)
    found = trace(section, BASE, stack, fp=SP + 0x100)
    assert found.frames == [BASE, BASE + 0x50, OUTERMOST + 5]


def test_a_realigned_stack():
    code = expression(0x0F, b"\x76\x78\x06") + expression(0x10, b"\x76\0", 6)
    section = Section().fde(TEXT, 0x20, code).fde(TEXT + 0x40, 0x40, b"\x0c\x06\x10")
    stack = Stack().put(SP + 0x78, SP + 0x100, SP + 0x200)  # the CFA, the caller's rbp
    stack.put(SP + 0xF8, BASE + 0x50).put(SP + 0x208, OUTERMOST + 5)
    found = trace(section, BASE, stack, fp=SP + 0x80)
    assert found == ([BASE, BASE + 0x50, OUTERMOST + 5], Reason.COMPLETE, 0)


@pytest.mark.parametrize(("offset", "pushed"), [(0, 0), (10, 0), (11, 1), (15, 1)])
def test_a_stub_of_the_plt(offset, pushed):
    code = expression(0x0F, bytes.fromhex("77088000 3f1a3b2a 332422"))
    section = Section().fde(TEXT, 0x40, code)
    stack = Stack().put(SP, 1, 2).put(SP + 8 * pushed, OUTERMOST + 5)
    assert trace(section, BASE + 0x10 + offset, stack).frames[1:] == [OUTERMOST + 5]


def test_a_rule_by_another_register():
    """ld.so's resolver: the CFA is relative to rbx."""
    section = Section().fde(TEXT, 0x20, b"\x0c\x03\x20")
    stack = Stack().put(SP + 0x118, OUTERMOST + 5)
    assert trace(section, BASE, stack, r3=SP + 0x100).reason == Reason.COMPLETE
    assert trace(section, BASE, stack).reason == Reason.RULE_UNSUPPORTED


def test_a_return_address_in_a_register():
    """glibc's vfork(2) pops it, as the child overwrites the stack of the parent."""
    section = Section().fde(TEXT, 0x20, cfa_offset(0) + b"\x09\x10\x05")
    found = trace(section, BASE, Stack(), r5=OUTERMOST + 5)
    assert found == ([BASE, OUTERMOST + 5], Reason.COMPLETE, 0)


@pytest.mark.parametrize(
    ("before", "is_entry"),
    [
        (b"\x90" * 8, True),
        (b"\xe8" + bytes(4), False),  # call rel32, which does not return
        (b"\xff\xd0", False),  # call *%rax
        (b"\xff\x15" + bytes(4), False),  # call *slot(%rip)
        (b"\x41\xff\x54\x24\x08", False),  # call *8(%r12)
    ],
)
def test_a_return_address_that_no_call_has_left(before, is_entry):
    """makecontext(3): the start of __start_context, with no rule before it."""
    section = Section().fde(TEXT, 0x20).fde(TEXT + 0x80, 0x20)
    stack = Stack().put(SP, BASE + 0x80, 0x1234)
    code = b"\x90" * (0x80 - len(before)) + before
    found = trace(section, BASE, stack, code=code, fp=1)
    if is_entry:
        assert found == ([BASE, BASE + 0x81], Reason.COMPLETE, 0)
    else:
        assert found == ([BASE, BASE + 0x80], Reason.NO_UNWIND_INFO, 0)


@pytest.mark.parametrize(
    ("word", "is_call"),
    [(0x94000001, True), (0xD63F0100, True), (0xD73F0901, True), (0xD503201F, False)],
)
def test_calls_of_arm64(word, is_call):
    assert ends_in_call(struct.pack("<I", word), AARCH64) == is_call
    assert not ends_in_call(b"", AARCH64)
    assert not ends_in_call(b"", X86_64)


def test_registers_that_calls_do_not_keep_are_lost():
    section = Section().fde(TEXT, 0x20).fde(TEXT + 0x40, 0x20, b"\x0c\x0a\x20")
    stack = Stack().put(SP, BASE + 0x50).put(SP + 0x118, OUTERMOST + 5)
    found = trace(section, BASE, stack, r10=SP + 0x100)
    assert found == ([BASE, BASE + 0x50], Reason.RULE_UNSUPPORTED, 0)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (b"\x14\x06\x04", None),  # CFA - 32
        (b"\x09\x06\x0b", "r11"),
        (expression(0x16, b"\x23\x08\x38\x1c", 6), None),
        (expression(0x10, b"\x23\x10", 6), None),
    ],
)
def test_every_way_to_give_a_register_back(rule, value):
    frame = SP + 0x48 - (0x20 if rule[0] == 0x14 else 0)
    code = cfa_offset(0x48) + rule
    section = Section().fde(TEXT, 0x20, code).fde(TEXT + 0x40, 0x40, b"\x0c\x06\x80\x02")
    stack = Stack().put(SP + 0x40, BASE + 0x50).put(SP + 0x58, frame)
    stack.put(frame + 0xF8, OUTERMOST + 5)
    registers = {value: frame} if value else {}
    assert trace(section, BASE, stack, **registers).frames[2:] == [OUTERMOST + 5]


def _mcontext(pc, sp, fp):
    values = [0] * 17
    values[10], values[15], values[16] = fp, sp, pc
    return values


@pytest.mark.parametrize("kind", ["bytes", "rows"])
@pytest.mark.parametrize("at", [0, 7])
def test_a_signal_handler(kind, at):
    """Of a function at its first instruction. glibc's rules start a byte early; musl has none."""
    code = calls(0x80) + X86_64.sigreturn if kind == "bytes" else b""
    section = Section().fde(TEXT, 0x20).fde(TEXT + 0x40, 0x3F)
    if kind == "rows":
        saved = {16: 168, 7: 160, 6: 120}
        code_ = expression(0x0F, b"\x77\xa0\x01\x06") + b"".join(
            expression(0x10, b"\x77" + _sleb(offset), number) for number, offset in saved.items()
        )
        section.add_cie(cie(augmentation=b"zRS")).fde(TEXT + 0x7F, 0x11, code_).add_cie(cie())
    else:
        section.fde(TEXT + 0x60, 0x20, cfa_offset(80))  # just before: not its rule
    stack = Stack().put(SP, BASE + 0x80 + at)
    stack.put(SP + 8 + 40, *_mcontext(BASE + 0x40, SP + 0x300, 0)).put(SP + 0x300, OUTERMOST + 5)
    found = trace(section, BASE + 4, stack, code=code)
    frames = [BASE + 4, BASE + 0x80 + at, BASE + 0x41, OUTERMOST + 5]
    assert found == (frames, Reason.COMPLETE, 0)


def _sleb(number):
    return bytes([number & 0x7F | 0x80, number >> 7])


def test_a_sample_in_the_system_call_that_ends_a_handler():
    """Its address is behind the instructions of the trampoline, where there are no rules."""
    code = calls(0x80) + X86_64.sigreturn
    section = Section().fde(TEXT, 0x20).fde(TEXT + 0x7F, 10)
    stack = Stack().put(SP + 40, *_mcontext(BASE + 4, SP + 0x300, 0))
    stack.put(SP + 0x300, OUTERMOST + 5)
    found = trace(section, BASE + 0x89, stack, code=code)
    assert found == ([BASE + 0x89, BASE + 5, OUTERMOST + 5], Reason.COMPLETE, 0)
    section = Section().fde(TEXT, 0x20).fde(TEXT + 0x89, 16)
    stack = Stack().put(SP, OUTERMOST + 5)
    found = trace(section, BASE + 0x89, stack, code=code)
    assert found == ([BASE + 0x89, OUTERMOST + 5], Reason.COMPLETE, 0)


def test_a_signal_on_another_stack_is_beyond_the_copy():
    section = Section().fde(TEXT, 0x20)
    code = calls(0x80) + X86_64.sigreturn
    stack = Stack().put(SP, BASE + 0x80).put(SP + 48, *_mcontext(BASE + 4, SP - 0x9000, 0))
    found = trace(section, BASE + 4, stack, code=code)
    assert found == ([BASE + 4, BASE + 0x80, BASE + 5], Reason.COPY_SHORT, 0)


def test_the_end_of_the_copy():
    section = Section().fde(TEXT, 0x20, cfa_offset(0x400 + 9))
    assert trace(section, BASE, Stack()) == ([BASE], Reason.COPY_SHORT, 0)


def test_an_address_in_no_mapping_is_not_a_frame():
    section = Section().fde(TEXT, 0x20)
    found = trace(section, BASE, Stack().put(SP, 0x1234))
    assert found == ([BASE], Reason.UNKNOWN_MAPPING, 0)
    assert trace(section, 0x1234, Stack()) == ([0x1234], Reason.UNKNOWN_MAPPING, 0)


def test_a_cfa_that_is_not_above_the_stack_pointer():
    section = Section().fde(TEXT, 0x20, b"\x0c\x06\x10")
    found = trace(section, BASE, Stack(), fp=SP - 16)
    assert found == ([BASE], Reason.RULE_UNSUPPORTED, 0)


def test_a_rule_that_cannot_be_read():
    assert trace(Section().fde(TEXT, 0x20, b"\x3f"), BASE, Stack()).reason == (
        Reason.RULE_UNSUPPORTED
    )


def test_a_trace_over_the_limit_is_too_deep():
    section = Section().fde(TEXT, 0x20)
    stack = Stack().put(SP, *[BASE + 8] * 100)
    assert trace(section, BASE, stack, max_frames=50) == (
        [BASE] + [BASE + 8] * 49,
        Reason.TOO_DEEP,
        0,
    )


def test_frame_pointers_where_there_are_no_rules():
    stack = Stack().put(SP + 0x20, SP + 0x60, BASE + 0x50).put(SP + 0x60, 0, BASE + 0x90)
    found = trace(None, BASE, stack, fp=SP + 0x20)
    assert found == ([BASE, BASE + 0x50, BASE + 0x90], Reason.FP_GUESS, 3)


def test_a_gap_in_the_rules_is_guessed_and_never_the_end():
    section = Section().fde(TEXT, 0x20)
    stack = Stack().put(SP, BASE + 0x500).put(SP + 0x20, SP + 0x60, OUTERMOST + 5)
    found = trace(section, BASE, stack, fp=SP + 0x20)
    assert found == ([BASE, BASE + 0x500, OUTERMOST + 5], Reason.FP_GUESS, 1)


@pytest.mark.parametrize("fp", [SP - 8, SP + 0x21, SP + 0x40, 0, None])
def test_a_frame_pointer_that_does_not_look_like_one(fp):
    stack = Stack().put(SP + 0x40, SP + 0x80, 0x1234)
    assert trace(None, BASE, stack, fp=fp) == ([BASE], Reason.NO_UNWIND_INFO, 1)


def test_a_register_of_0_is_the_end_of_a_chain_only():
    """Generated code keeps other things in it; PHP's leaves it as _start has set it."""
    section = Section().fde(TEXT, 0x20)
    stack = Stack().put(SP, BASE + 0x500)
    assert trace(section, BASE, stack, fp=0) == ([BASE, BASE + 0x500], Reason.NO_UNWIND_INFO, 1)


def test_memory_that_was_never_written_does_not_look_like_a_frame():
    """It is 0; the outermost frame has a return address, and a frame pointer of 0."""
    stack = Stack().put(SP + 0x20, SP + 0x60, 0)
    assert trace(None, BASE, stack, fp=SP + 0x20) == ([BASE], Reason.NO_UNWIND_INFO, 1)
    assert trace(None, BASE, Stack(), fp=SP + 0x20) == ([BASE], Reason.NO_UNWIND_INFO, 1)


@pytest.mark.parametrize("has_frame", [False, True])
def test_functions_of_go_by_the_depths_of_their_stacks(has_frame):
    """rbp is the caller's own until the leaf has a frame."""
    caller = SP + 0x60
    stack = Stack().put(SP + 0x28, caller, BASE + 0x50).put(caller, 0, BASE + 0x90)
    fp = SP + 0x28 if has_frame else caller
    depths = Depths(0x30, {BASE + 0x8F: DEPTH_OUTERMOST})
    found = trace(None, BASE, stack, fp=fp, depth=depths)
    assert found == ([BASE, BASE + 0x50, BASE + 0x90], Reason.COMPLETE, 0)


def test_a_frame_pointer_serves_where_the_depth_of_a_caller_is_not_known():
    caller = SP + 0x60
    stack = Stack().put(SP + 0x30, BASE + 0x50).put(caller, 0, BASE + 0x90)
    depths = Depths(0x30, {BASE + 0x4F: None, BASE + 0x8F: DEPTH_OUTERMOST})
    found = trace(None, BASE, stack, fp=caller, depth=depths)
    assert found == ([BASE, BASE + 0x50, BASE + 0x90], Reason.FP_GUESS, 1)


@pytest.mark.parametrize("called", [False, True])
def test_what_was_interrupted_has_the_depth_of_its_own_address(called):
    """Go's preemption puts a function between two instructions: at a function's start, say."""
    stack = Stack().put(SP + 0x10, BASE + 0x50, BASE + 0x90, BASE + 0x70)
    depths = {BASE + 0x50: 0, BASE + 0x4F: 8}
    depths |= {BASE + 0x8F: DEPTH_OUTERMOST, BASE + 0x6F: DEPTH_OUTERMOST}
    found = trace(None, BASE, stack, depth=Depths(0x10 + (not called), depths))
    frames = [BASE, BASE + 0x50, BASE + 0x70] if called else [BASE, BASE + 0x51, BASE + 0x90]
    assert found == (frames, Reason.COMPLETE, 0)


def test_without_a_stack_pointer_there_is_only_the_leaf():
    assert trace(None, BASE, Stack(), sp=None) == ([BASE], Reason.NO_REGISTERS, 0)


# arm64


def test_leaf_and_pair_of_arm64():
    """A leaf without a frame, called by a function that saves x29 and x30 at its bottom."""
    section = Section(cie(**ARM_CIE)).fde(TEXT, 0x20)
    section.fde(TEXT + 0x40, 0x40, cfa_offset(32) + b"\x9d\x04\x9e\x03")
    stack = Stack().put(SP, SP + 0x100, OUTERMOST + 8)
    found = trace(section, BASE, stack, machine=AARCH64, ra=BASE + 0x50)
    assert found == ([BASE, BASE + 0x50, OUTERMOST + 8], Reason.COMPLETE, 0)


def test_a_signed_return_address():
    section = Section(cie(**ARM_CIE)).fde(TEXT, 0x20, b"\x2d" + cfa_offset(16) + b"\x9e\x02")
    stack = Stack().put(SP, OUTERMOST + 8 | 0x1234 << 48)
    found = trace(section, BASE, stack, machine=AARCH64)
    assert found == ([BASE, OUTERMOST + 8], Reason.COMPLETE, 0)


def test_only_a_leaf_of_arm64_has_its_return_address_in_a_register():
    section = Section(cie(**ARM_CIE)).fde(TEXT, 0x20)
    found = trace(section, BASE, Stack(), machine=AARCH64, ra=BASE + 0x10)
    assert found == ([BASE, BASE + 0x10], Reason.RULE_UNSUPPORTED, 0)


@pytest.mark.parametrize("column", [17, 32, 127])
def test_another_column_of_the_return_address(column):
    """Functions with a calling convention of their own; 32 and up are not registers."""
    section = Section(cie(**ARM_CIE | {"ra": column})).fde(TEXT, 0x20)
    fde = section.cfi(machine=183)
    rule = fde.table.rules[fde.rows.ids[0]]
    assert rule.ra == (How.REGISTER, column)
    found = trace(section, BASE, Stack(), machine=AARCH64, r17=BASE + 0x50, ra=BASE + 0x60)
    assert found.frames == ([BASE, BASE + 0x50] if column == 17 else [BASE])
    assert found.reason in (Reason.RULE_UNSUPPORTED, Reason.NO_UNWIND_INFO)


@pytest.mark.parametrize("at", [0, 4])
def test_a_signal_handler_of_arm64(at):
    code = calls(0x80, AARCH64) + AARCH64.sigreturn
    section = Section(cie(**ARM_CIE)).fde(TEXT, 0x20).fde(TEXT + 0x40, 0x20)
    values = [0] * 33
    values[30], values[31], values[32] = OUTERMOST + 8, SP + 0x380, BASE + 0x40
    stack = Stack().put(SP + 312, *values)
    found = trace(section, BASE, stack, machine=AARCH64, code=code, ra=BASE + 0x80 + at)
    frames = [BASE, BASE + 0x80 + at, BASE + 0x41, OUTERMOST + 8]
    assert found == (frames, Reason.COMPLETE, 0)


@pytest.mark.parametrize("taken", [0, 0x20])
def test_a_leaf_of_go_on_arm64(taken):
    stack = Stack().put(SP + 0x40, 0, BASE + 0x90)
    if taken:
        stack.put(SP, BASE + 0x50)
    found = trace(
        None,
        BASE,
        stack,
        machine=AARCH64,
        depth=Depths(taken),
        fp=SP + 0x40,
        ra=None if taken else BASE + 0x50,
    )
    assert found == ([BASE, BASE + 0x50, BASE + 0x90], Reason.FP_GUESS, 2)


# Registers of perf, and hostile input


def test_registers_of_perf_samples():
    mask = MASKS["x86_64"]
    assert mask == 0xFF0FFF  # what perf(1) asks for
    pc, registers = sampled_registers(X86_64, mask, range(100, 120))
    assert pc == 108
    order = (100, 103, 102, 101, 104, 105, 106, 107, *range(112, 120))
    assert registers == [*order, None]
    assert sampled_registers(X86_64, mask, ()) is None
    assert sampled_registers(X86_64, mask & ~0x100, range(19)) is None
    mask = MASKS["aarch64"]
    assert sampled_registers(AARCH64, mask, range(33)) == (32, list(range(32)))


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=40),
    st.binary(min_size=256, max_size=256),
    st.lists(st.integers(0, 2**64 - 1), min_size=17, max_size=17),
    st.sampled_from([X86_64, AARCH64]),
)
def test_any_rule_on_any_stack_is_an_answer(code, stack, values, machine):
    section = Section(cie(X86_CIE, ra=machine.ra)).fde(TEXT, 0x200, code)
    values[machine.sp % 17] = SP
    registers = {f"r{number}": value for number, value in enumerate(values)}
    registers["sp"] = SP
    copy = Stack()
    copy.data[:256] = stack
    copy.put(SP + 64, BASE + 4, SP + 128, BASE + 0x80)
    found = trace(section, BASE + 8, copy, machine=machine, **registers)
    assert len(found.frames) <= 127
    assert isinstance(found.reason, Reason)


_STUB = (0x90000010, 0xF9400211, 0x91000210, 0xD61F0220)  # adrp x16; ldr x17; add x16; br x17
_STUBS = {
    "plain": _STUB,
    "bti": (0xD503245F, *_STUB),
    "signed": (*_STUB[:3], 0xD503219F, _STUB[3]),
}


@pytest.mark.parametrize("kind", _STUBS)
def test_a_stub_of_arm64_has_no_frame(kind):
    """PLTs of arm64 have no rules: the return address is still in the register."""
    words = (0xD503201F, *_STUBS[kind], 0xD503201F)  # between two nops
    code = calls(0x80, AARCH64) + struct.pack(f"<{len(words)}I", *words)
    section = Section(cie(**ARM_CIE)).fde(TEXT, 0x40, b"\x07\x1e")
    for number in range(len(words)):
        at = BASE + 0x80 + 4 * number
        found = trace(section, at, Stack(), machine=AARCH64, code=code, ra=BASE + 0x10, fp=1)
        if 0 < number < len(words) - 1:
            assert found == ([at, BASE + 0x10], Reason.COMPLETE, 0)
        else:
            assert found == ([at], Reason.NO_UNWIND_INFO, 1)


def test_rules_of_32_bit_files_are_not_for_64_bit_code():
    """Wine has both in one process."""
    image = Image({}, machine=3)
    image.is64 = False
    mapping = CodeMapping(BASE, BASE + 0x1000, BIAS, "file")
    files = {"file": CfiFile(image)}
    assert files["file"].machine is I386
    registers = [SP if number == X86_64.sp else None for number in range(17)]
    found = Unwinder(X86_64, AddressSpace([mapping]), files.get).unwind(BASE, registers, bytes(64))
    assert found == Unwound([BASE], Reason.RULE_UNSUPPORTED, 0)
    image.is64 = True  # no such files
    assert CfiFile(image).machine is None
    x32 = Image({})
    x32.is64 = False
    assert CfiFile(x32).machine is None
