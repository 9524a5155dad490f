"""The live part: traces system calls, and turns records into events."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

from purebpf.abi import syscalls
from purebpf.kernel.instruments.event_stream import Record, StreamRequest
from purebpf.kernel.instruments.task_filter import bit_words
from purebpf.measure.cgroup_ids import CgroupIds
from purebpf.measure.event_session import EventSession
from purebpf.measure.stop import HasFileno
from purebpf.trace import loading
from purebpf.trace.arguments import show_arguments
from purebpf.trace.constants import signal_name
from purebpf.trace.descriptors import Descriptors
from purebpf.trace.events import Call, Ended, Event, Lost, Signalled, Task
from purebpf.trace.kinds import compat_signature, signature
from purebpf.trace.request import Options
from purebpf.trace.results import show_result
from purebpf.trace.selection import select
from purebpf.trace.structs import show_siginfo
from purebpf.trace.view import View, pieces

__all__ = ["Traces"]

_LOSSES = {
    "states_full": "calls were not traced: tasks found no place for them",
    "outside_namespace": "note: calls are of tasks without an ID in this PID namespace",
}
_CALL, _EXITED = 0, 1
_ENDINGS = ("returned", "unfinished", "in flight")
_CALL_WORDS = 9  # CALL_BITS / 64
_RING = 1 << 25
"""Bytes: some 200,000 calls without pieces."""
_STATES = 4096
"""Tasks on kernels without task storage: 26 MB."""


class Traces(EventSession[Event]):
    """Traces system calls from when its context is entered until `stop()`.

    Args:
        options: of which tasks, and which calls.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`).

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError: a process, thread, CPU or cgroup that does not exist.
        UnknownCallError: `options.events` has a word that fits no call.
        KernelError: the kernel refused something; says what, and what would help.
        NotSupportedError: the kernel does not have what is needed: its types (BTF), and programs
            at its tracepoints (tp_btf, Linux 5.5, commit f1b9509c2fb0).
    """

    explained = _LOSSES

    def __init__(self, options: Options, command_pid: int = 0) -> None:
        super().__init__(options, command_pid)
        self._options = options
        self._machine = syscalls.machine(os.uname().machine)
        self._cgroups = CgroupIds()
        self._descriptors = Descriptors(follows=not options.events)
        self._lost = 0
        self._lost_by_slot: list[int] = []
        self._left = options.most_events
        self._before: list[Event] = []

    def request(self) -> StreamRequest:
        """The programs of bpf_src/trace.bpf.c, and those of the calls that are asked for."""
        options, machine = self._options, self._machine
        tables = [syscalls.table(abi) for abi in (machine.native, machine.compat, machine.x32)]
        known = {name for table in tables for name in table.values()}
        wanted = select(options.events, known)
        calls = [
            bit_words((nr for nr, name in table.items() if name in wanted), _CALL_WORDS)
            for table in tables
        ]
        execs = [syscalls.number(machine.native, name) or 0 for name in ("execve", "execveat")]
        whole = options.events == ()
        return StreamRequest(
            "trace",
            ("call", "exited", "signal"),
            ("enter_call", "leave_call", "end_task", *(("deliver_signal",) if whole else ())),
            others=("send_call", "list_calls"),
            settings={
                "command_tgid": self._command_pid,
                "exec_numbers": execs,
                "compat_flag": machine.compat_flag,
                "only_failed": options.failed,
                "least_ns": int(options.least_ms * 1e6),
                "has_calls": not whole,
                "calls": calls,
            },
            sizes={"events": _RING},
            prepare=lambda tracer: loading.load_programs(tracer, wanted, options.string_size),
        )

    def wait(self, *ends: HasFileno) -> bool:
        """Sleep until the run is over: True. False: there are events to `drain()`."""
        return self._left == 0 or super().wait(*ends)

    def drain(self) -> Iterator[Event]:
        """The events that came since the last call, and where calls are missing among them."""
        for event in super().drain():
            for shown in (*self._before, event):
                if self._left == 0:
                    return
                if self._left is not None and isinstance(shown, Call):
                    self._left -= 1
                yield shown
            self._before.clear()

    def finish(self) -> Iterator[Event]:
        """Calls that are open, and those that were dropped last."""
        if self._left == 0:
            return
        yield from self._lost_until(int(self.stream.object.globals["lost_calls"]))
        link: Any = self.stream.object.programs["list_calls"].attach()  # an IteratorLink
        with link:
            data: bytes = link.read()
        at = 0
        while at < len(data):
            record = self.stream.decode(data[at:])
            size = len(data) - at - len(record.tail) + record.fields.used
            event = self.make_event(Record(record.kind, record.fields, data[at : at + size]))
            at += size
            yield event

    def make_event(self, record: Record) -> Event:
        """What a record says."""
        fields = record.fields
        if record.kind == _CALL:
            self._before += self._lost_until(fields.lost)
            return self._call(fields, record.tail)
        event = fields.event
        time_ns, task = self.wall_ns(event.time_ns), self._task(event)
        if record.kind == _EXITED:
            self._descriptors.forget(event.tid)
            signal, status = fields.code & 0x7F, fields.code >> 8 & 0xFF
            name = signal_name(signal) if signal else ""
            return Ended(time_ns, task, status, name, bool(fields.code & 0x80))
        info = show_siginfo(fields.number, fields.code, fields.error, tuple(fields.fields))
        return Signalled(time_ns, task, signal_name(fields.number), info)

    def _task(self, event: Any) -> Task:
        cgroup = self._cgroups.label(event.cgroup)
        return Task(event.tgid, event.tid, event.uid, event.comm, cgroup)

    def _call(self, fields: Any, tail: bytes) -> Call:
        abi, number = self._abi(fields)
        name = syscalls.name(abi, number)
        ending = _ENDINGS[fields.ending]
        result = fields.result if ending == "returned" else None
        words = tuple(fields.arguments)
        view = View(name, words, result, dict(pieces(tail)), self._options.string_size)
        is_compat = bool(self._machine.compat) and abi == self._machine.compat
        known = compat_signature(name) if is_compat else signature(name)
        pid = fields.event.tgid
        if self._options.paths:
            view = view._replace(path_of=partial(self._descriptors.path, pid))
        arguments = tuple(show_arguments(view, known))  # before it takes effect on descriptors
        if self._options.paths and result is not None:
            self._descriptors.learn(pid, name, words, result, view.path)
        return Call(
            time_ns=self.wall_ns(fields.event.time_ns),
            task=self._task(fields.event),
            name=name,
            abi=abi,
            names=known.names if known else (),
            arguments=arguments,
            words=words,
            result=result,
            result_text=show_result(view),
            errno=-result if view.failed and result is not None else 0,
            duration_ns=fields.duration_ns,
            ending=ending,
        )

    def _abi(self, fields: Any) -> tuple[str, int]:
        number = fields.nr
        if fields.abi:
            return self._machine.compat, number
        if number & syscalls.X32_BIT and self._machine.x32:
            return self._machine.x32, number & ~syscalls.X32_BIT
        return self._machine.native, number

    def _lost_until(self, lost: int) -> list[Event]:
        """What was dropped since the last look, by call."""
        missing, self._lost = lost - self._lost, lost
        if not missing:
            return []
        now = list(self.stream.object.globals["lost"])
        said = self._lost_by_slot or [0] * len(now)
        self._lost_by_slot = said
        by_name: dict[str, int] = {}
        left = missing  # the counters are of now: some of these calls come later in the ring
        for slot in sorted(range(len(now)), key=lambda slot: said[slot] - now[slot]):
            count = min(left, now[slot] - said[slot])
            if count <= 0:
                break
            abi = self._machine.compat if slot >= loading.SLOTS else self._machine.native
            by_name[syscalls.name(abi, slot % loading.SLOTS)] = count
            said[slot] += count
            left -= count
        return [Lost(missing, by_name)]
