"""Running a program on a file that another user wrote, with as few rights as it needs.

Programs that read DWARF are large, written in C and C++, and full of past vulnerabilities; the file
belongs to the user of the profiled program. So the program runs as `nobody` when we are root, with
no network (a separate network namespace, network_namespaces(7)), no way to gain rights
(PR_SET_NO_NEW_PRIVS), and limits of time, memory and output. The file is passed to it as a
descriptor, so that it needs no path to it.
"""

from __future__ import annotations

import ctypes
import errno
import math
import os
import resource
import select
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from purebpf.syscall import proc
from purebpf.tuples import NamedTuple

__all__ = ["Answer", "Limits", "run_on_file"]

_NOBODY = 65534
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 1, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_COPIED = 1 << 28
"""Bytes of a file that others may not read, which is copied for `nobody`."""
_PIECE = 1 << 16
_ROUND_S = 0.2
_OPEN_FILES = 64


class Limits(NamedTuple):
    """The limits of the program: seconds, bytes of address space, and bytes of output."""

    seconds: float
    memory: int = 4 << 30
    output: int = 64 << 20


class Answer(NamedTuple):
    """The output of the program. `is_whole`: it ended by itself, within its limits."""

    output: bytes
    is_whole: bool


def run_on_file(
    command: Sequence[str],
    fd: int,
    text: bytes,
    limits: Limits,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Answer:
    """Run a program on an open file, and collect its output.

    Args:
        command: its path and arguments; the file's path is added.
        fd: the file, open for reading.
        text: its standard input.
        limits: its limits.
        is_stopped: asked now and then; True ends it early.

    Raises:
        OSError: it cannot be executed; EFBIG: only root may read the file, and it is too large to
            be copied.
    """
    with _readable(fd) as given, _memory_file(text) as questions:
        process = subprocess.Popen(  # the child makes system calls only, and imports nothing
            [*command, f"/proc/self/fd/{given}"],
            executable=os.path.realpath(command[0]),
            stdin=questions,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(given,),
            cwd="/",
            env={"PATH": os.defpath, "LC_ALL": "C"},
            preexec_fn=_confinement(limits),  # noqa: PLW1509
        )
        with process:
            try:
                return _collect(process, limits, is_stopped)
            finally:
                process.kill()


def _collect(
    process: subprocess.Popen[bytes], limits: Limits, is_stopped: Callable[[], bool]
) -> Answer:
    end = time.monotonic() + limits.seconds
    assert process.stdout is not None
    output = bytearray()
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN)
    while not is_stopped() and len(output) <= limits.output:
        left = end - time.monotonic()
        if left <= 0:
            break
        if not poll.poll(1000 * min(left, _ROUND_S)):
            continue
        piece = os.read(process.stdout.fileno(), _PIECE)
        if not piece:
            try:
                return Answer(bytes(output), process.wait(max(left, _ROUND_S)) == 0)
            except subprocess.TimeoutExpired:
                break
        output += piece
    return Answer(bytes(output), is_whole=False)


def _confinement(limits: Limits) -> Callable[[], None]:
    """Return the steps of the child before it executes the program."""
    libc = ctypes.CDLL(None, use_errno=True)
    is_root, is_first = os.geteuid() == 0, proc.in_first_user_namespace()
    seconds = math.ceil(limits.seconds) + 1
    bounds = (
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
    )

    def confine() -> None:
        if libc.unshare(_CLONE_NEWNET) and not is_root:
            libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)  # where users may
        for which, bound in bounds:
            hard = resource.getrlimit(which)[1]
            value = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
            resource.setrlimit(which, (value, value))
        if is_root:
            try:
                os.setgroups([])
                os.setgid(_NOBODY)
                os.setuid(_NOBODY)
            except OSError:  # a container without such a user, where root is an ordinary one
                if is_first:
                    raise
        libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    return confine


@contextmanager
def _readable(fd: int) -> Iterator[int]:
    """The file, or a copy in memory if `nobody` may not read it."""
    status = os.fstat(fd)
    if os.geteuid() or status.st_mode & stat.S_IROTH:
        yield fd
        return
    if status.st_size > _COPIED:
        raise OSError(errno.EFBIG, "only root may read it, and it is too large to be copied")
    copy = os.memfd_create("purebpf-file", os.MFD_CLOEXEC)
    try:
        at = 0
        while at < status.st_size and (sent := os.sendfile(copy, fd, at, status.st_size - at)):
            at += sent
        yield copy
    finally:
        os.close(copy)


@contextmanager
def _memory_file(text: bytes) -> Iterator[int]:
    fd = os.memfd_create("purebpf-input", os.MFD_CLOEXEC)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(text)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)
