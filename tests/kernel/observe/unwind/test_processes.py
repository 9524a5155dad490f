"""Walked stacks of processes that fork, execute, load, unload and end while they are sampled."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from purebpf.unwind.reason import Reason
from tests.support.host.faults import slow_host
from tests.support.nightly import by_day
from tests.support.programs.walking import CHAIN, LEVELS, Walking, build

pytestmark = pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "x86_64")

_WHOLE = {Reason.COMPLETE, Reason.FINISHED}

_CHILDREN = (
    LEVELS
    + r"""
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int forks;
static void handler(int signal) { forks = 1; }
int main(void) {
  signal(SIGUSR1, handler);
  while (!forks) sink += level1(1);
  for (;;) {
    if (!fork()) {
      prctl(PR_SET_NAME, "child");
      for (;;) sink += level1(1);
    }
    wait(0);
  }
}
"""
)
"""It forks once it is asked to; then a child at a time, for as long as each is let live."""
_SHORT = LEVELS + "int main(void) { for (int i = 0; i < 1500; i++) sink += level1(i); return 0; }"
_LIBRARY = LEVELS + "unsigned long enters(unsigned long x) { return level1(x) + N; }"
_LOADER = r"""
#include <dlfcn.h>
#include <sys/mman.h>
#include <time.h>
int main(int count, char **arguments) {
  volatile unsigned long sum = 0;
  for (int turn = 0;; turn++) {
    void *library = dlopen(arguments[1 + turn % 2], RTLD_NOW);
    unsigned long (*enters)(unsigned long) = dlsym(library, "enters");
    clock_t end = clock() + CLOCKS_PER_SEC * TURN_MS / 1000;
    while (clock() < end) sum += enters(turn);
    dlclose(library);
    mmap(0, 4096 * (1 + turn % 7), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
}
"""
_TURN = f"-DTURN_MS={500 if slow_host() else 50}"
"""As many samples of each library everywhere: `Walking` takes a tenth where all is emulated."""
_CLOCK = r"""
#include <time.h>
volatile unsigned long sink;
int main(void) {
  struct timespec now;
  for (;;) { clock_gettime(CLOCK_MONOTONIC, &now); sink += now.tv_nsec; }
}
"""


_COMPARED = 21
"""Walks of which the copy is compared."""


def _equal(walking: Walking) -> None:
    """What BPF called whole is what the copy of the same sample gives."""
    whole = 0
    for each in walking.found:
        if each.is_copied and each.walked.reason is Reason.COMPLETE:
            if each.trace.reason is not Reason.COPY_SHORT:
                assert each.walked == each.trace
            whole += 1
    assert whole >= _COMPARED


def _check_all_but_execve(walking: Walking) -> None:
    """All traces are whole but those taken in execve(2) and _exit(2), which drop the stack."""
    cut = [each.trace for each in walking.found if not each.trace.reason.is_whole]
    lost = {Reason.COPY_LOST: walking.stats["output_full"]}  # Python has not kept up
    cut = [trace for trace in cut if not lost.get(trace.reason)]
    assert len(cut) < len(walking.found) / 2  # the machine may be busy
    assert all(len(trace.frames) == 1 for trace in cut)
    assert {trace.reason for trace in cut} <= {
        Reason.NO_UNWIND_INFO,  # of the old program, between functions of the new
        Reason.UNKNOWN_MAPPING,
        Reason.PROCESS_GONE,
        Reason.COPY_SHORT,
    }


def _watch_children(walking: Walking, program: Path, children: int) -> int:
    """Let a program fork when its own stacks are known, and end each child when its own are.

    How many children had the tables of their parent.
    """
    parent = walking.start(program)
    walking.until(lambda: walking.missed[Reason.COMPLETE] > 20)
    walking.found.clear()
    walking.only("child")
    parent.send_signal(signal.SIGUSR1)
    inherited: set[int] = set()
    for _ in range(children):
        ended = {each.tgid for each in walking.found}
        walking.until(lambda ended=ended: _whole_walks(walking, ended).total() > 20)
        for tgid in _whole_walks(walking, ended):
            known = dict(walking.loaded.maps["procs"].items())
            inherited |= {tgid for tgid, each in known.items() if each.is_forked}
            os.kill(tgid, signal.SIGKILL)
    return len(inherited)


def _whole_walks(walking: Walking, ended: set[int]) -> Counter[int]:
    """Whole walks in BPF, by process, of those that have not ended."""
    found = [each for each in walking.found if each.walked.reason is Reason.COMPLETE]
    return Counter(each.tgid for each in found if each.tgid not in ended)


def test_a_child_begins_with_the_tables_of_its_parent(tmp_path: Path) -> None:
    program = build(tmp_path, _CHILDREN)
    with Walking() as walking:
        inherited = _watch_children(walking, program, 12)
        walking.stop()
        _check_all_but_execve(walking)
        by_child: dict[int, list[Reason]] = {}
        for each in sorted(walking.found, key=lambda each: each.time_ns):
            by_child.setdefault(each.tgid, []).append(each.walked.reason)
        assert len(by_child) >= 12
        for reasons in by_child.values():
            known = [reason is not Reason.PROCESS_UNKNOWN for reason in reasons]
            assert known == sorted(known)  # until its fork is read
        assert not walking.missed[Reason.NOT_BUILT]
        assert inherited


def test_walks_of_children_equal_the_evaluator(tmp_path: Path) -> None:
    program = build(tmp_path, _CHILDREN)
    with Walking(copies_all=True, copies_per_second=0) as walking:
        _watch_children(walking, program, 6)
        walking.stop()
        _equal(walking)
        _check_all_but_execve(walking)


def test_entries_go_when_processes_do(tmp_path: Path) -> None:
    program = build(tmp_path, _SHORT)
    with Walking() as walking:
        walking.only("program")
        for _ in range(60):
            walking.run(program)
            walking.drain()
        walking.stop()
        seen = {each.tgid for each in walking.found}
        assert len(seen) > 20
        assert not seen & dict(walking.loaded.maps["procs"].items()).keys()


@pytest.mark.parametrize(
    "flags",
    by_day([(), ("-static",), ("-no-pie",)], [()]),
    ids=["pie", "static", "no-pie"],
)
def test_a_process_that_is_gone_before_its_copy_is_read(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    program = build(tmp_path, _SHORT, *flags)
    with Walking(copies_per_second=0, pages=4096) as walking:
        walking.only("program")
        for _ in range(30):
            walking.run(program)
        walking.stop()
        assert len({each.tgid for each in walking.found}) > 10
        _check_all_but_execve(walking)


def test_processes_without_a_stack_are_not_taken_for_ones_with_a_cut_one(tmp_path: Path) -> None:
    """One that executes a program, or exits, has no user stack for most of that time."""
    with Walking(copies_per_second=0, pages=4096) as walking:
        walking.only("true")
        loop = "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"
        walking.run("/bin/sh", "-c", loop)
        walking.stop()
        lost = {Reason.COPY_LOST} if walking.stats["output_full"] else set()
        ends = Counter(each.trace.reason for each in walking.found if each.trace.reason not in lost)
        cut = sum(count for reason, count in ends.items() if not reason.is_whole)
        assert ends.total() > 5
        assert cut <= 1 + ends.total() / 20, ends


def test_without_who_follows_a_process_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    program = build(tmp_path, _SHORT)
    with Walking(follow=False, copies_per_second=0) as walking:
        walking.only("program")
        for _ in range(10):
            walking.run(program)
        walking.stop()
        lost = {Reason.COPY_LOST} if walking.stats["output_full"] else set()
        assert {Reason.PROCESS_GONE} <= set(walking.ends) <= {Reason.PROCESS_GONE} | lost


def test_a_copy_is_unwound_by_the_program_that_it_was_taken_of(tmp_path: Path) -> None:
    """Programs at the same addresses, one after the other in one process, all read afterwards."""
    first = build(tmp_path, _EXECUTES, "-no-pie", name="first")
    second = build(
        tmp_path, "int pad(int x) { return x * 3; }\n" + _SHORT, "-no-pie", name="second"
    )
    with Walking(copies_per_second=0, pages=4096) as walking:
        walking.only("first", "second")
        for _ in range(20):
            walking.run(first, second)
        walking.stop()
        for name in ("first", "second"):
            found = [each for each in walking.found if each.comm == name]
            assert sum(each.trace.reason in _WHOLE for each in found) > 20
        _check_all_but_execve(walking)


_EXECUTES = (
    LEVELS
    + r"""
#include <unistd.h>
int main(int count, char **arguments) {
  for (int i = 0; i < 1500; i++) sink += level1(i);
  execv(arguments[1], arguments + 1);
  return 1;
}
"""
)


def test_libraries_that_are_loaded_and_unloaded(tmp_path: Path) -> None:
    """Different code at the same addresses again and again; nothing says that one goes."""
    for number, flags in enumerate(([], ["-O1", "-fno-omit-frame-pointer"])):
        source = f"#define N {number}\n" + _LIBRARY
        build(tmp_path, source, *flags, "-shared", "-fPIC", name=f"{number}")
    program = build(tmp_path, _LOADER, _TURN)
    with Walking(copies_all=True, copies_per_second=0) as walking:
        walking.only("program")
        walking.start(program, tmp_path / "0", tmp_path / "1")
        walking.collect(600, whole=_COMPARED)
        walking.stop()
        late = [each for each in walking.found if each.time_ns > walking.found[0].time_ns + 10**9]
        _check_all_but_execve(walking)
        wrong = [
            each
            for each in walking.found
            if each.walked.reason is Reason.COMPLETE and each.walked != each.trace
        ]
        assert len(wrong) < len(walking.found) / 50
        in_bpf = sum(each.walked.reason is Reason.COMPLETE for each in late)
        assert in_bpf > 0.6 * len(late)


_FRAME = r"""
.globl enters
.type enters, @function
enters:
  .cfi_startproc
  .byte 0x48, 0x81, 0xec
  .long BYTES
  .cfi_def_cfa_offset BYTES + 8
  mov $100000, %ecx
  call spin
  .byte 0x48, 0x81, 0xc4
  .long BYTES
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
spin:
  .cfi_startproc
  dec %ecx
  jnz spin
  ret
  .cfi_endproc
"""
"""The same code but for the size of its frame."""


def test_rules_of_return_addresses_are_those_of_the_library_that_is_there(tmp_path: Path) -> None:
    """Two libraries take turns at one address, where both return to the same one."""
    for number, size in enumerate((8, 264)):
        source = f"__asm__({json.dumps(_FRAME.replace('BYTES', str(size)))});"
        build(tmp_path, source, "-shared", "-fPIC", name=f"{number}")
    lines = _LOADER.splitlines(keepends=True)
    source = "".join(line for line in lines if "PROT_NONE" not in line)
    program = build(tmp_path, source, _TURN)
    with Walking(copies_all=True, copies_per_second=0) as walking:
        walking.only("program")
        walking.start(program, tmp_path / "0", tmp_path / "1")
        walking.collect(600, whole=100)
        walking.stop()
        astray = walking.missed[Reason.UNKNOWN_MAPPING]  # by the rule of a frame of another size
        assert astray < len(walking.found) / 4, "half with rules of the other library"
        whole = [each for each in walking.found if each.walked.reason is Reason.COMPLETE]
        assert sum(each.walked != each.trace for each in whole) < len(whole) / 50


@pytest.mark.parametrize("change", ["deleted", "replaced", "renamed"])
def test_the_file_of_a_program_changes_its_name(tmp_path: Path, change: str) -> None:
    program = build(tmp_path, CHAIN)
    other = build(tmp_path, _CLOCK, "-O0", name="other")
    with Walking(copies_all=True, copies_per_second=0) as walking:
        walking.only("program")
        walking.start(program)
        time.sleep(0.2)
        if change == "deleted":
            program.unlink()
        elif change == "replaced":
            other.rename(program)
        else:
            program.rename(tmp_path / "elsewhere")
        walking.collect(200, whole=_COMPARED)
        walking.stop()
        _equal(walking)
        _check_all_but_execve(walking)


def test_a_library_that_is_overwritten(tmp_path: Path) -> None:
    """Code in memory changes with its file, and so do the rules: a trace may be cut, no more."""
    library = build(tmp_path, "#define N 0\n" + _LIBRARY, "-shared", "-fPIC", name="0")
    program = build(tmp_path, _LOADER.replace("dlclose(library);", ""), _TURN)
    with Walking(copies_per_second=0, pages=4096) as walking:
        walking.only("program")
        child = walking.start(program, library, library)
        walking.collect(len(walking.found) + 50)
        size = library.stat().st_size
        with library.open("r+b") as file:
            file.seek(size // 2)
            file.write(bytes(size // 2))
        walking.collect(len(walking.found) + 50)
        os.truncate(library, 100)
        walking.wait(1)
        walking.stop()
        assert walking.found
        assert child.wait() < 0


@pytest.mark.parametrize(
    "flags",
    by_day(
        [("-static",), ("-static-pie",), ("-no-pie",), ("-Wl,-z,now",), ("-fcf-protection",)],
        [("-static-pie",), ("-no-pie",)],
    ),
    ids=lambda flags: flags[0],
)
def test_ways_to_link(tmp_path: Path, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, CHAIN, *flags)
    with Walking(copies_all=True, copies_per_second=0) as walking:
        walking.only("program")
        walking.start(program)
        walking.collect(200, whole=_COMPARED)
        walking.stop()
        _equal(walking)
        _check_all_but_execve(walking)


def test_the_vdso(tmp_path: Path) -> None:
    program = build(tmp_path, _CLOCK)
    with Walking(copies_all=True, copies_per_second=0) as walking:
        walking.only("program")
        walking.start(program)
        walking.collect(200, whole=_COMPARED)
        text = Path(f"/proc/{walking.found[-1].tgid}/maps").read_text()
        walking.stop()
        (vdso,) = [line for line in text.splitlines() if line.endswith("[vdso]")]
        start, end = (int(at, 16) for at in vdso.split()[0].split("-"))
        assert sum(start <= each.trace.frames[0] < end for each in walking.found) > 20
        _equal(walking)
        _check_all_but_execve(walking)


@pytest.mark.needs("unshare", "mount_namespace", "pid_namespace")
def test_a_process_in_a_container(tmp_path: Path) -> None:
    """Its path leads to nothing, or to another file, where we are."""
    program = build(tmp_path, CHAIN)
    inside = tmp_path / "root"
    inside.mkdir()
    shell = 'mount -t tmpfs none "$1" && cp "$0" "$1/program" && exec "$1/program"'
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", shell]
    with Walking(copies_all=True, copies_per_second=0) as walking:
        walking.only("program")
        walking.start(*command, program, inside)
        walking.collect(200, whole=_COMPARED)
        walking.stop()
        assert not (inside / "program").exists()
        _equal(walking)
        _check_all_but_execve(walking)


@pytest.mark.slow
def test_five_thousand_threads(tmp_path: Path) -> None:
    source = (
        LEVELS
        + r"""
#include <pthread.h>
#include <unistd.h>
static void *runs(void *_) { for (;;) { sink += level1(1); usleep(200000); } }
int main(void) {
  pthread_attr_t small;
  pthread_t thread;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  for (int i = 0; i < 5000; i++) if (pthread_create(&thread, &small, runs, 0)) _exit(3);
  for (;;) pause();
}
"""
    )
    program = build(tmp_path, source, "-pthread")
    with Walking() as walking:
        walking.only("program")
        child = walking.start(program)
        tasks = Path(f"/proc/{child.pid}/task")
        walking.until(lambda: tasks.stat().st_nlink > 5002, at_most_s=300)
        assert tasks.stat().st_nlink > 5002  # 5,001 and two more
        began = time.monotonic_ns()  # threads that begin are in clone3(2), which has no caller
        walking.collect(len(walking.found) + 400)
        walking.stop()
        assert child.poll() is None
        late = [each for each in walking.found if each.time_ns > began]
        assert len(late) > 100
        assert len({each.tid for each in late}) > 50
        cut = [each.trace for each in late if each.trace.reason not in _WHOLE]
        assert all(len(trace.frames) == 1 for trace in cut), cut  # where clone3(2) returns to
        assert len(cut) < len(late) / 100
        assert sum(each.is_copied for each in late) < len(late) / 10
        assert len(walking.loaded.maps["procs"]) < 10
