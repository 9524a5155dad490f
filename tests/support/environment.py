"""The commands, and the surroundings they may be run in."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.host.faults import slow_host
from tests.support.nightly import by_day

__all__ = [
    "COMMANDS",
    "OFFLINE",
    "ROOT",
    "SHAPES",
    "commands_with",
    "complete",
    "environment",
    "every_command",
    "installed",
    "mounted",
    "run",
    "said",
    "start",
    "sysctl",
]

ROOT = Path(__file__).resolve().parents[2]

COMMANDS: dict[str, tuple[str, ...]] = {
    "offcpu": ("0.3",),
    "profile": ("0.3",),
    "summary": ("0.3",),
    "runqlat": ("0.3", "1"),
    "cpudist": ("0.3", "1"),
    "wall": ("0.3",),
    "exec": ("0.3",),
    "open": ("0.3",),
    "trace": ("0.3",),
    "tcp": ("0.3",),
    "io": ("0.3",),
    "mem": ("0.3",),
    "lock": ("0.3",),
    "kwork": ("0.3",),
    "latency": ("libc.so.6:mkdtemp", "0.3"),
}
"""Every command that observes, with arguments for a short run that looks at the whole machine."""

SHAPES = ("profile", "summary", "runqlat", "exec")
"""One command of each path through the code: stacks, a table, histograms, events.

The others take the same path to their output, so that CI tries these four in all surroundings, and
`make nightly` every command.
"""

OFFLINE: dict[str, tuple[str, ...]] = {
    "convert": ("tests/data/stacks.folded",),
    "inspect": ("tests/data/load_counter.bpf.o",),
}
"""Commands that only read files: these need no privilege."""

BY_THEMSELVES = {
    "agent": "tests/commands/agent/test_agent.py",
    "completion": "tests/unit/tools/completion/test_completion.py",
    "diff": "tests/commands/diff/test_diff.py",
    "dump": "tests/commands/dump/test_dump_command.py",
    "fleet": "tests/commands/fleet/test_fleet.py",
    "doctor": "tests/commands/doctor/test_doctor_command.py",
    "new": "tests/commands/build/test_new.py",
    "record": "tests/commands/record/test_record_surroundings.py",
    "report": "tests/commands/report/test_report.py",
    "sampleip": "tests/commands/sampleip/test_sampleip.py",
    "script": "tests/commands/script/test_script.py",
    "setup": "tests/commands/setup/test_setup_command.py",
    "stat": "tests/commands/stat/test_stat.py",
    "top": "tests/commands/top/test_top.py",
    "types": "tests/commands/types/test_types.py",
    "triage": "tests/commands/triage/test_triage.py",
    "view": "tests/commands/view/test_view.py",
    "vmlinux": "tests/commands/build/test_vmlinux.py",
}
"""Commands that load no BPF or print no result, and the tests that they have of their own."""

_TIMEOUT_S = 240

_T = TypeVar("_T")
_Test = TypeVar("_Test", bound=Callable[..., None])


def installed() -> set[str]:
    """The commands that there are: packages of tools and services that `python -m` runs."""
    return {
        path.parent.name
        for folder in ("tools", "services")
        for path in (ROOT / "purebpf" / folder).glob("*/__main__.py")
    }


def commands_with(variants: Iterable[_T]) -> list[Any]:
    """Return each command with each variant; on a slow host each with one variant, in turn.

    By day the first of SHAPES has each variant, and each of the others one, in turn.
    """
    several = list(variants)
    names = list(COMMANDS)
    if not slow_host():
        first, *others = SHAPES
        by_day = {(first, number) for number in range(len(several))}
        by_day |= {(name, turn % len(several)) for turn, name in enumerate(others)}
        return [
            pytest.param(name, each, marks=() if (name, number) in by_day else pytest.mark.nightly)
            for name in names
            for number, each in enumerate(several)
        ]
    return [
        (names[turn % len(names)], several[turn % len(several)])
        for turn in range(max(len(names), len(several)))
    ]


def every_command(test: _Test) -> _Test:
    """Run a test with each command; on a slow host with a third, another test with others."""
    names = list(COMMANDS)
    if slow_host():
        third = names[zlib.crc32(test.__name__.encode()) % 3 :: 3]
        return pytest.mark.parametrize("name", third)(test)
    return pytest.mark.parametrize("name", by_day(names, SHAPES))(test)


def environment() -> dict[str, str]:
    """A user's: with streams that Python buffers, whatever the shell of the tests says."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def complete(name: str, arguments: Iterable[str]) -> tuple[str, ...]:
    """The arguments, behind those that the command must have in any case: what to trace."""
    words = tuple(arguments)
    if name == "latency" and not any(":" in word for word in words):
        return (COMMANDS[name][0], *words)
    return words


def _line(name: str, arguments: tuple[str, ...], prefix: tuple[str, ...]) -> list[str]:
    return [*prefix, sys.executable, "-m", "purebpf", name, *complete(name, arguments)]


def run(
    name: str, *arguments: str, prefix: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; without arguments, with those of COMMANDS."""
    line = _line(name, arguments or {**COMMANDS, **OFFLINE}[name], prefix)
    return subprocess.run(
        line,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment(),
        timeout=_TIMEOUT_S,
    )


def start(name: str, *arguments: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Start a command, to be ended by a signal; its standard input never ends."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        _line(name, arguments, prefix),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
        cwd=ROOT,
        env=environment(),
    )


def said(result: subprocess.CompletedProcess[str]) -> str:
    """Standard error as one line, however it was wrapped."""
    return " ".join(result.stderr.split())


def mounted(*setup: str) -> tuple[str, ...]:
    """What to put before a command for it to run in a mount namespace with those shell lines run.

    Nothing in there reaches the namespace outside. The needs are "mount_namespace".
    """
    script = "\n".join(("set -e", *setup, 'exec "$@"'))
    return ("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh")


@contextmanager
def sysctl(name: str, value: int) -> Iterator[None]:
    """A kernel parameter with another value inside; only for guests, since it is everybody's."""
    file = Path("/proc/sys", *name.split("."))
    before = file.read_text()
    file.write_text(str(value))
    try:
        yield
    finally:
        file.write_text(before)
        assert file.read_text() == before
