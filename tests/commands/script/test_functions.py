"""Functions whose texts user space makes: join(), cgroup_path(), stacks in all modes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.observe.script.cgroups import cgroup_id, cgroup_paths

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf", "tracefs", "gcc"),
    pytest.mark.any_kernel,  # guests before 5.12 lack atomic exchange
]

COMMAND = (sys.executable, "-P", "-m", "purebpf", "script", "-q")
SOURCE = """#include <unistd.h>
void __attribute__((noinline)) work(void) { asm volatile(""); }
int main() { work(); usleep(300000); }
"""


def script(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script to its end."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False,
                          timeout=60)  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that calls a function once."""
    path = tmp_path_factory.mktemp("functions") / "program"
    source = path.with_suffix(".c")
    source.write_text(SOURCE)
    flags = ("-O0", "-fno-omit-frame-pointer", "-Wl,--build-id")
    subprocess.run(["gcc", *flags, "-o", str(path), str(source)], check=True)
    return path


@pytest.mark.parametrize(
    ("mode", "line"),
    [
        ("raw", r"[0-9a-f]+"),
        ("perf", r"\t[0-9a-f]+ work\+\d+ \(/.*/program\)"),
        ("build_id", r"[0-9a-f]{40} 0x[0-9a-f]+"),
        ("bpftrace", r" {8}work\+\d+"),
    ],
)
def test_a_stack_is_printed_in_the_form_that_was_asked_for(
    program: Path, mode: str, line: str
) -> None:
    wait = f"uprobe:{program}:work {{ print(ustack({mode}, 1)); print(ustack({mode})); }}"
    done = script("-c", str(program), "-e", wait)
    configured = script("-c", str(program), "-e", f"config = {{ stack_mode = {mode} }} "
                        f"uprobe:{program}:work {{ print(ustack(1)); }}")  # fmt: skip
    assert re.fullmatch(line, done.stdout.split("\n")[1]), done
    assert re.fullmatch(line, configured.stdout.split("\n")[1]), configured


def test_join_puts_a_delimiter_between_the_words_of_a_command() -> None:
    text = "tracepoint:syscalls:sys_enter_execve /pid == cpid/ { join(args.argv%s); }"
    done = script("--unsafe", "-c", "/bin/echo one 2 three", "-e", text % "")
    assert "/bin/echo one 2 three\n" in done.stdout
    done = script("--unsafe", "-f", "json", "-c", "/bin/echo a b", "-e", text % ', ","')
    assert '{"type": "join", "data": "/bin/echo,a,b"}\n' in done.stdout


def test_a_cgroup_has_a_number_and_paths() -> None:
    number = cgroup_id("/sys/fs/cgroup")
    assert number is not None
    assert cgroup_id("/no/such/cgroup") is None
    done = script("-e", 'begin { print(cgroup_path(cgroup)); print(cgroupid("/sys/fs/cgroup")); }')
    path, printed, *_ = done.stdout.split("\n")
    assert printed == str(number)
    assert all(":/" in part for part in path.split(";"))
    assert cgroup_paths(1 << 60) == ""


def test_lengths_names_of_signals_and_records_in_the_order_they_are_written() -> None:
    text = (
        'begin { $s = "hello"; print((strlen($s), strlen(""), signal_name(2), signal_name(1024))); '
        '$r = (a={ print("x"); 1 }, b=2); $r = (b={ print("y"); 4 }, a={ print("z"); 3 }); '
        "print($r); print(@none); } end { @none = (1, 2); clear(@none); }"
    )
    assert script("-e", text).stdout == (
        "(5, 0, Interrupt, N/A)\nx\ny\nz\n{ .a = 3, .b = 4 }\n@none: (0, 0)\n\n\n"
    )


def test_words_of_the_command_line_are_literals_and_octal() -> None:
    done = script("-e", 'begin { printf("%d %o\\n", $1, $2); time(str($3)); }', "5", "017", "x\n")
    assert done.stdout == "5 17\nx\n\n\n"


def test_the_length_of_a_kernel_stack_is_the_number_of_its_functions() -> None:
    done = script("-e", "begin { print(kstack); print(len(kstack)); print(len(kstack(2))); }")
    lines = done.stdout.split()
    frames = [line for line in lines if "+" in line]
    assert lines[len(frames) :] == [str(len(frames)), "2"]
    assert len(frames) > 2
