"""Facts about the processes of a window, for the name of their service."""

from __future__ import annotations

import os
from contextlib import suppress

from purebpf.errors import FormatError, KernelError
from purebpf.files.regular_file import opened_regular
from purebpf.loader.host.debug_files import image_of
from purebpf.services.agent.name_shares import UNKNOWN_USER, user_of_cgroup
from purebpf.services.agent.services import Process
from purebpf.syscall import proc

__all__ = ["Executables", "user_of"]

_MOST = 4096

_Identity = tuple[int, int, int]


class Executables:
    """Names and build ids of executables, each file read once; "" of a process that is gone."""

    def __init__(self) -> None:
        self._build_ids: dict[_Identity, str] = {}

    def describe(self, pid: int, comm: str, cgroup: str) -> Process:
        """Return a process with the present facts of /proc."""
        link = f"{proc.PROC}/{proc.with_memory(pid)}/exe"
        try:
            path = os.readlink(link)
            status = os.stat(link)
        except OSError:  # gone, a kernel thread, or not ours to look at
            return Process(comm, cgroup)
        identity = status.st_dev, status.st_ino, status.st_mtime_ns
        build_id = self._build_ids.get(identity)
        if build_id is None:
            if len(self._build_ids) >= _MOST:
                self._build_ids.clear()
            build_id = self._build_ids[identity] = _read_build_id(link)
        return Process(comm, cgroup, path.removesuffix(" (deleted)"), build_id)


def user_of(pid: int, cgroup: str) -> int:
    """Return the user who may have chosen the names of a process: its session's, else the one who
    started it.

    Not the owner in /proc, which is root where a process forbids to be looked at (proc(5)).
    """
    user = user_of_cgroup(cgroup)
    if user is None:
        with suppress(KernelError):
            user = proc.real_user(pid)
    return UNKNOWN_USER if user is None else user


def _read_build_id(path: str) -> str:
    with suppress(OSError, FormatError), opened_regular(path) as fd:
        return image_of(fd, path).build_id
    return ""
