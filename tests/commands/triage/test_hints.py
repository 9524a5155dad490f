"""Each form of the commands that triage recommends works.

The forms are read from the source of the rules, so that none is left out.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module

import pytest

from purebpf.commands import COMMANDS, package_of
from tests.commands.conftest import ROOT

PID = "PID"


def forms() -> Iterator[tuple[str, ...]]:
    """Tuples of words that begin with a command; other expressions stand for a process ID."""
    for path in sorted((ROOT / "purebpf" / "findings").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Tuple) and node.elts and is_command(node.elts):
                yield tuple(
                    str(word.value) if isinstance(word, ast.Constant) else PID for word in node.elts
                )


def is_command(words: list[ast.expr]) -> bool:
    """Return True for ("tcp", "-p", str(pid)) and ("dump", str(pid)), not for other tuples."""
    first, *rest = words
    if not isinstance(first, ast.Constant) or first.value not in COMMANDS:
        return False
    second = rest[0] if rest else ast.Constant("-")
    return isinstance(second, ast.Call) or (
        isinstance(second, ast.Constant) and str(second.value).startswith("-")
    )


HINTS = sorted({form for form in forms() if form not in {("open",), ("stat",)}})


def test_the_forms_are_found() -> None:
    assert ("lock", "--userspace", "-p", PID) in HINTS
    assert ("exec", "-p", PID, "--tree") in HINTS
    assert ("summary", "-x") in HINTS
    assert len(HINTS) > 20  # noqa: PLR2004


@pytest.mark.parametrize("form", HINTS, ids=" ".join)
def test_a_recommended_command_parses(form: tuple[str, ...]) -> None:
    command = import_module(f"{package_of(form[0])}.__main__")
    command.parse([word.replace(PID, "4711") for word in form[1:]])


PROGRAM = """
import threading, time
threading.Thread(target=lambda: [time.sleep(0.01) for _ in range(10**6)], daemon=True).start()
print("ready", flush=True)
while True:
    sum(range(1000))
    time.sleep(0.001)
"""


@pytest.mark.nightly
@pytest.mark.needs("bpf", "perf_event", "vmlinux_btf")
@pytest.mark.parametrize("form", HINTS, ids=" ".join)
def test_a_recommended_command_works(form: tuple[str, ...]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        words = [word.replace(PID, str(process.pid)) for word in form]
        more = {"dump": [], "runqlat": ["1", "1"]}.get(form[0], ["1"])
        try:
            done = subprocess.run(
                [sys.executable, "-m", "purebpf", *words, *more],
                capture_output=True,
                text=True,
                check=False,
                cwd=ROOT,
                timeout=120,
            )
        finally:
            process.kill()
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
