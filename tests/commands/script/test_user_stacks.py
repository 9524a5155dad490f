"""`ustack` against programs that write down their own chain of calls."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import purebpf
from purebpf.observe.script.events import Printed
from tests.support.programs.own_chains import OwnChain, c_chain, python_chain

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf", "task_pt_regs", "atomic_fetch", "perf_event", "tracefs",
                      "x86_64"),
]  # fmt: skip

CALL = "tracepoint:syscalls:sys_enter_getppid"
FUNCTION = "fentry:__task_pid_nr_ns"
"""getppid(2) calls it; a system call without arguments is not in the kernel's BTF."""
OTHERS = (
    CALL,
    pytest.param("uprobe:libc.so.6:getppid", marks=pytest.mark.nightly),
    pytest.param("uretprobe:libc.so.6:getppid", marks=pytest.mark.nightly),
    pytest.param("rawtracepoint:sys_enter", marks=pytest.mark.nightly),
    pytest.param("profile:hz:199", marks=pytest.mark.nightly),
    pytest.param(
        "kprobe:__x64_sys_getppid", marks=[pytest.mark.needs("kprobes"), pytest.mark.nightly]
    ),
)
C_POINTS = (*OTHERS, pytest.param(FUNCTION, marks=pytest.mark.needs("trampolines")))
PYTHON_POINTS = (
    *OTHERS,
    pytest.param(FUNCTION, marks=[pytest.mark.needs("trampolines"), pytest.mark.nightly]),
)
LINES = 23


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnChain]:
    with c_chain(tmp_path_factory.mktemp("chain")) as running:
        yield running


@pytest.fixture(scope="module")
def in_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnChain]:
    with python_chain(tmp_path_factory.mktemp("chain")) as running:
        yield running


def stacks(target: OwnChain, point: str, stack: str = "ustack") -> list[list[str]]:
    """The lines of stacks of the target, the first of which may wait for tables."""
    text = f"{point} /pid == {target.pid}/ {{ @++; print({stack}); if (@ == $1) {{ exit(); }} }}"
    events = [*purebpf.run_script(text, LINES, pid=target.pid)]
    texts = [event.text for event in events if isinstance(event, Printed)]
    assert len(texts) == LINES
    return [[line.strip() for line in text.strip().splitlines()] for text in texts]


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("point", C_POINTS)
def test_functions_of_a_program_without_frame_pointers(point: str, in_c: OwnChain) -> None:
    chain = [name for name, _, _ in in_c.chain]
    for lines in stacks(in_c, point):
        names = [line.partition("+")[0] for line in lines]
        own = [name for name in names if name in {*chain, "_start"}]
        assert names[-1] == "_start", lines
        assert own[:-1] == chain[len(chain) - len(own) + 1 :], lines


@pytest.mark.parametrize("point", PYTHON_POINTS)
def test_python_functions_have_their_lines(point: str, in_python: OwnChain) -> None:
    chain = [f"{name} ({file}:{line})" for name, file, line in in_python.chain]
    for lines in stacks(in_python, point):
        own = [line for line in lines if in_python.path in line]
        if own[0].startswith("wait "):
            own = own[1:]
        else:
            assert own[0].startswith("ask "), lines  # at another column of its line
        assert own[1:] == chain[1:], lines


@pytest.mark.nightly
@pytest.mark.needs("gcc")
def test_a_limit_cuts_the_callers_and_modes_have_their_own_lines(in_c: OwnChain) -> None:
    for lines in stacks(in_c, CALL, "ustack(3)"):
        assert [line.partition("+")[0] for line in lines][1:] == ["spin", "recurse"]
    for lines in stacks(in_c, CALL, "ustack(perf, 2)"):
        address, name, module = lines[1].split()
        assert int(address, 16) > 0
        assert (name.partition("+")[0], module) == ("spin", f"({in_c.path})")
    for lines in stacks(in_c, CALL, "ustack(raw, 2)"):
        assert len([int(line, 16) for line in lines]) == 2


@pytest.mark.nightly
def test_stacks_are_keys_also_in_a_loop_over_a_map(in_python: OwnChain) -> None:
    text = (
        "begin { @of[1] = 1; @of[2] = 1; } "
        f"{CALL} /pid == {in_python.pid}/ {{ @n++; @direct[comm, ustack(2)]++; "
        "for ($item : @of) { @looped[ustack(2), $item.0]++; } if (@n == $1) { exit(); } }"
    )
    *_, direct, looped, number, _ = purebpf.run_script(text, 53, pid=in_python.pid)
    assert [type(each).__name__ for each in (direct, looped, number)] == ["MapPrinted"] * 3
    counts = {key[1]: count for key, count in direct.items.items()}
    assert number.items[None] == sum(counts.values()) >= 53
    for which in (1, 2):
        assert {key[0]: n for key, n in looped.items.items() if key[1] == which} == counts


@pytest.mark.nightly
def test_a_script_names_the_stacks_of_a_process_that_has_ended(tmp_path: Path) -> None:
    work = tmp_path / "work.py"
    work.write_text("import os\ndef ask():\n    os.getppid()\nfor i in range(101): ask()\n")
    text = f"{CALL} /pid == cpid/ {{ @[ustack(127)] = count(); @n = count(); }}"
    command = [sys.executable, "-P", "-m", "purebpf", "script", "-q", "-c"]
    done = subprocess.run(
        [*command, f"{sys.executable} -S {work}", "-e", text],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"ask ({work}:3)\n" in done.stdout
    assert "@n: 101\n" in done.stdout


@pytest.mark.nightly
def test_stacks_that_are_not_whole_say_so_and_are_counted(tmp_path: Path) -> None:
    work = tmp_path / "work.py"
    work.write_text(
        "import os\ndef deep(n):\n    os.getppid() if not n else deep(n - 1)\n"
        "for i in range(7): deep(200)\n"
    )
    text = f"{CALL} /pid == cpid/ {{ @[ustack] = count(); }}"
    command = [sys.executable, "-P", "-m", "purebpf", "script", "-q", "-c"]
    done = subprocess.run(
        [*command, f"{sys.executable} -S {work}", "-e", text],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "different user stack" in done.stderr
    assert " lack their roots: " in done.stderr
    assert "    [" in done.stdout
