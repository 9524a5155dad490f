"""How a command ends."""

from __future__ import annotations

import errno
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.cli import command
from purebpf.commands import package_of
from purebpf.errors import KernelError
from purebpf.filter import FilterError, parse
from purebpf.measure.child import CommandError
from purebpf.syscall import proc
from tests.support.environment import installed

NAMES = sorted(installed())


def failing(error: BaseException) -> int:
    raise error


def test_the_status_is_the_bodys() -> None:
    assert command.run("purebpf.x", lambda: 42) == 42


def test_an_error_is_one_wrapped_paragraph(capsys: pytest.CaptureFixture[str]) -> None:
    error = KernelError("bpf(BPF_MAP_CREATE)", 1, "map 'counts'", why="why " * 30, fix="do this")
    assert command.run("purebpf.x", lambda: failing(error)) == command.FAILED
    text = capsys.readouterr().err
    assert text.startswith("purebpf.x: map 'counts': bpf(BPF_MAP_CREATE) failed with EPERM. why")
    assert text.rstrip().endswith("do this")
    assert max(map(len, text.splitlines())) <= 80


def test_no_memory_is_a_paragraph(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run("purebpf.x", lambda: failing(MemoryError())) == command.FAILED
    assert "out of memory: the system" in capsys.readouterr().err


def test_what_an_error_quotes_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FilterError) as caught:
        parse("cpu == 1,  perid > 1")
    assert command.run("purebpf.x", lambda: failing(caught.value)) == 2
    *_, shown, caret = capsys.readouterr().err.splitlines()
    assert shown == "    cpu == 1,  perid > 1"
    assert caret == "               ^^^^^"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EMFILE, "Too many open files", "/x.py"), "opening /x.py: Too many open"),
        (BlockingIOError(errno.EMFILE, "Too many open files"), "opening a file: Too many open"),
        (KernelError("bpf(BPF_MAP_CREATE)", errno.EMFILE), "bpf(BPF_MAP_CREATE) failed with EMF"),
        (KernelError("x", errno.EMFILE, why="there is a reason"), "x failed with EMFILE. there is"),
        (OSError(errno.ENFILE, "Too many open files in system"), "fs.file-max"),
    ],
)
def test_that_no_descriptor_is_left_is_explained_once(
    error: OSError, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.run("purebpf.x", lambda: failing(error)) == command.FAILED
    text = " ".join(capsys.readouterr().err.split())
    assert said in text
    has_reason = isinstance(error, KernelError) and error.why
    assert ("RLIMIT_NOFILE" in text) == (error.errno == errno.EMFILE and not has_reason)


@pytest.mark.parametrize("mode", ["0", "2"])
def test_a_call_that_seccomp_refuses_is_explained(
    mode: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(proc, "status", lambda: {"Seccomp": mode})
    # as os.eventfd raises it
    refused = PermissionError(errno.EPERM, "Operation not permitted")
    if mode == "0":
        with pytest.raises(PermissionError):
            command.run("purebpf.x", lambda: failing(refused))
        return
    assert command.run("purebpf.x", lambda: failing(refused)) == command.FAILED
    said = " ".join(capsys.readouterr().err.split())
    assert "failed with EPERM in this line of test_command.py: " in said
    assert "a seccomp filter is active" in said


def test_another_oserror_is_a_bug() -> None:
    with pytest.raises(FileNotFoundError):
        command.run("purebpf.x", lambda: failing(FileNotFoundError(errno.ENOENT, "x", "/x")))


def test_an_error_may_carry_its_status() -> None:
    assert command.run("purebpf.x", lambda: failing(CommandError("x", errno.ENOENT))) == 127


def test_a_second_interrupt_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run("purebpf.x", lambda: failing(KeyboardInterrupt())) == 130
    assert capsys.readouterr() == ("", "")


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        command.run("purebpf.x", lambda: failing(ZeroDivisionError()))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "report"])  # a substitute
def test_an_interrupt_while_options_are_read_is_silent(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: Sequence[str]) -> None:
        raise KeyboardInterrupt

    module = import_module(f"{package_of(name)}.__main__")
    monkeypatch.setattr(module, "parse", interrupted)
    assert module.main([]) == 130
    assert capsys.readouterr() == ("", "")


def test_what_is_said_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    command.say("event \x1b]0;owned\x07 \x9b2J \u202e of\tthe file")
    command.note("profile.json: line 1: '\x1b[2J' does not end in a count\n    quoted \x1b[1m")
    said = capsys.readouterr().err
    assert said == (
        "event ?]0;owned? ?2J ? of\tthe file\n"
        "profile.json: line 1: '?[2J' does not end in a count\n    quoted ?[1m\n"
    )


def test_an_interpreter_that_ends_does_not_search_for_garbage() -> None:
    """What runs last sees all objects frozen; in between they are not."""
    script = (
        "import atexit, gc\n"
        "from purebpf.cli import command\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 1000))\n"
        "for _ in range(2):\n"
        "    command.run('x', lambda: 0)\n"
        "print(gc.get_freeze_count() > 1000)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


@given(
    st.text(alphabet=st.sampled_from("ab  \t\n\v-\u00e9"), max_size=60),
    st.integers(4, 20),
    st.sampled_from(["", "  "]),
)
def test_a_paragraph_is_wrapped_as_by_textwrap(text, width, indent):
    assert command.wrap_paragraph(text, width, indent) == textwrap.fill(
        *(text, width), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
