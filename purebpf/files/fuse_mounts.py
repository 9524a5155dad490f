"""File systems that other users run (FUSE), and that let root look into them (`allow_other`).

A file there is opened and read when that user's process answers, and once it has been asked, not
even SIGKILL ends the wait: request_wait_answer() of fs/fuse/dev.c. Without `allow_other` the kernel
keeps root out before it asks: fuse_allow_current_process() of fs/fuse/dir.c. A mount that was
detached (umount2(2), MNT_DETACH) is in no list of mounts; its connection is still in fusectl, a
directory of the user who mounted it, named by the number of the device.
"""

from __future__ import annotations

import errno
import os
import re
import time

from purebpf.late_pattern import compile_later
from purebpf.syscall.device import device_of

__all__ = ["check_mount", "foreign_mounts", "may_meet_one"]

_KNOWN_S = 1.0
_MOST_KNOWN = 256
_PROCESS = compile_later(r"/proc/([0-9]+)/")
_CONNECTIONS = "/sys/fs/fuse/connections"
_known: dict[str, tuple[float, dict[int, str]]] = {}


def may_meet_one(path: str) -> bool:
    """Return True if there is any: among the mounts of that process, or the connections of all."""
    if _mounts_for(path):
        return True
    try:
        with os.scandir(_CONNECTIONS) as entries:
            return any(entry.stat().st_uid not in (0, os.geteuid()) for entry in entries)
    except OSError:
        return False


def check_mount(fd: int, path: str) -> None:
    """Refuse a file in one: call it when the file is held with O_PATH, before it is opened.

    Raises:
        PermissionError: it is in one.
    """
    if _is_of_a_foreign_connection(fd):
        raise PermissionError(errno.EACCES, "in a file system of another user", path)
    if not (mounts := _mounts_for(path)):
        return
    with open(f"/proc/self/fdinfo/{fd}") as file:
        number = re.search(r"^mnt_id:\s*([0-9]+)", file.read(), re.MULTILINE)
    if number and int(number[1]) in mounts:
        raise PermissionError(errno.EACCES, "in a file system of another user", path)


def _is_of_a_foreign_connection(fd: int) -> bool:
    """Return True if an open file is on a FUSE that another user mounted; False without fusectl."""
    device = device_of(fd)
    if device is None or device[0]:
        return False
    try:
        owner = os.stat(f"{_CONNECTIONS}/{device[1]}").st_uid
    except OSError:
        return False
    return owner not in (0, os.geteuid())


def foreign_mounts(mountinfo: str) -> dict[int, str]:
    """Number and place of each, from a text of /proc/PID/mountinfo (proc_pid_mountinfo(5))."""
    mounts = {}
    for line in mountinfo.split("\n"):
        before, _, after = line.partition(" - ")
        kind, _, rest = after.partition(" ")
        if kind != "fuse" and not kind.startswith(("fuse.", "fuseblk")):
            continue
        options = rest.rpartition(" ")[2].split(",")
        user = next((word[8:] for word in options if word.startswith("user_id=")), "0")
        if "allow_other" in options and user not in ("0", str(os.geteuid())):
            words = before.split(" ")
            place = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), words[4])
            mounts[int(words[0])] = place
    return mounts


def _mounts_for(path: str) -> dict[int, str]:
    """Return the mounts of the process that a path names, else ours, as read within the last
    second.
    """
    process = match[1] if (match := _PROCESS.match(path)) else "self"
    view = _view(process)
    now = time.monotonic()
    when, mounts = _known.get(view, (-_KNOWN_S, {}))
    if now - when < _KNOWN_S:
        return mounts
    try:
        with open(f"/proc/{process}/mountinfo", errors="surrogateescape") as file:
            mounts = foreign_mounts(file.read())
    except OSError:  # it has exited: nothing is found by its paths
        mounts = {}
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[view] = now, mounts
    return mounts


def _view(process: str) -> str:
    """Return the facts that decide which mounts a process sees: nearly all processes see the
    same.
    """
    try:
        return "".join(os.readlink(f"/proc/{process}/{name}") for name in ("ns/mnt", "root"))
    except OSError:
        return process
