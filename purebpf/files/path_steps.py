"""Paths that other users can change, held with O_PATH, and never by way of a FUSE of theirs.

A link can be exchanged between a look at a path and its use, and a look-up in a file system that
another user runs may wait for ever. So each part is opened from the one before it, links are read
and not followed, and each held part is checked before a look-up below it.
"""

from __future__ import annotations

import errno
import os
from functools import partial

from purebpf.files.fuse_mounts import check_mount, may_meet_one
from purebpf.late_pattern import compile_later
from purebpf.syscall import proc

__all__ = ["open_place"]

_PLACE = os.O_PATH | os.O_CLOEXEC
_ROOT = compile_later(r"/proc/(?:[0-9]+|self)/root(?=/)")
_MAPPED = compile_later(r"/proc/([0-9]+)/map_files/")
_MOST_LINKS = 40
"""As the kernel has it: MAXSYMLINKS of include/linux/namei.h."""


def open_place(path: str, *, follow: bool = True) -> int:
    """Return an O_PATH descriptor of `path`; the caller closes it.

    Raises:
        OSError: it cannot be opened; PermissionError also when the path leads into a file system
            that another user runs, TimeoutError when a process of another user keeps this one
            waiting for its mapped file.
    """
    root = match[0] if (match := _ROOT.match(path)) else ""
    # Other links of /proc lead to what is open or mapped, without a look at its path. The kernel
    # would follow an absolute link below another root directory from ours.
    if root or (not path.startswith("/proc/") and may_meet_one(path)):
        return _open_by_steps(root, path, follow)
    flags = _PLACE if follow else _PLACE | os.O_NOFOLLOW
    return _checked(_open_mapped(path, flags), path)


def _open_mapped(path: str, flags: int) -> int:
    """open(2) in time, for a file that a process of another user has mapped."""
    user = proc.other_user(int(match[1])) if (match := _MAPPED.match(path)) else None
    if user is None:
        return os.open(path, flags)
    from purebpf.syscall.patience import call_in_time  # threading: for other users' processes

    return call_in_time(user, partial(os.open, path, flags), os.close)


def _open_by_steps(root: str, path: str, follow: bool) -> int:
    held = [_checked(os.open(root or "/", _PLACE), path)]
    parts = os.path.join(os.getcwd(), path).removeprefix(root).split("/")[::-1]
    links = 0
    try:
        while parts:
            part = parts.pop()
            if part == "..":
                if len(held) > 1:
                    os.close(held.pop())
                continue
            if part in ("", "."):
                continue
            held.append(os.open(part, _PLACE | os.O_NOFOLLOW, dir_fd=held[-1]))
            check_mount(held[-1], path)
            target = _target(held[-1]) if follow or any(parts) else ""
            if target:
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                kept = 1 if target.startswith("/") else len(held) - 1
                while len(held) > kept:
                    os.close(held.pop())
                parts += target.split("/")[::-1]
        return held.pop()
    finally:
        for fd in held:
            os.close(fd)


def _checked(fd: int, path: str) -> int:
    """The same descriptor; closed if it is in such a file system."""
    try:
        check_mount(fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _target(fd: int) -> str:
    """Return the target of a link; empty if it is not a link."""
    try:
        return os.readlink("", dir_fd=fd)
    except OSError:
        return ""
