"""The errors of the library, as a command shows them: with options of the command, not keywords."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from purebpf.cli.library_advice import LIBRARY_CALL, with_options
from purebpf.tools.completion.model import describe_commands
from tests.meta.test_hints import texts

PACKAGE = Path(__file__).parents[3] / "purebpf"
LIBRARY = ("asm", "btf", "elf", "loader", "measure", "observe", "relocate", "spec.py")
"""Packages whose errors a command may show."""
FOR_OTHERS = ("inspect", "new", "doctor")
"""Commands about the library's own objects."""
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
HOST_OPTIONS = {"-t", "-o", "--privileged", "-n"}
"""Options of mount, docker and ulimit in the advice."""


def advice() -> list[str]:
    found = set()
    for path in (
        path for name in LIBRARY for path in [PACKAGE / name, *(PACKAGE / name).rglob("*.py")]
    ):
        source = path.read_text() if path.is_file() else ""
        if "=" in source and re.search(LIBRARY_CALL, source):
            for text in texts(ast.parse(source)):
                if " " in text and re.search(LIBRARY_CALL, text) and "\\" not in text:
                    found.add(text)
    return sorted(found)


ADVICE = advice()
COMMANDS = {command.name: command for command in describe_commands()}


def test_there_is_much_advice_for_the_library() -> None:
    assert len(ADVICE) > 25


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - set(FOR_OTHERS)))
def test_no_error_of_a_command_has_a_keyword_of_the_library(name: str) -> None:
    flags = {flag for option in COMMANDS[name].options for flag in option.flags}
    for text in ADVICE:
        error = f"map 'a': bpf(2) failed with EPERM. {text}"
        said = with_options(error, f"purebpf {name}")
        assert not re.search(LIBRARY_CALL, said), said
        assert said.startswith("map 'a': bpf(2) failed with EPERM")
        assert set(OPTION.findall(said)) <= flags | HOST_OPTIONS, said


@pytest.mark.parametrize("name", FOR_OTHERS)
def test_commands_about_objects_keep_the_librarys_words(name: str) -> None:
    for text in ADVICE:
        assert with_options(text, f"purebpf {name}") == text


IMPORTED = "it imports 'puts': probe it there, 'libc.so.6:puts', with pid= for one process"
UNSHARED = "each process has its own address; use pid="
DELEGATED = "run it outside, or where BPF is delegated: load(..., token=)"
OWN = (
    "profile your own process with exclude_kernel=1 (kernel.perf_event_paranoid 2), or run it as "
    "root: sudo purebpf"
)
OF_RECORD = (
    "leave the kernel out with -e EVENT:u (kernel.perf_event_paranoid 2), or run it as root: sudo "
    "purebpf"
)
VALUE = "perf_event_open(2): cpu-clock, pid=7, cpu=-1"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("latency", IMPORTED, IMPORTED.replace("pid=", "-p PID")),
        ("script", UNSHARED, UNSHARED.replace("pid=", "-p PID")),
        ("kwork", UNSHARED, "each process has its own address"),
        ("profile", DELEGATED, "run it outside"),
        ("profile", OWN, "run it as root: sudo purebpf"),
        ("record", OWN, OF_RECORD),
        ("mem", "sysctl kernel.perf_event_paranoid=2", "sysctl kernel.perf_event_paranoid=2"),
        (
            "mem",
            "perf_event_open(2): cpu-clock, pid=7, cpu=-1",
            "perf_event_open(2): cpu-clock, pid=7, cpu=-1",
        ),
        ("mem", "load(..., token=)", "load(..., token=)"),  # nothing else would be left
    ],
)
def test_advice_is_said_in_options(name: str, text: str, said: str) -> None:
    assert with_options(text, f"purebpf {name}") == said
