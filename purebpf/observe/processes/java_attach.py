"""`write_java_perf_map`: have a JVM write the names of its compiled methods to /tmp/perf-PID.map.

It works as `jcmd PID Compiler.perfmap` (OpenJDK 17 and later), without a JDK on this machine: a
file `/tmp/.attach_pidN` and SIGQUIT make a HotSpot JVM open the socket `/tmp/.java_pidN`, which
takes diagnostic commands from its user (jdk.attach/linux VirtualMachineImpl.java, and
src/hotspot/os/posix/attachListener_posix.cpp).

Other users can write to that /tmp. So purebpf holds it by descriptor, looks every name up in it
without following links, and creates the perf map before the JVM gets the command, because the JVM
follows links when it opens its file. A child process with the JVM's user and group does the work;
purebpf may abandon it. It keeps three descriptors: the directory, the process and a pipe.
"""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import stat
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from purebpf.errors import KernelError, errno_name
from purebpf.symbols.perf_map import perf_map_name
from purebpf.symbols.runtimes import runtime_of
from purebpf.syscall import proc
from purebpf.syscall.descriptor import keep_only
from purebpf.syscall.fork import fork
from purebpf.syscall.left_reader import reap

__all__ = ["is_java", "write_java_perf_map"]

_REQUEST = b"1\0jcmd\0Compiler.perfmap\0\0\0"
"""Version of the protocol, command, three arguments."""
_PATIENCE_S = 3.0
"""A JVM looks for the file after SIGQUIT, and writes 17 kB of names within 0.2 s."""
_MARGIN_S = 0.5
"""The child gives up first, since it knows what it waited for."""
_MOST_ANSWER = 1 << 16
_POLL_S = 0.02
_SIGQUIT_BIT = 1 << signal.SIGQUIT - 1
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MOUNT = re.compile(r"^mnt_id:\s*([0-9]+)", re.MULTILINE)
_ANSWER, _TMP, _PROCESS = range(3)
"""Descriptors of the child."""


class _RefusedError(Exception):
    """A path that another user may have put there; says which."""


def is_java(pid: int) -> bool:
    """Return True if a process runs a HotSpot JVM."""
    try:
        lines = (proc.maps(pid) or "").split("\n")
    except KernelError:
        return False
    paths = {line.rpartition(" ")[2] for line in lines if line.endswith(".so")}
    runtime = runtime_of(paths)
    is_hotspot = not any("libj9vm" in path for path in paths)
    return runtime is not None and runtime.name == "java" and is_hotspot


def write_java_perf_map(pid: int, patience_s: float = _PATIENCE_S) -> str:
    """Have the JVM of a process write its perf map.

    Args:
        pid: in our PID namespace.
        patience_s: seconds that all of it may take.

    Returns:
        The reason why it did not; "" if it did.
    """
    try:
        with ExitStack() as closing:
            process = os.pidfd_open(pid)
            closing.callback(os.close, process)
            status = proc.status(pid)
            if status is None:
                return "the process is gone"
            inner = status.get("NSpid", str(pid)).split()[-1]
            tmp = _hold_tmp(pid, (perf_map_name(int(inner)), _socket(inner), _request(inner)))
            closing.callback(os.close, tmp)
            return _ask_in_child(process, tmp, status, inner, patience_s)
    except _RefusedError as error:
        return str(error)
    except KernelError as error:
        return str(error)
    except OSError as error:
        return f"the process is gone ({errno_name(error.errno or 0)})"


def _socket(inner: str) -> str:
    return f".java_pid{inner}"


def _request(inner: str) -> str:
    return f".attach_pid{inner}"


def _hold_tmp(pid: int, names: tuple[str, ...]) -> int:
    """An O_PATH descriptor of a process's /tmp; the caller closes it.

    No step asks a file system that a user runs (FUSE): the held descriptor is checked before each
    look-up of a name in it.

    Raises:
        _RefusedError: /tmp, or one of the names in it, is a link or in such a file system.
        OSError: the process is gone.
    """
    with ExitStack() as closing:
        task = proc.with_memory(pid)
        types = _mount_types(task)
        root = os.open(f"/proc/{task}/root", _PLACE & ~os.O_NOFOLLOW | os.O_DIRECTORY)
        closing.callback(os.close, root)
        _check_mount(root, "its root directory", types)
        tmp = _open_step("tmp", root, "/tmp")  # noqa: S108
        with ExitStack() as failing:
            failing.callback(os.close, tmp)
            mount = _check_mount(tmp, "its /tmp", types)
            if not stat.S_ISDIR(os.stat(tmp).st_mode):
                raise _RefusedError("its /tmp is not a directory")
            for name in names:
                with suppress(FileNotFoundError):
                    fd = _open_step(name, tmp, f"/tmp/{name}")  # noqa: S108
                    closing.callback(os.close, fd)
                    if _mount_of(fd) != mount:
                        raise _RefusedError(f"something is mounted on its /tmp/{name}")
            failing.pop_all()
    return tmp


def _open_step(name: str, folder: int, shown: str) -> int:
    """One component of a path, which is not a symbolic link; the caller closes it."""
    fd = os.open(name, _PLACE, dir_fd=folder)
    with suppress(OSError):
        os.readlink("", dir_fd=fd)
        os.close(fd)
        raise _RefusedError(f"its {shown} is a symbolic link")
    return fd


def _mount_types(task: int | str) -> dict[int, str]:
    """Types of the file systems that a process sees, by the number of the mount."""
    types = {}
    with open(f"/proc/{task}/mountinfo", errors="surrogateescape") as file:
        for line in file.read().split("\n"):
            before, _, after = line.partition(" - ")
            number = before.partition(" ")[0]
            if number.isdecimal():
                types[int(number)] = after.partition(" ")[0]
    return types


def _mount_of(fd: int) -> int:
    with open(f"/proc/self/fdinfo/{fd}") as file:
        match = _MOUNT.search(file.read())
    return int(match[1]) if match else -1


def _check_mount(fd: int, shown: str, types: dict[int, str]) -> int:
    """The number of the mount that a directory is in.

    Raises:
        _RefusedError: a user may run it (FUSE), or it is no longer in the tree of mounts.
    """
    number = _mount_of(fd)
    kind = types.get(number, "")
    if not kind or kind.startswith("fuse"):
        described = f"({kind}), and may never answer" if kind else "that was detached"
        raise _RefusedError(f"{shown} is in a file system {described}")
    return number


def _ask_in_child(
    process: int, tmp: int, status: dict[str, str], inner: str, patience_s: float
) -> str:
    """The problem that a child process reports; "" if there is none."""
    reader, writer = os.pipe()
    child = fork()
    if not child:
        answer = "it ended unexpectedly"
        with suppress(BaseException):
            keep_only(writer, tmp, process)
            answer = _attach(status, inner, patience_s)
        with suppress(BaseException):
            os.write(_ANSWER, answer.encode()[:4096])
        os._exit(0)
    os.close(writer)
    try:
        ready, _, _ = select.select([reader], [], [], patience_s + _MARGIN_S)
        if not ready:
            return f"no answer within {patience_s:.1f} s"
        return _printable(os.read(reader, 4096).decode("utf-8", "replace"))
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)  # it has answered, or a signal ends the wait
        reap(child)


def _printable(text: str) -> str:
    """A text of a JVM, as part of a line on a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text[:200])


def _attach(status: dict[str, str], inner: str, patience_s: float) -> str:
    """In the child: become the JVM's user, and ask."""
    end_s = time.monotonic() + patience_s
    catches = int(status.get("SigCgt", "0"), 16) & _SIGQUIT_BIT
    user, group = (int(status[name].split()[1]) for name in ("Uid", "Gid"))
    try:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(group, group, group)
            os.setresuid(user, user, user)
        os.fchdir(_TMP)
        _check_tmp(user)
        has_socket = _is_own(_socket(inner), user, stat.S_ISSOCK, "socket")
        if not has_socket and not catches:
            return "it does not handle SIGQUIT, which would end it"
        _make_map(perf_map_name(int(inner)), user)
        if not has_socket and not _open_socket(inner, user, end_s):
            return "it did not open its socket (-XX:+DisableAttachMechanism?)"
        return _ask(_socket(inner), end_s)
    except _RefusedError as error:
        return str(error)
    except OSError as error:
        return f"{error.strerror or error} ({errno_name(error.errno or 0)})"


def _check_tmp(user: int) -> None:
    """Refuse a directory where another user can exchange a file of this one.

    Raises:
        _RefusedError: it is such a one.
    """
    status = os.stat(".")
    if status.st_uid not in (0, user):
        raise _RefusedError(f"its /tmp belongs to UID {status.st_uid}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        raise _RefusedError("others can exchange files in its /tmp: chmod +t")


def _is_own(name: str, user: int, is_kind: Callable[[int], bool], kind: str) -> bool:
    """Return True if a user's own file of a kind is there, False if nothing is.

    Raises:
        _RefusedError: it is of another kind or user, or it has a second name.
    """
    try:
        status = os.stat(name, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if is_kind(status.st_mode) and status.st_uid == user and status.st_nlink == 1:
        return True
    raise _RefusedError(
        f"its /tmp/{name} is not a {kind} of UID {user} with one name "
        f"({stat.filemode(status.st_mode)}, UID {status.st_uid}, {status.st_nlink} names)"
    )


def _make_map(name: str, user: int) -> None:
    """Make the file that the JVM will write, before another user puts a link in its place."""
    try:
        fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        _is_own(name, user, stat.S_ISREG, "regular file")
    else:
        os.close(fd)


def _open_socket(inner: str, user: int, end_s: float) -> bool:
    """Have the JVM make its socket."""
    request = _request(inner)
    with suppress(FileExistsError):
        os.close(os.open(request, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        signal.pidfd_send_signal(_PROCESS, signal.SIGQUIT)
        while time.monotonic() < end_s - _POLL_S:
            if _is_own(_socket(inner), user, stat.S_ISSOCK, "socket"):
                return True
            time.sleep(_POLL_S)
        return False
    finally:
        with suppress(OSError):
            os.unlink(request)


def _ask(path: str, end_s: float) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(max(_POLL_S, end_s - time.monotonic()))
        connection.connect(path)
        connection.sendall(_REQUEST)
        answer = b""
        while len(answer) < _MOST_ANSWER and (part := connection.recv(4096)):
            answer += part
    code, _, text = answer.decode("utf-8", "replace").partition("\n")
    if code == "0":
        return ""
    return text.strip().splitlines()[0] if text.strip() else f"it answered {code!r}"
