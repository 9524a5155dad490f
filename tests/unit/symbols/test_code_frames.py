"""Frames of code by its instructions, against the unwind tables that compilers write."""

from __future__ import annotations

import subprocess
from bisect import bisect_right
from pathlib import Path

import pytest

from purebpf.symbols.code_frames import Base, CodeFrame, frames_of
from purebpf.symbols.elf_image import ElfImage
from purebpf.unwind.cfi_file import CfiFile

_SP, _FP, _RA = 7, 6, 16


def assembled(tmp_path: Path, text: str) -> bytes:
    """The code of some assembly."""
    source, made, code = (tmp_path / name for name in ("code.s", "code.o", "code.bin"))
    source.write_text(text + "\n")
    subprocess.run(["as", "-o", made, source], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", made, code], check=True)
    return code.read_bytes()


def depths(tmp_path: Path, text: str) -> list[tuple[int, int]]:
    return [(frame.depth, frame.fp) for frame in frames_of(assembled(tmp_path, text))]


pytestmark = pytest.mark.needs("gcc", "x86_64")


def test_pushes_and_the_frame_pointer(tmp_path: Path) -> None:
    text = "push %rbx\n push %rbp\n sub $24, %rsp\n mov $1, %ebp\n add $24, %rsp\n pop %rbp\n"
    assert depths(tmp_path, text + "pop %rbx\n ret") == [
        (0, 0), (8, 0), (16, 16), (40, 16), (16, 16), (8, 0), (0, 0),
    ]  # fmt: skip


def test_a_frame_pointer_that_is_stored(tmp_path: Path) -> None:
    text = "lea -32(%rsp), %rsp\n mov %rbp, 8(%rsp)\n xor %ebp, %ebp\n mov 8(%rsp), %rbp\n"
    assert depths(tmp_path, text + "lea 32(%rsp), %rsp\n ret") == [
        (0, 0), (32, 0), (32, 24), (32, 0), (0, 0),
    ]  # fmt: skip


def test_a_value_that_is_loaded_into_the_frame_pointer_is_not_the_callers(tmp_path: Path) -> None:
    text = "push %rbp\n push %rax\n mov (%rsp), %rbp\n pop %rax\n pop %rbp\n ret"
    assert depths(tmp_path, text) == [(0, 0), (8, 8), (16, 8), (8, 8), (0, 0)]


def test_loops_calls_and_branches(tmp_path: Path) -> None:
    text = "push %rbx\n 1: call 2f\n dec %ebx\n jne 1b\n js 3f\n pop %rbx\n ret\n 2: ret\n"
    found = depths(tmp_path, text + "3: pop %rbx\n ret")
    assert found == [(0, 0), (8, 0), (0, 0), (8, 0), (0, 0)]


@pytest.mark.parametrize(
    "unclear", ["mov %rbx, %rsp", "and $-64, %rsp", "pop %rsp", "mov 8(%rax), %rsp", "enter $8, $0"]
)
def test_a_stack_pointer_that_is_set_otherwise_is_not_known(tmp_path: Path, unclear: str) -> None:
    found = depths(tmp_path, f"push %rbx\n {unclear}\n pop %rbx\n ret")
    assert found == [(-1, 0), (8, 0), (0, 0)]


ALIGNED = "push %rbp\n mov %rsp, %rbp\n push %rbx\n and $-64, %rsp\n sub $512, %rsp\n {}\n"


@pytest.mark.parametrize(
    ("back", "behind"),
    [
        ("mov -8(%rbp), %rbx\n leave\n ret", []),
        ("lea -8(%rbp), %rsp\n pop %rbx\n pop %rbp\n ret", [(16, 8), (8, 8)]),
        ("mov -8(%rbp), %rbx\n mov %rbp, %rsp\n pop %rbp\n ret", [(8, 8)]),
    ],
)
def test_an_aligned_frame_is_found_by_the_frame_pointer(
    tmp_path: Path, back: str, behind: list[tuple[int, int]]
) -> None:
    for work in (
        "vmovdqa %ymm0, (%rsp)",
        "call 1f\n 1: mov (%rbp), %rax",
        "push %rbp\n mov $5, %ebx",
    ):
        frames = frames_of(assembled(tmp_path, ALIGNED.format(work) + back))
        found = [(one.depth, one.fp) for one in frames if one.base is Base.STACK_POINTER]
        assert found == [(0, 0), (8, 8), *behind, (0, 0)]
        assert frames[2][1:] == (8, 8, Base.FRAME_POINTER, 0)


SLOT = "push %rbp\n mov %rsp, %rax\n and $-64, %rsp\n sub $576, %rsp\n mov %rax, 512(%rsp)\n {}\n"


def test_an_aligned_frame_is_found_by_a_word_on_the_stack(tmp_path: Path) -> None:
    work = "push %rbx\n mov $5, %ebp\n call 1f\n 1: mov %ebp, 16(%rsp)\n"
    work += "mov %rbx, 528(%rsp)\n pop %rbx"
    text = SLOT.format(work) + "mov 512(%rsp), %rsp\n pop %rbp\n ret"
    found = [one[1:] for one in frames_of(assembled(tmp_path, text))]
    near, far = (8, 8, Base.SLOT, 512), (8, 8, Base.SLOT, 520)
    known = [near, far, near, (8, 8, Base.STACK_POINTER, 0), (0, 0, Base.STACK_POINTER, 0)]
    assert found == [(-1, 0, Base.STACK_POINTER, 0), *known]


@pytest.mark.parametrize(
    "change", ["mov %rbx, 512(%rsp)", "mov %rbx, 508(%rsp)", "sub $8, %rsp", "and $-64, %rsp"]
)
def test_a_word_that_is_not_there_leads_nowhere(tmp_path: Path, change: str) -> None:
    """The word is written, or is not the one that was written."""
    slot = "8(%rsp)" if change.startswith("sub") else "512(%rsp)"
    text = f"push %rbp\n {change}\n mov %rcx, %rdx\n mov {slot}, %rsp\n pop %rbp\n ret"
    found = [one[1:] for one in frames_of(assembled(tmp_path, text))]
    assert found[0] == (-1, 0, Base.STACK_POINTER, 0)
    assert found[-2:] == [(8, 8, Base.STACK_POINTER, 0), (0, 0, Base.STACK_POINTER, 0)]


def test_a_frame_pointer_from_an_aligned_frame_is_not_known(tmp_path: Path) -> None:
    text = SLOT.replace("push %rbp", "nop").format("mov %rbp, (%rsp)\n nop\n mov (%rsp), %rbp")
    found = [one[1:3] for one in frames_of(assembled(tmp_path, text + "mov 512(%rsp), %rsp\n ret"))]
    assert found == [(-1, 0), (0, 0), (0, 0)]  # behind the load, and behind the word


@pytest.mark.parametrize(
    "change",
    ["pop %rbp", "mov %rbx, %rbp", "xor %ebp, %ebp", "lea 8(%rbp), %rbp", "add $8, %rbp",
     "mov 8(%rsp), %rbp", "xchg %rax, %rbp", "mov $7, %ebp", "sub %rax, %rbp",
     "lea (%rsp,%rax), %rbp"],
)  # fmt: skip
def test_a_frame_pointer_that_is_changed_leads_nowhere(tmp_path: Path, change: str) -> None:
    text = ALIGNED.format(f"{change}\n nop\n") + "mov -8(%rbp), %rbx\n leave\n ret"
    found = [one[1:4] for one in frames_of(assembled(tmp_path, text))]
    assert found == [(-1, 0, 0), (8, 8, Base.FRAME_POINTER), (0, 0, 0)]


def test_ways_by_either_pointer_do_not_disagree(tmp_path: Path) -> None:
    text = "push %rbp\n mov %rsp, %rbp\n test %eax, %eax\n je 1f\n pop %rbp\n ret\n 1: leave\n ret"
    found = frames_of(assembled(tmp_path, text))
    assert all(one.depth >= 0 for one in found)
    assert found[:2] == [CodeFrame(0, 0, 0), CodeFrame(1, 8, 8)]


def test_ways_that_disagree_are_not_known(tmp_path: Path) -> None:
    found = depths(tmp_path, "push %rdi\n test %eax, %eax\n je 1f\n pop %rbx\n 1: ret")
    assert found == [(-1, 0), (8, 0), (0, 0)]


def test_a_call_that_may_not_return_says_nothing(tmp_path: Path) -> None:
    text = "push %rbx\n call 1f\n {}\n 1: ret"
    assert depths(tmp_path, text.format("push %rbx\n pop %rbx"))[0] == (-1, 0)
    assert depths(tmp_path, text.format("nop"))[0] == (-1, 0)
    code = assembled(tmp_path, text.format("pop %rbx"))
    assert frames_of(code, 1)[0] == CodeFrame(0, 0, 0)
    assert frames_of(code, 10)[0] == CodeFrame(0, -1, 0)  # the call ends at 16


def test_the_return_from_a_signal_leads_nowhere(tmp_path: Path) -> None:
    text = "mov $15, %{}\n syscall\n push %rbx\n pop %rbx\n ret"
    for register in ("eax", "rax"):
        assert depths(tmp_path, text.format(register)) == [(-1, 0), (0, 0), (8, 0), (0, 0)]
    assert depths(tmp_path, text.replace("$15", "$16").format("eax"))[0] == (0, 0)


def test_an_indirect_jump_and_bytes_that_are_no_code_are_not_known() -> None:
    assert frames_of(bytes(1 << 20)) == [CodeFrame(0, -1, 0)]
    assert frames_of(bytes.fromhex("53 ff e0")) == [CodeFrame(0, -1, 0)]
    assert frames_of(bytes.fromhex("06 06 c3")) == [CodeFrame(0, -1, 0), CodeFrame(2, 0, 0)]
    assert frames_of(b"") == []


LIBRARIES = {"libcrypto.so.3": 0, "libstdc++.so.6": 20, "libz.so.1": 0}
"""Each with the least number of places by the frame pointer."""


@pytest.mark.parametrize("name", LIBRARIES)
def test_it_agrees_with_unwind_tables(name: str) -> None:
    """Compilers' tables, and those that OpenSSL's authors wrote for their assembly."""
    path = Path("/usr/lib/x86_64-linux-gnu", name)
    if not path.exists():
        pytest.skip(f"needs {path}")
    cfi = CfiFile(ElfImage.of_bytes(path.read_bytes(), name))
    start, end = cfi.text
    agreeing = known = by_fp = 0
    for address in range(start, end, max(1, (end - start) // 400)):
        fde = cfi.fde(address)
        if fde is None or fde.end - fde.start > 1 << 13:
            continue
        code = cfi.code(fde.start, fde.end - fde.start)
        frames = frames_of(code, fde.start)
        starts = [frame.offset for frame in frames]
        for at in starts:
            row = cfi.row(fde.start + at)
            frame = frames[bisect_right(starts, at) - 1]
            is_padding = code[at] in (0x66, 0x90) or code[at : at + 2] == b"\x0f\x1f"
            is_by_fp = frame.base is Base.FRAME_POINTER
            register = _FP if is_by_fp else _SP
            if row is None or row.cfa_register != register or frame.depth < 0 or is_padding:
                continue
            known += 1
            by_fp += is_by_fp
            saved = row.registers.get(_FP)
            is_freed = isinstance(saved, int) and -saved - 8 > frame.depth and not is_by_fp
            fp = 0 if saved is None or is_freed or not isinstance(saved, int) else -saved - 8
            agreeing += (row.cfa, fp) == (frame.depth + 8, frame.fp)
    assert known > 300
    assert by_fp >= LIBRARIES[name]
    assert agreeing == known
