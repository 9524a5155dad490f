"""Programs, and places in them, that unwinders get wrong: each with the one stack that is true."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from purebpf.observe.unwind.stack_walker import WalkedStack
from purebpf.unwind.reason import Reason
from tests.support.nightly import by_day
from tests.support.programs import walking
from tests.support.programs.stack_walks import (
    LEAF,
    Run,
    build,
    check_counters,
    own_names,
    share_in_bpf,
    walk_run,
)
from tests.support.programs.walking import Walking

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "nm", "x86_64"),
]

_CHAIN = ["main", "level1", "level2", "level3", "leaf"]


class _Walk(NamedTuple):
    """A walk in BPF: how it ended, and the program's functions, outermost first."""

    reason: Reason
    guessed: int
    names: tuple[str, ...]


def _run(tmp_path: Path, source: str, *flags: str, share: float = 0.95) -> Counter[_Walk]:
    """Walk a program; that share of the samples in BPF, each equal to what its copy gives."""
    program = build(tmp_path, source, *flags)
    run = walk_run(program, copies_all=True, copies_per_second=0)
    check_counters(run)
    _check_copies(run.found)
    assert share_in_bpf(run) >= share, run.ends
    return Counter(
        _Walk(
            each.walked.reason,
            each.walked.guessed,
            tuple(own_names(run, program, each.walked.frames)[::-1]),
        )
        for each in run.late()
    )


def _check_ends_with(walks: Counter[_Walk], *chain: str, share: float = 0.95) -> None:
    """All walks but a few are the chain, some of its leaves missing; all are whole."""
    for walk in walks:
        if "main" in walk.names:
            names = walk.names[walk.names.index("main") :]
            assert names == chain[: len(names)], walk
    assert sum(count for walk, count in walks.items() if walk.reason.is_whole) > (
        share * walks.total()
    )
    longest = sum(count for walk, count in walks.items() if walk.names[-len(chain) :] == chain)
    assert longest > walks.total() / 2, walks


# Places of the sample

_TRAP = (
    LEAF
    + r"""
__asm__(".text\n .type decoy, @function\n decoy: .cfi_startproc\n sub $200, %rsp\n"
        ".cfi_def_cfa_offset 208\n ud2\n .cfi_endproc\n"
        ".globl traps\n .type traps, @function\n traps: .cfi_startproc\n ud2\n ret\n .cfi_endproc");
void traps(void);
STEP void handler(int signal) { for (;;) sink += leaf(sink); }
int main(void) {
  static char alternate[65536];
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
  struct sigaction action = {.sa_handler = handler, .sa_flags = HANDLED};
  sigaltstack(&stack, 0);
  sigaction(SIGILL, &action, 0);
  traps();
  return sink;
}
"""
)
"""The rules of the function before are others: that of a caller, at its address - 1, is wrong."""


@pytest.mark.parametrize(
    "flags", by_day(["0", "SA_ONSTACK"], ["SA_ONSTACK"]), ids=["stack", "alternate-stack"]
)
def test_a_signal_at_the_first_instruction_of_a_function(tmp_path: Path, flags: str) -> None:
    walks = _run(tmp_path, _TRAP, f"-DHANDLED={flags}")
    _check_ends_with(walks, "main", "traps", "handler", "leaf")


_FIRST = (
    LEAF
    + r"""
__asm__(".text\n .type decoy, @function\n decoy: .cfi_startproc\n sub $200, %rsp\n"
        ".cfi_def_cfa_offset 208\n ud2\n .cfi_endproc\n"
        ".globl handler\n .type handler, @function\n handler: .cfi_startproc\n jmp handler\n"
        ".cfi_endproc");
void handler(int);
STEP void raises(void) { raise(SIGUSR1); sink++; }
int main(void) {
  signal(SIGUSR1, handler);
  raises();
  return sink;
}
"""
)


def test_the_first_instruction_of_a_signal_handler(tmp_path: Path) -> None:
    walks = _run(tmp_path, _FIRST)
    _check_ends_with(walks, "main", "raises", "handler")


_NORETURN = (
    LEAF
    + r"""
__attribute__((noinline, noclone, noreturn)) void never(void) { for (;;) sink += leaf(sink); }
__asm__(".text\n .globl ends\n .type ends, @function\n ends: .cfi_startproc\n sub $8, %rsp\n"
        ".cfi_def_cfa_offset 16\n call never\n .cfi_endproc\n"
        ".type decoy, @function\n decoy: .cfi_startproc\n .cfi_def_cfa_offset 160\n ud2\n"
        ".cfi_endproc");
void ends(void);
int main(void) { ends(); return sink; }
"""
)


def test_a_call_that_is_the_last_instruction_of_a_function(tmp_path: Path) -> None:
    """The return address is that of the next function, which has other rules."""
    walks = _run(tmp_path, _NORETURN)
    _check_ends_with(walks, "main", "ends", "never", "leaf")


_FAULTS = (
    LEAF
    + r"""
#include <sys/mman.h>
STEP void touches(char *room) { for (long at = 0; at < 4 << 20; at += 4096) room[at] = 1; }
int main(void) {
  char *room = mmap(0, 4 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (;;) { touches(room); madvise(room, 4 << 20, MADV_DONTNEED); }
}
"""
)


def test_page_faults(tmp_path: Path) -> None:
    walks = _run(tmp_path, _FAULTS)
    _check_ends_with(walks, "main", "touches")


# Code that compilers do not make

_ASM = (
    LEAF
    + r"""
STEP void inner(void) { for (;;) sink += leaf(sink); }
__asm__(".text\n .globl middle\n .type middle, @function\n middle: push %rbp\n PROLOGUE\n"
        "call inner\n add $ROOM, %rsp\n pop %rbp\n ret\n");
void middle(void);
STEP void outer(void) { middle(); sink++; }
int main(void) { outer(); return sink; }
"""
)


def test_assembly_without_rules_that_has_a_frame(tmp_path: Path) -> None:
    source = _ASM.replace("PROLOGUE", "mov %rsp, %rbp\\n sub $32, %rsp").replace("ROOM", "32")
    walks = _run(tmp_path, source)
    _check_ends_with(walks, "main", "outer", "middle", "inner", "leaf")
    assert {(walk.reason, walk.guessed) for walk in walks if "inner" in walk.names} == {
        (Reason.FP_GUESS, 1)
    }


@pytest.mark.parametrize("register", by_day(["$0x1234567", "$8", "$-8"], ["$8"]))
def test_assembly_without_rules_or_a_frame(tmp_path: Path, register: str) -> None:
    """The frame pointer holds something else; pushes and pops lead back from the return."""
    prologue = f"sub $40, %rsp\\n mov {register}, %rbp"
    source = _ASM.replace("PROLOGUE", prologue).replace("ROOM", "40")
    walks = _run(tmp_path, source)
    _check_ends_with(walks, "main", "outer", "middle", "inner", "leaf")
    assert {(walk.reason, walk.guessed) for walk in walks if "inner" in walk.names} == {
        (Reason.COMPLETE, 0)
    }


@pytest.mark.parametrize("register", by_day(["$0x1234567", "$8", "$-8"], ["$8"]))
def test_assembly_that_aligns_its_stack(tmp_path: Path, register: str) -> None:
    """The stack pointer from before is in a word on the stack."""
    prologue = f"mov %rsp, %rax\\n and $-64, %rsp\\n push %rax\\n mov {register}, %rbp"
    source = _ASM.replace("PROLOGUE", prologue).replace("add $ROOM, %rsp", "mov (%rsp), %rsp")
    walks = _run(tmp_path, source)
    _check_ends_with(walks, "main", "outer", "middle", "inner", "leaf")
    assert {(walk.reason, walk.guessed) for walk in walks if "inner" in walk.names} == {
        (Reason.COMPLETE, 0)
    }


def test_assembly_that_aligns_its_stack_by_the_frame_pointer(tmp_path: Path) -> None:
    """Code around it has no frame pointers, so that its instructions are read."""
    prologue = "mov %rsp, %rbp\\n and $-64, %rsp\\n sub $96, %rsp"
    source = _ASM.replace("PROLOGUE", prologue).replace("add $ROOM, %rsp", "mov %rbp, %rsp")
    without = "used: push %rbp\\n push %rbx\\n mov $5, %ebp\\n pop %rbx\\n pop %rbp\\n ret\\n"
    source = source.replace("middle: push", without + ".skip 64, 0x90\\n middle: push")
    walks = _run(tmp_path, source)
    _check_ends_with(walks, "main", "outer", "middle", "inner", "leaf")
    assert {(walk.reason, walk.guessed) for walk in walks if "inner" in walk.names} == {
        (Reason.COMPLETE, 0)
    }


_BY_R12 = "push %r12\\n mov %rsp, %r12\\n and $-64, %rsp\\n "


@pytest.mark.parametrize(
    ("prologue", "back"),
    [
        (_BY_R12 + "mov $8, %ebp", "mov %r12, %rsp\\n pop %r12"),
        (_BY_R12 + "mov %rsp, %rbp", "mov %r12, %rsp\\n pop %r12"),
        ("mov %rsp, %rax\\n and $-64, %rsp\\n push %rax\\n mov %rsp, %rbp", "mov (%rsp), %rsp"),
    ],
    ids=["register", "register, aligned frame", "word, aligned frame"],
)
def test_assembly_that_aligns_its_stack_otherwise(tmp_path: Path, prologue: str, back: str) -> None:
    """The stack is cut where its distance from the return address is not known, or where code only
    looks as if it kept a frame pointer.
    """
    source = _ASM.replace("PROLOGUE", prologue).replace("add $ROOM, %rsp", back)
    walks = _run(tmp_path, source, share=0)
    inside = [walk for walk in walks if "inner" in walk.names]
    assert inside
    for walk in inside:
        assert walk.names in (("middle", "inner"), ("middle", "inner", "leaf"))
        assert not walk.reason.is_whole, walk


_ASM_LEAF = (
    LEAF
    + r"""
__asm__(".text\n .globl spins\n .type spins, @function\n spins: mov $5000, REGISTER\n"
        "1: dec REGISTER\n jnz 1b\n ret\n .skip 64\n");
void spins(void);
STEP void outer(void) { CALL; sink++; }
int main(void) { void (*volatile pointer)(void) = spins; for (;;) outer(); }
"""
)


@pytest.mark.parametrize("register", by_day(["%eax", "%ecx"], ["%ecx"]))
@pytest.mark.parametrize("call", ["spins()", "(*pointer)()"], ids=["direct", "pointer"])
def test_a_leaf_in_assembly_without_rules(tmp_path: Path, call: str, register: str) -> None:
    """An operand of `dec %ecx` is the opcode of `leave`."""
    source = _ASM_LEAF.replace("CALL", call).replace("REGISTER", register)
    if call != "spins()":
        source = source.replace("void (*volatile pointer)(void) = spins; ", "")
        source = source.replace("STEP void", "void (*volatile pointer)(void) = spins;\nSTEP void")
    walks = _run(tmp_path, source)
    _check_ends_with(walks, "main", "outer", "spins")
    inside = Counter[tuple[Reason, int]]()
    for walk, count in walks.items():
        if "spins" in walk.names:
            inside[walk.reason, walk.guessed] += count
    assert inside[Reason.COMPLETE, 0] > 0.95 * inside.total(), inside


# Processes and threads


class _Found(NamedTuple):
    """A stack of some process: how it ended, the program's functions, and whether BPF had it."""

    tgid: int
    reason: Reason
    in_bpf: bool
    names: tuple[str, ...]


def _named(found: Iterable[WalkedStack], program: Path, maps: str) -> list[_Found]:
    """With names, by the mappings of one process for all."""
    run = Run([], 0, Counter(), Counter(), 0, maps)
    return [
        _Found(
            each.tgid,
            each.trace.reason,
            each.walked.reason is Reason.COMPLETE,
            tuple(own_names(run, program, each.trace.frames)[::-1]),
        )
        for each in found
        if each.trace.reason not in (Reason.COPY_LOST, Reason.COPY_REFUSED)
    ]


def _walk_processes(program: Path, comm: str, *before: object) -> list[_Found]:
    """Stacks of a program, of its threads that are called `comm`."""
    with Walking(copies_all=True, copies_per_second=0) as walked:
        walked.only(comm)
        walked.start(*before, program)
        walked.collect(300, whole=100)
        tgid = walked.found[-1].tgid
        maps = Path(f"/proc/{tgid}/maps").read_text()
        walked.stop()
        _check_copies(walked.found)
        return _named(walked.found, program, maps)


def _check_copies(found: Iterable[WalkedStack]) -> None:
    """What BPF called whole is what the copy of the same sample gives."""
    for each in found:
        if each.is_copied and each.walked.reason in (Reason.COMPLETE, Reason.FP_GUESS):
            assert each.trace.reason is Reason.COPY_SHORT or each.walked == each.trace


def _check_chain(found: Collection[_Found], *chain: str, root: str = "main") -> None:
    """All stacks but those taken as the thread began are whole, and the chain from `root` on."""
    whole = [each for each in found if each.reason in (Reason.COMPLETE, Reason.FINISHED)]
    assert len(whole) > 0.95 * len(found), Counter(each.reason for each in found)
    deep = 0
    for each in whole:
        if root in each.names:
            names = each.names[each.names.index(root) :]
            if names[1:] == ("_init",):  # the symbol before the PLT, which has none
                names = names[:1]
            assert names == chain[: len(names)], each
            deep += names == chain
    assert deep > len(found) / 2, Counter(each.names for each in found)
    assert sum(each.in_bpf for each in found) > len(found) / 4


_VFORK = (
    walking.LEVELS
    + r"""
#include <sys/prctl.h>
#include <unistd.h>
STEP void begins(void) {
  if (!vfork()) {
    prctl(PR_SET_NAME, "child");
    for (;;) sink += level1(sink);
  }
}
int main(void) { begins(); return sink; }
"""
)


def test_a_child_of_vfork_runs_on_the_stack_of_its_parent(tmp_path: Path) -> None:
    program = build(tmp_path, _VFORK)
    found = _walk_processes(program, "child")
    _check_chain(found, "main", "begins", *_CHAIN[1:])


_CLONE = (
    "#define _GNU_SOURCE\n"
    + walking.LEVELS
    + r"""
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
STEP int runs(void *_) {
  prctl(PR_SET_NAME, "child");
  for (;;) sink += level1(sink);
}
int main(void) {
  char *room = mmap(0, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  clone(runs, room + (1 << 20), FLAGS, 0);
  for (;;) pause();
}
"""
)


_PROCESS, _OWN_MEMORY = "CLONE_VM|SIGCHLD", "SIGCHLD"
_THREAD = "CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD"


@pytest.mark.parametrize(
    "flags",
    by_day([_PROCESS, _THREAD, _OWN_MEMORY], [_THREAD]),
    ids=["process", "thread", "own-memory"],
)
def test_a_clone_with_a_stack_of_its_own(tmp_path: Path, flags: str) -> None:
    program = build(tmp_path, _CLONE, f"-DFLAGS=({flags})")
    found = _walk_processes(program, "child")
    _check_chain(found, "runs", *_CHAIN[1:], root="runs")


_CLONE3 = (
    "#define _GNU_SOURCE\n"
    + walking.LEVELS
    + r"""
#include <linux/sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
void runs(void) {
  prctl(PR_SET_NAME, "child");
  for (;;) sink += level1(sink);
}
STEP void unrelated(void) { sink += level1(sink); }
static char room[1 << 20] __attribute__((aligned(4096)));
STEP long begins(struct clone_args *args) {
  long result;
  __asm__ volatile("syscall\n test %0, %0\n jnz 1f\n call runs\n 1:"
                   : "=a"(result) : "0"(SYS_clone3), "D"(args), "S"(sizeof(*args))
                   : "rcx", "r11", "memory");
  return result;
}
int main(void) {
  struct clone_args args = {.flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                     CLONE_THREAD,
                            .stack = (long)room, .stack_size = sizeof(room) - 4096};
  unsigned long *top = (unsigned long *)(room + sizeof(room) - 4096);
  for (int i = 0; i < 512; i++) top[i] = FILL;
  begins(&args);
  for (;;) pause();
}
"""
)


@pytest.mark.parametrize(
    "fill",
    by_day(["0", "(long)unrelated + 1", "(long)room", "12345"], ["(long)unrelated + 1"]),
    ids=["nothing", "code", "data", "nonsense"],
)
def test_a_bare_clone3_is_never_whole(tmp_path: Path, fill: str) -> None:
    """The rules say that its function was called; nothing above the new stack called."""
    program = build(tmp_path, _CLONE3, f"-DFILL={fill}")
    with Walking(copies_all=True, copies_per_second=0) as walked:
        walked.only("child")
        child = walked.start(program)
        walked.collect(200)
        maps = Path(f"/proc/{child.pid}/maps").read_text()
        walked.stop()
        _check_copies(walked.found)
        found = _named(walked.found, program, maps)
    assert len(found) > 50
    for each in found:  # the frame that it was cut at may be no frame
        names = each.names
        names = names[names.index("begins") :] if "begins" in names else ()
        assert names == ("begins", "runs", *_CHAIN[1:])[: len(names)], each
        assert not each.reason.is_whole, each
    if fill == "0":
        assert any(each.reason is Reason.NO_CALLER for each in found)


# Files


_LLD = ("lld", "lld-gaps")
"""One file with and one without gaps by day; the other layouts at night."""


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [
        pytest.param("gcc", (), id="stripped"),
        pytest.param("gcc", ("-Wl,--no-eh-frame-hdr",), id="no-index"),
        pytest.param("gcc", ("-flto", "-O3"), id="lto", marks=pytest.mark.nightly),
        *(
            pytest.param(
                "clang-19",
                ("-fuse-ld=lld", *flags),
                marks=[
                    pytest.mark.needs("clang", "lld"),
                    *([] if name in _LLD else [pytest.mark.nightly]),
                ],
                id=name,
            )
            for name, flags in (
                ("lld", ()),
                ("lld-static", ("-static",)),
                ("lld-lto", ("-flto",)),
                ("lld-one-segment", ("-Wl,--no-rosegment",)),
                ("lld-gaps", ("-Wl,-z,separate-loadable-segments",)),
                ("lld-ibt", ("-fcf-protection=full", "-Wl,-z,force-ibt", "-Wl,-z,lazy")),
            )
        ),
    ],
)
def test_linkers(tmp_path: Path, compiler: str, flags: tuple[str, ...]) -> None:
    source = walking.CHAIN
    if "-static" not in flags:  # by a PLT
        source = "#include <unistd.h>\n" + source.replace("for (;;)", "for (;; getppid())")
    program = walking.build(tmp_path, source, *flags, cc=compiler)
    if not flags:
        listed = subprocess.check_output(["nm", "-n", program])
        program.with_suffix(".nm").write_bytes(listed)
        subprocess.run(["strip", program], check=True)
    _check_chain(_walk_processes(program, "program"), *_CHAIN)


_OVERLAY = """
set -e
mount -t tmpfs none "$1"
mkdir "$1/lower" "$1/upper" "$1/work" "$1/merged"
cp "$0" "$1/$2/program"
mount -t overlay overlay \
    -o "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work" "$1/merged"
exec "$1/merged/program"
"""


@pytest.mark.needs("unshare", "mount_namespace", "overlay")
@pytest.mark.parametrize("layer", ["lower", "upper"])
def test_a_program_on_overlayfs(tmp_path: Path, layer: str) -> None:
    """The numbers of its file in maps are those of the layer, or of the overlay, by kernel."""
    program = walking.build(tmp_path, walking.CHAIN)
    inside = tmp_path / "inside"
    inside.mkdir()
    command = ["unshare", "--mount", "sh", "-c", _OVERLAY, program, inside, layer]
    with Walking(copies_all=True, copies_per_second=0) as walked:
        walked.only("program")
        child = walked.start(*command)
        walked.collect(200, whole=50)
        maps = Path(f"/proc/{child.pid}/maps").read_text()
        walked.stop()
        _check_copies(walked.found)
        merged = inside / "merged" / "program"
        renamed = maps.replace(str(merged), str(program))
        _check_chain(_named(walked.found, program, renamed), *_CHAIN)
