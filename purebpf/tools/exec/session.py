"""The live part: follows processes, and turns records into events."""

from __future__ import annotations

from typing import Any

from purebpf.measure.event_session import EventSession
from purebpf.measure.event_text import decode, join_names
from purebpf.observe.instruments.event_stream import Record, StreamRequest
from purebpf.observe.processes.cgroup_ids import CgroupIds
from purebpf.tools.exec.events import Ended, Event, Executed, Refused, Task, Used
from purebpf.tools.exec.request import ExecOptions

__all__ = ["Processes"]

_PROGRAMS = ("on_exec", "on_exit")
_REFUSALS = ("enter_execve", "exit_execve", "enter_execveat", "exit_execveat")
_KINDS = ("executed", "ended", "refused", "used")
_CORE = 0x80
_SIGNAL = 0x7F

_LOSSES = {
    "arguments_cut": "note: programs have more arguments than are shown: their first 16 kB",
    "arguments_unreadable": "programs are shown without arguments, which were not in memory",
    "paths_cut": "files have a path that is not known up to the root",
    "dying_full": "threads' CPU time is missing: too many ended at once",
    "calls_full": "calls of execve were dropped: the map of calls in flight was full",
    "outside_namespace": "events are of processes without an ID in this PID namespace",
}


class Processes(EventSession[Event]):
    """Follows processes from when its context is entered until `stop()`.

    Args:
        options: which.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`).

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError: a process, thread, CPU or cgroup that does not exist.
        KernelError: the kernel refused something; the message says why, and names a fix.
        NotSupportedError: the kernel lacks a feature that the programs need.
    """

    explained = _LOSSES

    def __init__(self, options: ExecOptions, command_pid: int = 0) -> None:
        super().__init__(options, command_pid)
        self._options = options
        self._cgroups = CgroupIds()

    def request(self) -> StreamRequest:
        """The programs of bpf_src/exec.bpf.c."""
        options = self._options
        refusals = options.failed or options.cpu_times
        programs = (
            *(("mark_thread",) if options.cpu_times else ()),  # before the process is forgotten
            *_PROGRAMS,
            *(_REFUSALS if refusals else ()),
            *(("on_last_switch",) if options.cpu_times else ()),
        )
        sizes = ({} if refusals else {"calls": 1}) | ({} if options.cpu_times else {"dying": 1})
        return StreamRequest("exec", _KINDS, programs, sizes=sizes)

    def make_event(self, record: Record) -> Event | None:
        """Return the event of a record; None for a success if the user wants failures only."""
        if record.kind == _KINDS.index("executed"):
            return None if self._options.failed else self._executed(record.fields, record.tail)
        if record.kind == _KINDS.index("refused"):
            task = self._task(record.fields)
            return Refused(task, decode(record.tail), record.fields.errno_value)
        if record.kind == _KINDS.index("used"):
            return Used(self._task(record.fields), record.fields.cpu_ns)
        if self._options.failed and not record.fields.code:
            return None
        return self._ended(record.fields)

    def _task(self, fields: Any) -> Task:
        event = fields.event
        return Task(
            time_ns=self.wall_ns(event.time_ns),
            pid=event.tgid,
            tid=event.tid,
            ppid=fields.ppid,
            uid=event.uid,
            comm=event.comm,
            cgroup=self._cgroups.label(event.cgroup),
        )

    def _executed(self, fields: Any, tail: bytes) -> Executed:
        path_at = fields.arguments_size
        names_at = path_at + fields.path_size
        arguments = tail[:path_at].removesuffix(b"\0")
        return Executed(
            task=self._task(fields),
            path=decode(tail[path_at:names_at]),
            executable=join_names(
                tail[names_at : names_at + fields.names_size], whole=bool(fields.names_whole)
            ),
            arguments=tuple(map(decode, arguments.split(b"\0"))) if path_at else (),
            cut_bytes=fields.arguments_asked - path_at,
        )

    def _ended(self, fields: Any) -> Ended:
        code = fields.code
        number = code & _SIGNAL
        return Ended(
            task=self._task(fields),
            status=None if number else code >> 8 & 0xFF,
            signal=number or None,
            dumped_core=bool(code & _CORE),
            lifetime_ns=fields.lifetime_ns,
        )
