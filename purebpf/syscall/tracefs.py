"""tracefs: the ids and formats of tracepoints.

A mounted tracefs is used where it is. Where none is mounted, a detached mount (fsopen(2) and
fsmount(2), CAP_SYS_ADMIN, Linux 5.2: commit 93766fbd2696, "vfs: syscall: Add fsmount() to create a
mount for a superblock") is read instead: no other process sees it, and it is gone when its
descriptor is closed, so nothing is mounted behind the administrator's back.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from purebpf.errors import KernelError, NotSupportedError
from purebpf.syscall import proc
from purebpf.syscall.descriptor import Descriptor
from purebpf.syscall.folder import Folder

__all__ = [
    "append",
    "mount_point",
    "open_tracefs",
    "read",
    "tracepoint_format",
    "tracepoint_id",
    "tracepoint_names",
    "tracepoints",
]

# The same numbers on every architecture (Linux commit d8076bdb56af).
_SYS_FSOPEN = 430
_SYS_FSCONFIG = 431
_SYS_FSMOUNT = 432
_CLOEXEC = 1  # FSOPEN_CLOEXEC and FSMOUNT_CLOEXEC
_CMD_CREATE = 6  # FSCONFIG_CMD_CREATE


def mount_point() -> str | None:
    """Return the mount point of tracefs, the usual place first; None: no trusted one.

    Another place than below /sys must be out of other users' reach, who could put a directory of
    theirs there: we write into its files.
    """
    mounts = [path for path, kind in proc.mounts() if kind == "tracefs"]
    # The kernel mounts tracefs below debugfs on first access (Linux 4.1).
    mounts += [f"{path}/tracing" for path, kind in proc.mounts() if kind == "debugfs"]
    mounts.sort(key=lambda path: path != "/sys/kernel/tracing")
    return next(
        (path for path in mounts if os.path.isdir(f"{path}/events") and _is_safe(path)), None
    )


def _is_safe(path: str) -> bool:
    if path.startswith("/sys/"):
        return True
    try:
        Folder.reach(path).close()
    except KernelError:
        return False
    return True


@contextmanager
def open_tracefs() -> Iterator[str]:
    """A path under which tracefs can be read inside the `with` block.

    Raises:
        NotSupportedError: not mounted, and a detached mount was refused.
    """
    if (mounted := mount_point()) is not None:
        yield mounted
        return
    with _mount_detached() as mount:
        yield f"/proc/self/fd/{mount.fileno()}"


def _mount_detached() -> Descriptor:
    libc = ctypes.CDLL(None, use_errno=True)
    syscall = libc["syscall"]
    syscall.restype = ctypes.c_long
    syscall.argtypes = [ctypes.c_long] * 6
    name = ctypes.c_char_p(b"tracefs")
    address = ctypes.cast(name, ctypes.c_void_p).value
    context = _check(syscall(_SYS_FSOPEN, address, _CLOEXEC, 0, 0, 0))
    with Descriptor(context):
        _check(syscall(_SYS_FSCONFIG, context, _CMD_CREATE, 0, 0, 0))
        return Descriptor(_check(syscall(_SYS_FSMOUNT, context, _CLOEXEC, 0, 0, 0)))


def _check(result: int) -> int:
    if result < 0:
        reason = errno.errorcode.get(ctypes.get_errno(), "an unknown error")
        raise NotSupportedError(
            "tracefs", _not_there(f"opening it without a mount failed with {reason}")
        )
    return result


def _not_there(tried: str) -> str:
    closed = [path for path, kind in proc.mounts() if kind == "tracefs"]
    if closed:
        return f"it is mounted at {closed[0]}, which this user cannot enter, and {tried}"
    fix = "mount it with: mount -t tracefs nodev /sys/kernel/tracing"
    return f"it is not mounted, and {tried}; {fix}"


def read(path: str) -> str:
    """The text of a tracefs file, by its path below the mount.

    Raises:
        KernelError: no such file (ENOENT), no permission (EACCES, EPERM).
        NotSupportedError: no tracefs.
    """
    try:
        with open_tracefs() as root, open(f"{root}/{path}", encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        if isinstance(error, KernelError):
            raise
        raise KernelError(f"read(tracefs {path})", error.errno or 0) from None


def append(path: str, line: str) -> None:
    """Write one line at the end of a tracefs file, by its path below the mount.

    Raises:
        FileNotFoundError: there is no such file.
        KernelError: the kernel refused the line (EINVAL, ENOENT, EEXIST), or the file (EACCES).
        NotSupportedError: no tracefs.
    """
    call = f"write(tracefs {path})"
    with open_tracefs() as root:
        try:
            file = os.open(f"{root}/{path}", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise KernelError(call, error.errno or 0) from None
        with Descriptor(file):
            try:
                os.write(file, f"{line}\n".encode(errors="surrogateescape"))
            except OSError as error:
                raise KernelError(call, error.errno or 0) from None


def tracepoint_id(category: str, name: str) -> int:
    """The number of a tracepoint, which perf_event_open(2) wants as `config`.

    Raises:
        KernelError: ENOENT, this kernel has no such tracepoint; EACCES, not readable for this user.
        NotSupportedError: no tracefs.
    """
    return int(read(f"events/{category}/{name}/id"))


def tracepoint_format(category: str, name: str) -> str:
    """The `format` file of a tracepoint: its fields with offsets and sizes in bytes.

    Raises:
        KernelError, NotSupportedError: as `tracepoint_id`.
    """
    return read(f"events/{category}/{name}/format")


def tracepoints() -> list[str]:
    """Every tracepoint as `category/name`, sorted.

    Raises:
        KernelError: EACCES, not readable for this user.
        NotSupportedError: no tracefs.
    """
    tracepoint_names = []
    with open_tracefs() as root:
        try:
            categories = sorted(os.listdir(f"{root}/events"))
        except OSError as error:
            raise KernelError("listdir(tracefs events)", error.errno or 0) from None
        for category in categories:
            if os.path.isdir(f"{root}/events/{category}"):
                names = os.listdir(f"{root}/events/{category}")
                tracepoint_names += [
                    f"{category}/{name}"
                    for name in names
                    if os.path.exists(f"{root}/events/{category}/{name}/id")
                ]
    return sorted(tracepoint_names)


def tracepoint_names() -> list[str]:
    """Every tracepoint as users spell it, `category:name`, sorted as `tracepoints`.

    Raises:
        KernelError, NotSupportedError: as `tracepoints`.
    """
    return [path.replace("/", ":") for path in tracepoints()]
