"""`write_java_perf_map`: have a JVM write the names of its compiled methods to /tmp/perf-PID.map.

What `jcmd PID Compiler.perfmap` (OpenJDK 17 and later) does, without a JDK on this machine: a file
`/tmp/.attach_pidN` and SIGQUIT make a HotSpot JVM open the socket `/tmp/.java_pidN`, which takes
diagnostic commands from its own user (jdk.attach/linux VirtualMachineImpl.java, and
src/hotspot/os/posix/attachListener_posix.cpp). A child process does it, with the JVM's user, group
and root directory: what lies in that /tmp cannot lead it where the JVM itself may not go.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from contextlib import suppress

from purebpf.errors import KernelError, errno_name
from purebpf.symbols.runtimes import runtime_of
from purebpf.syscall import proc
from purebpf.syscall.left_reader import reap

__all__ = ["is_java", "write_java_perf_map"]

_REQUEST = b"1\0jcmd\0Compiler.perfmap\0\0\0"
"""Version of the protocol, command, three arguments."""
_STARTED_S = 5.0
"""How long a JVM may take to open its socket: it looks for the file after SIGQUIT."""
_ANSWERED_S = 20.0
_MOST_ANSWER = 1 << 16
_POLL_S = 0.02
_SIGQUIT_BIT = 1 << signal.SIGQUIT - 1


def is_java(pid: int) -> bool:
    """Whether a process runs a HotSpot JVM."""
    try:
        lines = (proc.maps(pid) or "").split("\n")
    except KernelError:
        return False
    paths = {line.rpartition(" ")[2] for line in lines if line.endswith(".so")}
    runtime = runtime_of(paths)
    is_hotspot = not any("libj9vm" in path for path in paths)
    return runtime is not None and runtime.name == "java" and is_hotspot


def write_java_perf_map(pid: int) -> str:
    """Have the JVM of a process write its perf map.

    Args:
        pid: in our PID namespace.

    Returns:
        Why it did not; "" if it did.
    """
    try:
        process = os.pidfd_open(pid)
    except OSError as error:
        return f"the process is gone ({errno_name(error.errno or 0)})"
    try:
        status = proc.status(pid)
        if status is None:
            return "the process is gone"
        return _in_child(pid, process, status)
    except KernelError as error:
        return str(error)
    finally:
        os.close(process)


def _in_child(pid: int, process: int, status: dict[str, str]) -> str:
    """What a child process says that went wrong."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        answer = "it ended unexpectedly"
        with suppress(BaseException):
            answer = _attach(pid, process, status)
        with suppress(BaseException):
            os.write(writer, answer.encode()[:4096])
        os._exit(0)
    os.close(writer)
    try:
        ready, _, _ = select.select([reader], [], [], _STARTED_S + _ANSWERED_S)
        if not ready:
            return f"no answer within {_STARTED_S + _ANSWERED_S:.0f} s"
        return _printable(os.read(reader, 4096).decode("utf-8", "replace"))
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)  # it has answered, or a signal ends the wait
        reap(child)


def _printable(text: str) -> str:
    """What a JVM says, as part of a line on a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text[:200])


def _attach(pid: int, process: int, status: dict[str, str]) -> str:
    """In the child: become the JVM's user in its root directory, and ask."""
    inner = status.get("NSpid", str(pid)).split()[-1]
    catches = int(status.get("SigCgt", "0"), 16) & _SIGQUIT_BIT
    try:
        _become(pid, status)
        path = f"/tmp/.java_pid{inner}"  # noqa: S108, where the JVM has it
        if not os.path.exists(path):
            if not catches:
                return "it does not handle SIGQUIT, which would end it"
            if not _open_socket(path, process, inner):
                return "it did not open its socket (-XX:+DisableAttachMechanism?)"
        return _ask(path)
    except OSError as error:
        return f"{error.strerror} ({errno_name(error.errno or 0)})"


def _become(pid: int, status: dict[str, str]) -> None:
    root = os.open(f"/proc/{proc.with_memory(pid)}/root", os.O_RDONLY | os.O_DIRECTORY)
    user, group = (int(status[name].split()[1]) for name in ("Uid", "Gid"))
    os.fchdir(root)
    if os.geteuid() == 0:
        os.chroot(".")
        os.setgroups([])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)
    elif os.stat("/") != os.stat("."):
        raise PermissionError(1, "another root directory, which only root may enter")


def _open_socket(path: str, process: int, inner: str) -> bool:
    """Have the JVM make its socket."""
    request = f"/tmp/.attach_pid{inner}"  # noqa: S108
    with suppress(FileExistsError):
        os.close(os.open(request, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        signal.pidfd_send_signal(process, signal.SIGQUIT)
        end = time.monotonic() + _STARTED_S
        while time.monotonic() < end:
            if os.path.exists(path):
                return True
            time.sleep(_POLL_S)
        return False
    finally:
        with suppress(OSError):
            os.unlink(request)


def _ask(path: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_ANSWERED_S)
        connection.connect(path)
        connection.sendall(_REQUEST)
        answer = b""
        while len(answer) < _MOST_ANSWER and (part := connection.recv(4096)):
            answer += part
    code, _, text = answer.decode("utf-8", "replace").partition("\n")
    if code == "0":
        return ""
    return text.strip().splitlines()[0] if text.strip() else f"it answered {code!r}"
