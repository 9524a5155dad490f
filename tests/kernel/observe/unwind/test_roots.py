"""Stacks of programs that lack call frame information in part, from the innermost to the
outermost function.

Each program knows its own callers: a whole stack that lacks one of them fails the test.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.support.programs.stack_walks import (
    LEAF,
    LEVELS,
    build,
    check_counters,
    check_equality,
    own_names,
    share_in_bpf,
    walk_run,
)

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "nm", "x86_64"),
]

_SPINS = LEAF + LEVELS + "int main(void) { for (;;) sink += level1(sink); }"
_CHAIN = ("leaf", "level5", "level4", "level3", "level2", "level1")
_FRAMES = ("-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer")


def _check(program: Path, callers: tuple[str, ...], *, is_compared: bool = True) -> None:
    """Check that nearly all stacks are whole, and that these have every function of the program.

    With `is_compared`, user space makes the same of the copy of each sample.
    """
    run = walk_run(program, copies_all=True, copies_per_second=0)
    check_counters(run)
    if is_compared:
        check_equality(run)
    assert share_in_bpf(run) > 0.95, run.ends
    late = [each.walked for each in run.late()]
    names = Counter(
        tuple(own_names(run, program, walk.frames)) for walk in late if walk.reason.is_whole
    )
    assert names.total() > 0.95 * len(late), run.ends
    whole = _CHAIN + callers
    wrong = {found: count for found, count in names.items() if found != whole[-len(found) :]}
    assert not wrong, wrong
    assert names[whole] > names.total() / 2


def _strip_rules(program: Path) -> None:
    """Remove symbols and call frame information, and keep the names beside the program."""
    listed = subprocess.check_output(["nm", "-n", program], text=True)
    program.with_suffix(".nm").write_text(listed)
    sections = ["-R", ".eh_frame", "-R", ".eh_frame_hdr"]
    subprocess.run(["strip", *sections, program], check=True)


@pytest.mark.parametrize("link", [("-static",), ()], ids=["static", "dynamic"])
@pytest.mark.needs("musl-gcc")
def test_a_program_of_musl(tmp_path: Path, link: tuple[str, ...]) -> None:
    """main is called by a function of musl that only a jump through a register leads to."""
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(_SPINS)
    flags = ("-O2", "-fomit-frame-pointer", "-fasynchronous-unwind-tables", "-w")
    subprocess.run(["musl-gcc", *flags, *link, "-o", program, source], check=True)
    stage2 = ("libc_start_main_stage2",) if link else ()  # else it is the dynamic linker's
    _check(program, ("main", *stage2, "_start"))


def test_a_program_without_unwind_tables_that_has_debug_frame(tmp_path: Path) -> None:
    """.eh_frame has entries, too: of the start files that a compiler links."""
    program = build(tmp_path, _SPINS, "-g", "-fno-asynchronous-unwind-tables")
    sections = subprocess.check_output(["readelf", "-SW", program], text=True)
    assert ".debug_frame" in sections
    assert ".eh_frame" in sections
    _check(program, ("main", "_start"))


def test_a_stripped_program_with_frame_pointers(tmp_path: Path) -> None:
    """Glibc's register of the frame pointer is 0 at its entry, where no chain of frames ends."""
    program = build(tmp_path, _SPINS, *_FRAMES)
    _strip_rules(program)
    _check(program, ("main", "_start"))


_FIBER = (
    LEAF
    + LEVELS
    + r"""
static char room[65536] __attribute__((aligned(16)));
__attribute__((used)) static void fiber(void) { for (;;) sink += level1(sink); }
void starts(void *top, void (*body)(void)); // as Boost.Context's make_fcontext does
__asm__(
  ".text\n starts: mov %rdi, %rsp\n mov %rsi, %rbx\n lea finish(%rip), %rbp\n"
  "trampoline: push %rbp\n jmp *%rbx\n"
  "finish: xor %rdi, %rdi\n call _exit\n hlt\n");
int main(void) { starts(room + sizeof(room), fiber); }
"""
)


def test_a_fiber_of_boost(tmp_path: Path) -> None:
    """Its function returns to code that ends the process; nothing called it."""
    program = build(tmp_path, _FIBER)
    _check(program, ("fiber", "finish"))


_SWITCHES = (
    LEAF
    + LEVELS
    + r"""
static char room[65536] __attribute__((aligned(16)));
static void spins(void) { for (;;) sink += level1(sink); }
void switches(void *top, void (*body)(void)); // as SBCL's call_into_lisp_first_time does
__asm__(
  ".text\n .type switches, @function\n switches: .cfi_startproc\n"
  "push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
  "mov %rsp, %rbp\n .cfi_def_cfa_register %rbp\n"
  "mov %rdi, %rsp\n push %rbp\n mov %rsp, %rbp\n"
  ".cfi_escape 0x0f, 5, 0x76, 0, 0x06, 0x40, 0x22\n" // *(%rbp) + 16
  "call *%rsi\n hlt\n .cfi_endproc\n .size switches, .-switches\n");
int main(void) { switches(room + sizeof(room), spins); }
"""
)


def test_a_switch_of_stacks_that_rules_describe(tmp_path: Path) -> None:
    """A copy has one of the stacks; functions below the switch get their tables all the same."""
    callers = ("spins", "switches", "main", "_start")
    _check(build(tmp_path, _SWITCHES), callers, is_compared=False)
