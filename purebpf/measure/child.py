"""A command to measure: forked now, executed when the measurement is ready."""

from __future__ import annotations

import errno
import os
import resource
import signal
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import Self

from purebpf.closable import SoleOwner
from purebpf.errors import KernelError
from purebpf.syscall.descriptor import close_own
from purebpf.syscall.fork import fork

__all__ = ["Child", "CommandError"]


_BEFORE = struct.Struct("=3d")
"""What the child says just before execvp(3): the time, and the seconds of CPU that it has used."""


class CommandError(KernelError):
    """The command could not be executed.

    Attributes:
        exit_status: a shell's: 127 not found, 126 found and not executable.
    """

    def __init__(self, command: str, number: int) -> None:
        self.exit_status = 127 if number in (errno.ENOENT, errno.ENOTDIR) else 126
        super().__init__("execvp(3)", number, f"command {command!r}")


class Child(SoleOwner):
    """A process that waits between fork(2) and execvp(3) for `start()`.

    Events opened for `pid` before that see it from its first instruction. The standard streams are
    inherited. Closing it ends a child that still runs (SIGTERM) and reaps it.

    Raises:
        KernelError: there can be no more processes or descriptors.

    Attributes:
        pid: the process id.
        status: the exit status as a shell gives it, 128 + N for signal N; None while it runs.
        started_s: when it began to execute the command, by time.monotonic(); 0.0 before.
        cpu_s: CPU seconds of the command and its reaped children since then, in user space and in
            the kernel; None while it runs.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.command = tuple(command)
        self.status: int | None = None
        self.started_s = 0.0
        self.cpu_s: tuple[float, float] | None = None
        self._used_before = (0.0, 0.0)
        with self._saying("pipe2(2)"), ExitStack() as kept, ExitStack() as given:
            go_read, self._go = os.pipe2(os.O_CLOEXEC)
            given.callback(os.close, go_read)
            kept.callback(os.close, self._go)
            self._problem, problem_write = os.pipe2(os.O_CLOEXEC)
            given.callback(os.close, problem_write)
            kept.callback(os.close, self._problem)
            with self._saying("fork(2)"):
                self.pid = fork()
            if not self.pid:
                _become(self.command, go_read, problem_write)
            kept.callback(self.wait)
            kept.callback(os.kill, self.pid, signal.SIGKILL)  # before that: the last is the first
            with self._saying("pidfd_open(2)"):
                self._pidfd = os.pidfd_open(self.pid)
            kept.pop_all()  # from now on it is for `__exit__`

    @contextmanager
    def _saying(self, call: str) -> Iterator[None]:
        """A context in which `call` may fail."""
        try:
            yield
        except KernelError:
            raise
        except OSError as error:
            what = f"command {self.command[0]!r}"
            raise KernelError(call, error.errno or 0, what) from None

    def fileno(self) -> int:
        """A pidfd: readable once the child has ended."""
        return self._pidfd

    def start(self) -> None:
        """Let it execute the command; one that was killed before does not, as `wait` shows.

        Raises:
            CommandError: execvp(3) failed in the child.
        """
        with suppress(BrokenPipeError):
            os.write(self._go, b"!")
        if moment := os.read(self._problem, _BEFORE.size):  # else it was killed before
            self.started_s, *used = _BEFORE.unpack(moment)
            self._used_before = (used[0], used[1])
        problem = os.read(self._problem, 4)  # empty: execvp(3) closed the other end
        if problem:
            self.wait()
            raise CommandError(self.command[0], int.from_bytes(problem, "little"))

    def wait(self) -> int:
        """Wait for its end and return the status."""
        if self.status is None:
            _, waited, usage = os.wait4(self.pid, 0)
            user_s, system_s = self._used_before
            self.cpu_s = (max(0.0, usage.ru_utime - user_s), max(0.0, usage.ru_stime - system_s))
            code = os.waitstatus_to_exitcode(waited)
            self.status = code if code >= 0 else 128 - code
        return self.status

    def end(self) -> int:
        """Ask it to end, if it still runs, and return the status."""
        if self.status is None:
            signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)
        return self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._go)  # a child that still waits for it gives up
        if kind is None or issubclass(kind, Exception):
            self.end()  # a second Ctrl-C does not wait for it
        os.close(self._problem)
        os.close(self._pidfd)


def _become(command: tuple[str, ...], go: int, problem: int) -> None:
    """In the child: wait for the word, then execute; never returns."""
    try:
        close_own(go, problem)  # `go_write`, too: the read below ends when the parent does
        if os.read(go, 1):
            # Python ignores these two, and exec would keep that
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            used = resource.getrusage(resource.RUSAGE_SELF)
            os.write(problem, _BEFORE.pack(time.monotonic(), used.ru_utime, used.ru_stime))
            os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        os.write(problem, (error.errno or 0).to_bytes(4, "little"))
    finally:
        os._exit(127)
