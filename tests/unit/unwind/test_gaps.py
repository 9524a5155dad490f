"""Code without entries: where frame pointers are followed, and what a leaf's return address is."""

from __future__ import annotations

import re
import struct
from array import array
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.unwind.address_space import AddressSpace, CodeMapping
from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.gaps import _count_pushes, keeps_frame_pointers
from purebpf.unwind.machine import X86_64
from purebpf.unwind.reason import Reason
from purebpf.unwind.rows import NO_RULE
from purebpf.unwind.rule import DEPTH_FRAMELESS
from purebpf.unwind.unwinder import Unwinder
from purebpf.unwind.windows import OFFSET_BITS, WINDOW_BITS, cut_all, find_in_block
from tests.unit.unwind.cfi_builder import FRAME, TEXT, Image, Section

BIAS = 0x7F00_0000_0000
SP = 0x7FFF_0000_1000
FRAMED = b"\x55\x48\x89\xe5\x53\x90\x5b\x5d\xc3".ljust(16, b"\x90")
"""push %rbp; mov %rsp, %rbp; push %rbx; ...; ret."""
EPILOGUE = b"\x55\x48\x89\xe5\x5d\x48\xc1\xe0\x02\xc3"
"""push %rbp; mov %rsp, %rbp; pop %rbp; shl $2, %rax; ret."""
SCHEDULED = b"\x55\x48\x89\xfe\x48\x83\xc7\x05\x48\x89\xe5\x5d\xc3".ljust(16, b"\x90")
"""push %rbp; mov %rdi, %rsi; add $5, %rdi; mov %rsp, %rbp."""
SAVES = b"\x41\x54\x55\x53\x48\x89\xfd\x5b\x5d\x41\x5c\xc3".ljust(16, b"\x90")
"""push %r12; push %rbp; push %rbx; mov %rdi, %rbp; ..."""
PLAIN = b"\x8d\x04\x37\xc3".ljust(16, b"\x90")
"""A leaf without a frame."""
START_UP = b"\x80\x3d\0\0\0\0\0\x75\x2b\x55\x48\x83\x3d\0\0\0\0\0\x48\x89\xe5".ljust(32, b"\x90")
"""GCC's __do_global_dtors_aux, which every program has."""


def call(to: int, at: int) -> bytes:
    return b"\xe8" + struct.pack("<i", to - at - 5)


@pytest.mark.parametrize(
    ("code", "keeps"),
    [
        pytest.param(FRAMED * 9, True, id="frames"),
        pytest.param(SCHEDULED * 9, True, id="with-instructions-between"),
        pytest.param(FRAMED * 9 + SAVES, True, id="data-among-frames"),
        pytest.param(SAVES * 9, False, id="saved-for-use"),
        pytest.param(FRAMED * 3 + SAVES * 3, False, id="both"),
        pytest.param(PLAIN * 9, False, id="leaves"),
        pytest.param(START_UP + PLAIN * 9, False, id="start-up-code"),
        pytest.param(FRAMED + PLAIN * 8 + call(16, 144) + call(64, 149), False, id="called"),
        pytest.param(b"", False, id="nothing"),
    ],
)
def test_code_that_keeps_frame_pointers(code: bytes, *, keeps: bool) -> None:
    assert keeps_frame_pointers(code.ljust(256, b"\x90")) is keeps


PUSHES = re.compile(
    rb"(?P<saved>\x41[\x54-\x57]\x55)"
    rb"|(?<!\x41)\x55(?:(?!\x48\x83\x3d)(?P<kept>.{0,16}?(?:\x48\x89\xe5|\x48\x8b\xec))"
    rb"|(?P<used>\x53|\x41[\x54-\x57]|\x48\x89[^\xe5]))",
    re.DOTALL,
)
"""What `_count_pushes` looks for, as one pattern, which takes ten times as long."""
INTERESTING = b"\x41\x53\x54\x55\x57\x48\x89\xe5\x8b\xec\x83\x3d\x90"


@given(st.lists(st.sampled_from(INTERESTING), max_size=60).map(bytes))
def test_pushes_are_those_of_the_pattern(code: bytes) -> None:
    found = Counter(push.lastgroup for push in PUSHES.finditer(code))
    assert _count_pushes(code) == (found["kept"], found["saved"] + found["used"])


def file_of(code: bytes) -> CfiFile:
    """Rules at the first and the last 64 bytes of 256 KiB, and code without between them."""
    text = 1 << 18
    section = Section().fde(TEXT, 0x40).fde(TEXT + text - 0x40, 0x40)
    image = Image({".eh_frame": (FRAME, section.data)}, text=text, code=code.ljust(text, b"\x90"))
    return CfiFile(image)


def test_a_gap_is_judged_the_same_as_a_whole_and_window_by_window() -> None:
    """Frames in the first 96 KiB: all that the first block is judged by, and not enough behind."""
    code = b"\x90" * 0x40 + FRAMED * 0x1800 + SAVES * 0x1000
    whole = file_of(code)
    rows = whole.rows
    index, blocks = cut_all(rows, whole.first_window, whole.window_count)
    frameless = 0
    for number in range(whole.window_count):
        windowed = file_of(code)
        start = (windowed.first_window + number) << WINDOW_BITS
        block = windowed.window(windowed.first_window + number)
        at = index[number] - 1
        same = blocks[at : at + 1 + blocks[at]]
        for offset in (0, 0x3F, 0x40, 0x200, 0x3FF):
            address = start + offset
            if not whole.text.start <= address < whole.text.end:
                continue
            rule = windowed.table.rules[find_in_block(block, offset)]
            assert rule == whole.table.rules[find_in_block(array("I", same), offset)]
            if find_in_block(block, offset) != NO_RULE and rule.cfa == DEPTH_FRAMELESS:
                assert windowed.stack_depth(address) == DEPTH_FRAMELESS
                frameless += 1
    assert 900 < frameless < 5 * (whole.window_count - 60)


def unwind(code: bytes, pc: int, *words: int, fp: int = SP + 0x80) -> tuple[list[int], Reason]:
    """A leaf in code without rules, and `words` at its stack pointer."""
    cfi = file_of(code)
    space = AddressSpace([CodeMapping(BIAS + TEXT, BIAS + TEXT + (1 << 18), BIAS, "file")])
    registers: list[int | None] = [None] * 17
    registers[X86_64.sp], registers[X86_64.fp] = SP, fp
    stack = struct.pack(f"<{len(words)}Q", *words).ljust(0x100, b"\0")
    found = Unwinder(X86_64, space, lambda _: cfi).unwind(pc, registers, stack)
    return found.frames, found.reason


AT = BIAS + TEXT + 0x100
"""A function that is called at 0x40 behind it."""


def code_with(function: bytes, before: bytes | None = None, rest: bytes = PLAIN * 8) -> bytes:
    calls = (call(0x100, 0x140) if before is None else before).rjust(8, b"\x90")
    return b"\x90" * 0x100 + function.ljust(0x3D, b"\x90") + calls + rest


BEHIND = AT + 0x45


def test_the_word_at_the_stack_pointer_is_a_leafs_caller() -> None:
    """Its caller has no frame pointer either, so the stack is cut behind it."""
    found = unwind(code_with(PLAIN), AT + 3, BEHIND)
    assert found == ([AT + 3, BEHIND], Reason.NO_UNWIND_INFO)


@pytest.mark.parametrize("before", [b"\xff\xd0", b"\xff\x15\0\0\0\0"], ids=["register", "slot"])
def test_a_leaf_that_was_called_through_a_pointer(before: bytes) -> None:
    found = unwind(code_with(PLAIN, before), AT + 2, BEHIND)
    assert found == ([AT + 2, BEHIND], Reason.NO_UNWIND_INFO)


@pytest.mark.parametrize(
    ("before", "word"),
    [
        (b"\x90" * 8, BEHIND),  # no call
        (call(0x400, 0x140), BEHIND),  # of a function behind the leaf
        (None, BEHIND + 1),
        (None, 12345),
    ],
    ids=["no-call", "another", "off-by-one", "nonsense"],
)
def test_other_words_are_no_callers(before: bytes | None, word: int) -> None:
    code = code_with(b"\x90" * 0x38 + b"\xc3", before)
    assert unwind(code, AT + 2, word) == ([AT + 2], Reason.NO_UNWIND_INFO)


@pytest.mark.parametrize(
    ("offset", "words", "callers"),
    [
        (0, (BEHIND,), 1),  # at its first instruction
        (1, (SP + 0x80, BEHIND), 1),  # it has pushed the frame pointer
        (8, (BEHIND,), 1),  # at ret
        (-5, (BEHIND,), 1),  # some instructions before it, and the frame pointer is popped
    ],
)
def test_where_a_function_with_a_frame_pointer_has_none(
    offset: int, words: tuple[int, ...], callers: int
) -> None:
    if offset < 0:
        offset += len(EPILOGUE)
        code = code_with(EPILOGUE, rest=FRAMED * 99)
    else:
        code = code_with(FRAMED, rest=FRAMED * 99)
    found, _ = unwind(code, AT + offset, *words)
    assert found[1 : 1 + callers] == [BEHIND]


def test_a_frame_that_was_set_up_is_followed() -> None:
    """A word that an earlier call left lies at the stack pointer."""
    words = [BEHIND] + [0] * 31
    words[16:18] = [0, BEHIND + 1]
    code = code_with(FRAMED, rest=FRAMED * 99)
    found, reason = unwind(code, AT + 5, *words)
    assert (found, reason) == ([AT + 5, BEHIND + 1], Reason.FP_GUESS)


def test_a_gap_behind_the_last_entry_is_judged_in_each_of_its_windows() -> None:
    """As in musl's static programs, where libc has no entries and follows the program."""
    section = Section().fde(TEXT, 0x40)
    image = Image({".eh_frame": (FRAME, section.data)}, text=1 << 14, code=SAVES * 0x400)
    file = CfiFile(image)
    whole = file.whole()
    assert len(whole.places) == file.window_count
    for place in whole.places:
        last = whole.blocks[place - 1 + whole.blocks[place - 1]] >> OFFSET_BITS
        assert file.table.rules[last].cfa == DEPTH_FRAMELESS
