"""`top` and `summary -i` on a terminal: keys, and the terminal afterwards, however they end."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.commands.conftest import ROOT

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
OURS = ("-i", "0.2", "-p", str(os.getpid()))
TOP = ("top", *OURS)
SUMMARY = ("summary", *OURS)
PATIENCE_S = 60.0

pytestmark = [pytest.mark.any_kernel, pytest.mark.needs("bpf", "perf_event")]


class Command:
    """A command that has a pseudo-terminal for itself."""

    def __init__(self, leader: int, follower: int, process: subprocess.Popen[bytes]) -> None:
        self.leader, self.follower, self.process = leader, follower, process
        self.raw = b""

    def until(self, pattern: str) -> str:
        """What is on the terminal since the last call, up to the pattern."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := re.search(pattern, self.raw.decode(errors="replace"))):
            left = deadline - time.monotonic()
            assert left > 0, (pattern, self.raw[-2000:])
            if select.select([self.leader], [], [], left)[0]:
                with suppress(OSError):  # EIO: it has ended
                    self.raw += os.read(self.leader, 65536)
        text = self.raw.decode(errors="replace")
        self.raw = text[found.end() :].encode()
        return text[: found.end()]

    def type(self, keys: str) -> None:
        os.write(self.leader, keys.encode())

    def modes(self) -> int:
        return int(termios.tcgetattr(self.follower)[3])


SHELL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
child = os.fork()
if not child:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
    os.execv(sys.executable, [sys.executable, "-m", "purebpf", *sys.argv[1:]])
while os.WIFSTOPPED(status := os.waitpid(child, os.WUNTRACED)[1]):
    os.tcsetpgrp(0, os.getpid())
    print("STOPPED", flush=True)
    signal.sigwait([signal.SIGUSR1])
    os.tcsetpgrp(0, child)
    os.killpg(child, signal.SIGCONT)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""What a shell does with a job: Ctrl-Z stops it, and SIGUSR1 is `fg`."""


@contextmanager
def running(*words: str) -> Iterator[Command]:
    leader, follower = os.openpty()
    termios.tcsetwinsize(follower, (24, 80))
    process = subprocess.Popen(
        [sys.executable, "-c", SHELL, *words], cwd=ROOT, start_new_session=True,
        stdin=follower, stdout=follower, stderr=follower, env=os.environ | {"TERM": "xterm"},
    )  # fmt: skip
    try:
        yield Command(leader, follower, process)
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):  # the command ends, and its shell takes notice
                os.killpg(os.tcgetpgrp(leader), signal.SIGKILL)
        process.kill()
        process.wait()
        os.close(leader)
        os.close(follower)


@pytest.mark.parametrize(
    ("words", "column", "end"),
    [(TOP, "function", "q"), (TOP, "function", signal.SIGTERM), (SUMMARY, "calls", "\x03")],
)
def test_the_terminal_is_as_it_was(
    words: tuple[str, ...], column: str, end: str | signal.Signals
) -> None:
    with running(*words) as command:
        before = command.modes()
        command.until(re.escape(ENTER))
        command.until(r"\d\d:\d\d:\d\d  \d+ (calls|samples)")
        assert not command.modes() & termios.ECHO
        if isinstance(end, str):
            command.type(end)
        else:
            os.killpg(os.tcgetpgrp(command.leader), end)
        command.until(re.escape(LEAVE))
        rest = command.until("lost: ")
        assert column in rest  # the table at the end, on the screen of before
        assert command.process.wait(PATIENCE_S) == 0
        assert command.modes() == before


def test_ctrl_z_gives_the_terminal_back_for_a_while() -> None:
    with running(*SUMMARY) as command:
        before = command.modes()
        command.until("last minute")
        command.type("\x1a")
        command.until(re.escape(LEAVE))
        command.until("STOPPED")
        assert command.modes() == before
        command.process.send_signal(signal.SIGUSR1)
        command.until(re.escape(ENTER))
        command.until("last minute")
        assert not command.modes() & termios.ECHO
        command.type("q")
        command.until("lost: ")


def test_keys_change_what_is_shown() -> None:
    with running(*SUMMARY, "--mode", "process") as command:
        command.until("process")
        command.type(" ")
        command.until("PAUSED")
        command.type(" h")
        command.until("pause: keep what is shown")
        command.type("h/no such process")
        command.until("/no such process_")
        command.type("\r")
        command.until("nothing")
        command.type("\x1b")
        command.until(r"\(\d+\)")
        command.type("\r")
        command.until(r"calls.* > process .*\(\d+\)[^\n]*\n[^\n]*\n.*syscall")
        command.type("\x1bB")  # by thread: the programs are loaded again
        command.until(r"max[^\n]*thread")
        command.until(r"\d\d:\d\d:\d\d  \d+ calls")
        command.type("q")
        command.until("lost: ")


def test_a_new_size_is_used_at_once() -> None:
    with running("top", "-i", "30", "-p", str(os.getpid())) as command:
        command.until("esc out")
        termios.tcsetwinsize(command.follower, (50, 140))
        found = command.until(r"esc out[^\n]*")
        assert found.count("\r\n") >= 49
        command.type("q")
        command.until("lost: ")
