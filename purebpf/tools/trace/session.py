"""The live part: traces system calls and tracepoints, and turns records into events."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from purebpf.abi import syscalls
from purebpf.measure.event_session import Ending, EventSession
from purebpf.measure.stop import HasFileno
from purebpf.measure.target_ends import first_pids
from purebpf.measure.targets import is_in_scope
from purebpf.observe.instruments.event_stream import Record, StreamRequest
from purebpf.observe.instruments.task_filter import bit_words
from purebpf.observe.processes.cgroup_ids import CgroupIds
from purebpf.tools.trace import loading
from purebpf.tools.trace.arguments import show_arguments
from purebpf.tools.trace.compat.captures import called, compat_signature, with_socket_calls
from purebpf.tools.trace.compat.layouts import widen
from purebpf.tools.trace.constants import signal_name
from purebpf.tools.trace.descriptors import Descriptors
from purebpf.tools.trace.events import Call, Ended, Event, Lost, Passed, Signalled, Task
from purebpf.tools.trace.kinds import signature
from purebpf.tools.trace.request import TraceOptions
from purebpf.tools.trace.results import show_result
from purebpf.tools.trace.selection import select, split
from purebpf.tools.trace.siginfo import show_siginfo
from purebpf.tools.trace.tracepoint_programs import (
    Tracepoint,
    attach_tracepoints,
    read,
    start_tracepoints,
)
from purebpf.tools.trace.view import View, pieces

if TYPE_CHECKING:
    from purebpf.loader.load.object import Object
    from purebpf.tools.trace.stacks import StackNames

__all__ = ["Traces"]

_LOSSES = {
    "states_full": "calls were not traced: tasks found no place for them",
    "starts_unknown": "note: calls are left out, as --least needs to know when they began: they "
    "were in progress when the run began, or were refused before they were traced",
    "numbers_unknown": "note: returns are not shown, as a tracer replaced the number of the call",
    "outside_namespace": "note: calls are of tasks without an ID in this PID namespace",
}
_CALL, _EXITED, _SIGNAL = 0, 1, 2
_ENDINGS = ("returned", "unfinished", "in flight")
_POINTS = 2  # the third of the counters of what is dropped that tracepoints have
_FORKS = ("clone", "clone3", "fork", "vfork")
_STRUCTS = {"clone3": 0, "openat2": 2}
"""The argument that points to a struct whose first field is flags."""
_NO_NUMBER = 0xFFFFFFFF
_CALL_WORDS = 9  # CALL_BITS / 64
_RING = 1 << 25
"""Bytes: some 200,000 calls without pieces."""
_STATES = 4096
"""Tasks on kernels without task storage: 26 MB."""


class Traces(EventSession[Event]):
    """Traces system calls from when its context is entered until `stop()`.

    Args:
        options: the tasks, and the calls.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`).

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError: a process, thread, CPU or cgroup that does not exist.
        UnknownCallError: `options.events` has a word that fits no call and no tracepoint.
        KernelError: the kernel refused something; the message says why, and names a fix.
        NotSupportedError: the kernel lacks its types (BTF), or programs at its tracepoints (tp_btf,
            Linux 5.5, commit f1b9509c2fb0).
    """

    explained = _LOSSES

    def __init__(self, options: TraceOptions, command_pid: int = 0) -> None:
        super().__init__(options, command_pid)
        self._options = options
        self._machine = syscalls.machine(os.uname().machine)
        self._cgroups = CgroupIds()
        self._descriptors = Descriptors(follows=options.traces_all_calls)
        self._lost = 0
        self._lost_by_slot: list[int] = []
        self._left = options.most_events
        self._before: list[Event] = []
        self._tracepoints: tuple[Tracepoint, ...] = ()
        self._has_calls = True
        self._stacks: StackNames | None = None

    def begin(self, owned: ExitStack) -> None:
        """Walk stacks, if the user wants them, and begin with tracepoints."""
        options = self._options
        if options.paths:
            for pid in first_pids(options.pids, tree=options.tree):
                self._descriptors.look_at(pid)
        if options.call_graph:
            from purebpf.tools.trace.stacks import StackNames  # most traces have no stacks

            pids = first_pids(options.pids, tree=options.tree)
            self._stacks = owned.enter_context(
                StackNames(
                    *(self.stream.object, options.call_graph, pids, self._command_pid),
                    calls=self._has_calls,
                    points=bool(self._tracepoints),
                )
            )
        if self._tracepoints:
            start_tracepoints(self.stream.object)

    def sources(self) -> Collection[int]:
        """The rings of stacks."""
        return self._stacks.fds if self._stacks else ()

    def request(self) -> StreamRequest:
        """Return the programs of bpf_src/trace.bpf.c, and the programs of the wanted calls."""
        options, machine = self._options, self._machine
        names, points = split(options.events)
        self._tracepoints = read(points)
        has_calls = self._has_calls = bool(names) or not points
        tables = [syscalls.table(abi) for abi in (machine.native, machine.compat, machine.x32)]
        call_names = {name for table in tables for name in table.values()}
        wanted = with_socket_calls(select(names, call_names)) if has_calls else set()
        calls = [
            bit_words((nr for nr, name in table.items() if name in wanted), _CALL_WORDS)
            for table in tables
        ]
        execs = [syscalls.number(machine.native, name) or 0 for name in ("execve", "execveat")]
        whole = options.events == ()
        return StreamRequest(
            "trace",
            ("call", "exited", "signal", "point"),
            (
                *(("enter_call", "leave_call", "stop_at_tracer") if has_calls else ()),
                "end_task",
                *(("deliver_signal",) if whole else ()),
            ),
            others=(
                *("send_call", "list_calls"),
                *(("send_point",) if points else ()),
                *(("send_stacked_point",) if points and options.call_graph else ()),
            ),
            settings={
                "command_tgid": self._command_pid,
                "exec_numbers": execs,
                "fork_numbers": [
                    [syscalls.number(abi, name) or _NO_NUMBER for name in _FORKS]
                    for abi in (machine.native, machine.compat)
                ],
                "compat_flag": machine.compat_flag,
                "only_failed": options.failed,
                "least_ns": int(options.least_ms * 1e6),
                "has_calls": not whole,
                "calls": calls,
            },
            sizes={"events": _RING},
            prepare=lambda tracer: self._load(tracer, wanted),
        )

    def _load(self, tracer: Object, calls: set[str]) -> AbstractContextManager[Any]:
        with ExitStack() as stack:
            if calls:
                size = self._options.string_size
                stack.enter_context(loading.load_programs(tracer, calls, size))
            stack.enter_context(attach_tracepoints(tracer, self._tracepoints))
            return stack.pop_all()

    def pause_s(self) -> float:
        """Stacks look for interpreters of Python that have started."""
        return self._stacks.pause_s() if self._stacks else super().pause_s()

    def wait(self, *ends: HasFileno) -> bool:
        """Sleep until the run is over: True. False: there are events to `drain()`."""
        return self._left == 0 or super().wait(*ends)

    def drain(self) -> Iterator[Event]:
        """The events that came since the last call, and where calls are missing among them."""
        if self._stacks:
            self._stacks.drain()
        for event in super().drain():
            for spelled in (*self._before, event):
                if self._left == 0:
                    return
                if self._left is not None and isinstance(spelled, Call | Passed):
                    self._left -= 1
                yield spelled
            self._before.clear()

    def end(self) -> Ending[Event]:
        """End it, with the losses of stacks."""
        if self._stacks is None:
            return super().end()
        self._stacks.stop()
        ending = super().end()
        causes = (*ending.loss.causes, *self._stacks.causes())
        return ending._replace(loss=ending.loss._replace(causes=causes))

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
            if self._is_in_scope(record.fields):
                yield self.make_event(Record(record.kind, record.fields, data[at : at + size]))
            at += size

    def _is_in_scope(self, call: Any) -> bool:
        """Return True if a task is in the chosen cgroup; the programs checked entered calls."""
        return bool(call.entered) or is_in_scope(call.event.tid, self._options)

    def make_event(self, record: Record) -> Event:
        """Return the event of a record."""
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
        if record.kind != _SIGNAL:
            self._before += self._lost_until(fields.lost)
            passed = self._passed(time_ns, task, self._tracepoints[fields.number], record.tail)
            stack = self._stacks.name_point(fields) if self._stacks else None
            return passed._replace(stack=stack)
        info = show_siginfo(fields.number, fields.code, fields.error, tuple(fields.fields))
        return Signalled(time_ns, task, signal_name(fields.number), info)

    def _task(self, event: Any) -> Task:
        cgroup = self._cgroups.label(event.cgroup)
        return Task(event.tgid, event.tid, event.uid, event.comm, cgroup)

    @staticmethod
    def _passed(time_ns: int, task: Task, tracepoint: Tracepoint, record: bytes) -> Passed:
        values = {field.name: field.value(record) for field in tracepoint.fields}
        spelled = {field.name: field.show(values[field.name]) for field in tracepoint.fields}
        return Passed(time_ns, task, tracepoint.name, spelled, values)

    def _call(self, fields: Any, tail: bytes) -> Call:
        abi, number = self._abi(fields)
        name = called(abi, number)
        ending = _ENDINGS[fields.ending]
        result = fields.result if ending == "returned" else None
        words = tuple(fields.arguments)
        is_compat = bool(self._machine.compat) and abi == self._machine.compat
        call_names = compat_signature(name, abi) if is_compat else signature(name)
        copied = dict(pieces(tail))
        if call_names and abi == "i386":
            copied = widen(name, call_names, words, copied)
        view = View(
            call_names.name if call_names else name,
            words,
            result,
            copied,
            self._options.string_size,
        )
        if is_compat:
            view = view._replace(word=4)
        task = fields.event.tgid, fields.event.tid
        if self._options.paths:
            view = view._replace(path_of=partial(self._descriptors.path, task))
        arguments = tuple(show_arguments(view, call_names))  # before it takes effect on descriptors
        if self._options.paths and result is not None:
            flags = _flags_in_memory(name, view)
            self._descriptors.learn(task, name, words, result, view.path, flags)
        return Call(
            time_ns=self.wall_ns(fields.event.time_ns),
            task=self._task(fields.event),
            name=name,
            abi=abi,
            names=call_names.names if call_names else (),
            arguments=arguments,
            words=words,
            result=result,
            result_text=show_result(view),
            errno=-result if view.failed and result is not None else 0,
            duration_ns=fields.duration_ns if fields.entered else None,
            ending=ending,
            stack=self._stacks.name(fields) if self._stacks else None,
        )

    def _abi(self, fields: Any) -> tuple[str, int]:
        number = fields.nr
        if fields.abi:
            return self._machine.compat, number
        if number & syscalls.X32_BIT and self._machine.x32:
            return self._machine.x32, number & ~syscalls.X32_BIT
        return self._machine.native, number

    def _lost_until(self, lost: int) -> list[Event]:
        """Return the dropped calls since the last look, by name."""
        missing, self._lost = lost - self._lost, lost
        if not missing:
            return []
        self._descriptors.forget_all()
        now = list(self.stream.object.globals["lost"])
        said = self._lost_by_slot or [0] * len(now)
        self._lost_by_slot = said
        by_name: dict[str, int] = {}
        left = missing  # the counters are of now: some of these calls come later in the ring
        for slot in sorted(range(len(now)), key=lambda slot: said[slot] - now[slot]):
            count = min(left, now[slot] - said[slot])
            if count <= 0:
                break
            by_name[self._name_of_slot(slot)] = count
            said[slot] += count
            left -= count
        return [Lost(missing, by_name)]

    def _name_of_slot(self, slot: int) -> str:
        third, number = divmod(slot, loading.SLOTS)
        if third == _POINTS:
            is_last = number == loading.SLOTS - 1
            return "other tracepoints" if is_last else self._tracepoints[number].name
        return called(self._machine.compat if third else self._machine.native, number)


def _flags_in_memory(name: str, view: View) -> int | None:
    """Return the flags of clone3(2) and openat2(2), the first field of their structs."""
    struct = view.piece(_STRUCTS[name]) if name in _STRUCTS else None
    return int.from_bytes(struct[:8], "little") if struct and len(struct) >= 8 else None
