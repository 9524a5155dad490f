"""The live part: follows opened files, and turns records into events."""

from __future__ import annotations

import os

from purebpf.abi import syscalls
from purebpf.measure.event_session import EventSession
from purebpf.measure.event_text import decode, join_names, join_path
from purebpf.observe.instruments.event_stream import Record, StreamRequest
from purebpf.observe.processes.cgroup_ids import CgroupIds
from purebpf.tools.open.events import Opened
from purebpf.tools.open.request import OpenOptions

__all__ = ["Opens"]

_UNKNOWN_NS = (1 << 64) - 1
"""As bpf_src/open.bpf.c has it."""

_CALLS = ("openat", "openat2", "open", "creat")
_LOSSES = {
    "calls_full": "calls were dropped: the map of calls in flight was full",
    "paths_unreadable": "note: calls have a path that was not in memory",
    "directories_unknown": "note: relative paths are of a directory that is not known",
    "outside_namespace": "calls are of tasks without an ID in this PID namespace",
}


class Opens(EventSession[Opened]):
    """Follows opened files from when its context is entered until `stop()`.

    Calls of 32-bit programs and of io_uring are not seen: the kernel has no tracepoint for them.

    Args:
        options: the tasks.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`).

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError: a process, thread, CPU or cgroup that does not exist.
        KernelError: the kernel refused something; the message says why, and names a fix.
        NotSupportedError: the kernel lacks a feature that the programs need.
    """

    explained = _LOSSES

    def __init__(self, options: OpenOptions, command_pid: int = 0) -> None:
        super().__init__(options, command_pid)
        self._options = options
        self._cgroups = CgroupIds()

    def request(self) -> StreamRequest:
        """The programs of bpf_src/open.bpf.c, for the calls that this machine has."""
        options = self._options
        abi = syscalls.machine(os.uname().machine).native
        programs = [
            f"{end}_{call}"
            for call in _CALLS
            for end in ("enter", "exit")
            if syscalls.number(abi, call) is not None
        ]
        return StreamRequest(
            "open",
            ("opened",),
            programs,
            settings={
                "only_failed": options.failed or options.errno is not None,
                "only_errno": options.errno or 0,
            },
        )

    def make_event(self, record: Record) -> Opened:
        """Return the event of a record."""
        fields, tail = record.fields, record.tail
        event = fields.event
        names_at = fields.path_size
        given = decode(tail[:names_at]) if names_at else None
        path = given or ""
        if given and not given.startswith("/"):
            names = tail[names_at : names_at + fields.names_size]
            path = join_path(join_names(names, whole=bool(fields.names_whole)), given)
        return Opened(
            time_ns=self.wall_ns(event.time_ns),
            pid=event.tgid,
            tid=event.tid,
            uid=event.uid,
            comm=event.comm,
            cgroup=self._cgroups.label(event.cgroup),
            path=path,
            given=given,
            flags=fields.flags,
            dirfd=fields.dirfd,
            fd=fields.result if fields.result >= 0 else None,
            errno=max(0, -fields.result),
            duration_ns=fields.duration_ns if fields.duration_ns != _UNKNOWN_NS else None,
        )
