"""A command that waits for its measurement."""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from purebpf.errors import KernelError
from purebpf.measure.child import Child, CommandError
from purebpf.measure.stop import Stop


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_nothing_is_executed_before_start(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    with Child(["touch", str(marker)]) as child:
        assert Path(f"/proc/{child.pid}/comm").read_text() != "touch\n"
        assert not marker.exists()
        child.start()
        assert child.wait() == 0
    assert marker.exists()


def test_a_child_that_was_never_started_ends_without_running(tmp_path: Path) -> None:
    with Child(["touch", str(tmp_path / "ran")]) as child:
        pass
    assert child.status is not None
    assert not (tmp_path / "ran").exists()


def test_a_child_that_is_killed_while_it_waits_says_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It has closed the descriptor that Python writes the numbers of signals to."""
    own = os.memfd_create("own")
    with Stop(), Child(["true"]) as child:
        until = time.monotonic() + 10
        open_files = [own]
        while own in open_files and time.monotonic() < until:
            open_files = [int(name) for name in os.listdir(f"/proc/{child.pid}/fd")]
        os.kill(child.pid, signal.SIGTERM)
        assert child.wait() == 128 + signal.SIGTERM
    os.close(own)
    assert capfd.readouterr().err == ""


def test_a_child_that_waits_keeps_no_descriptor_of_ours() -> None:
    own, given = os.memfd_create("own"), os.memfd_create("given", 0)
    with Child(python(f"import os; os.fstat({given})")) as child:
        # the child closes them after fork(2), and then reads its pipe
        until = time.monotonic() + 10
        names = ["/memfd:own (deleted)"]
        while "/memfd:own (deleted)" in names and time.monotonic() < until:
            folder = f"/proc/{child.pid}/fd"
            with suppress(FileNotFoundError):  # it closed one in between
                names = [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder) if int(fd) > 2]
        assert "/memfd:own (deleted)" not in names
        assert "/memfd:given (deleted)" in names
        child.start()
        assert child.wait() == 0
    os.close(own)
    os.close(given)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("raise SystemExit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
    ],
)
def test_the_status_is_a_shells(code: str, status: int) -> None:
    with Child(python(code)) as child:
        child.start()
        assert child.wait() == status


def test_it_is_readable_when_it_has_ended() -> None:
    with Child(["true"]) as child:
        child.start()
        assert select.select([child], [], [], 10)[0] == [child]


def test_closing_ends_it() -> None:
    with Child(["sleep", "1000"]) as child:
        child.start()
    assert child.status == 128 + signal.SIGTERM


def test_signals_that_python_ignores_have_their_default_again() -> None:
    with Child(["grep", "-q", "SigIgn:.*0000000000000000", "/proc/self/status"]) as child:
        child.start()
        assert child.wait() == 0


@pytest.mark.parametrize(("name", "status"), [("/no/such/program", 127), ("/etc", 126)])
def test_a_command_that_cannot_run(name: str, status: int) -> None:
    with Child([name]) as child:
        with pytest.raises(CommandError, match=name) as caught:
            child.start()
        assert caught.value.exit_status == status


def test_one_that_was_killed_before_its_start_has_a_status() -> None:
    with Child(["true"]) as child:
        os.kill(child.pid, signal.SIGKILL)
        assert select.select([child], [], [], 10)[0] == [child]
        child.start()
        assert child.wait() == 128 + signal.SIGKILL


@pytest.mark.parametrize(
    ("call", "number"),
    [("fork", errno.EAGAIN), ("fork", errno.ENOMEM), ("pipe2", errno.EMFILE)],
)
def test_what_cannot_be_made_leaves_nothing_open(
    call: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(number, "refused")

    monkeypatch.setattr(os, call, refused)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(KernelError, match=f"'true': {call}.* failed with") as caught:
        Child(["true"])
    assert caught.value.errno == number
    assert os.listdir("/proc/self/fd") == before


def test_a_child_that_cannot_be_waited_for_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(pid: int) -> int:
        pids.append(pid)
        raise OSError(errno.EMFILE, "Too many open files")

    pids: list[int] = []
    monkeypatch.setattr(os, "pidfd_open", refused)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(KernelError, match=r"pidfd_open\(2\) failed with EMFILE"):
        Child(["true"])
    assert os.listdir("/proc/self/fd") == before
    assert not Path(f"/proc/{pids[0]}").exists()


def test_nothing_is_left_open() -> None:
    before = os.listdir("/proc/self/fd")
    with Child(["true"]) as child:
        child.start()
    assert os.listdir("/proc/self/fd") == before
