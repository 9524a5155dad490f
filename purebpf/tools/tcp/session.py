"""The live part: traces sockets, and makes events of the kernel's records."""

from __future__ import annotations

import errno
import ipaddress
import os
import struct
from collections.abc import Iterator
from itertools import islice
from typing import Self

from purebpf.abi import syscalls
from purebpf.abi.bpf import BPF_NOEXIST
from purebpf.errors import KernelError, NotSupportedError, errno_name
from purebpf.loader.attach import iterator
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.measure import targets
from purebpf.measure.event_session import EventSession
from purebpf.measure.target_ends import descendants
from purebpf.observe.instruments.event_stream import Record, StreamRequest
from purebpf.observe.instruments.process_tree import processes_called
from purebpf.syscall import host_clock, proc, tracefs
from purebpf.tools.tcp.dns import Names, parse
from purebpf.tools.tcp.event import DIRECTIONS, STATES, Event
from purebpf.tools.tcp.questions import LOOK_S, OpenQuestions
from purebpf.tools.tcp.request import EVENTS, TcpOptions

__all__ = ["Tcp"]

_PROGRAMS = ("on_state", "on_retransmit", "on_synack")
_ACCEPTS = ("on_accept4", "on_accept")
_ANY_EXIT = "on_any_exit"
_ON_PACKETS, _LIST_SOCKETS = ("on_packet", "on_sent_packet"), "list_sockets"
_DNS = EVENTS.index("dns")
_AF_INET = 2
_OPEN_SOCKET = struct.Struct("=QII16s")  # struct open_socket
_OWNER = struct.Struct("=QIII16sB3x")  # struct owner

_LOSSES = {
    "connections_full": "connections began without a place. Raise --connections",
    "owners_full": "accepted connections have no owner: no place was left. Raise --connections",
    "outside_namespace": "times a target task had no ID in this PID namespace",
}


class Tcp(EventSession[Event]):
    """Traces connections from when its context is entered until `stop()`.

    Args:
        options: the target, and which events.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`).

    Raises, when it is entered: as `EventSession`. Connections that are open already have an owner
    only on kernels with bpf_sock_from_file() (Linux 5.11, commit 4f19cab76136).
    """

    explained = _LOSSES

    def __init__(self, options: TcpOptions, command_pid: int = 0) -> None:
        super().__init__(options, command_pid)
        self._options = options
        self._names = Names()
        self._questions: OpenQuestions | None = None
        self._can_list = False
        self._accepts: tuple[str, ...] = _ACCEPTS

    def request(self) -> StreamRequest:
        """All programs but those that look at packets, which costs some time for each."""
        options = self._options
        self._can_list = bool(kernel_btf().find("bpf_sock_from_file"))
        self._accepts = _ACCEPTS if _has_tracepoints() else (_ANY_EXIT,)
        return StreamRequest(
            "tcp",
            ("tcp_event",) * _DNS + ("dns_answer",),
            (
                *_PROGRAMS,
                *self._accepts,
                *(_ON_PACKETS if options.dns else ()),
                *([_LIST_SOCKETS] if self._can_list else []),
            ),
            {
                "wanted_kinds": sum(1 << EVENTS.index(event) for event in options.events),
                "wanted_port": options.port or 0,
                "accept_numbers": _accept_numbers(),
            },
            {"connections": options.connections, "owners": options.connections},
        )

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            if self._can_list and not self._command_pid:
                self._own_open_sockets()
            if self._options.dns:
                self._questions = OpenQuestions(
                    self.stream.object.maps["questions"],
                    has_targets=_has_targets(self._options) or bool(self._command_pid),
                )
        except BaseException:
            self.close()
            raise
        return self

    def _own_open_sockets(self) -> None:
        """Say which process has a socket that was open before the programs saw it."""
        with iterator.attach(self.stream.object.programs[_LIST_SOCKETS]) as link:
            data = link.read()
        wanted = _Wanted(self._options)
        open_owners = {
            socket: _OWNER.pack(0, tgid, tid, 0, comm, wanted(tgid))
            for socket, tgid, tid, comm in _OPEN_SOCKET.iter_unpack(data)
        }
        owners = self.stream.object.maps["owners"]
        for socket, owner in islice(open_owners.items(), owners.max_entries):
            try:
                owners.put(socket, owner, BPF_NOEXIST)
            except KernelError as error:
                if error.errno == errno.E2BIG:
                    break  # the programs count what finds no place from now on
                if error.errno != errno.EEXIST:  # else it was accepted a moment ago
                    raise

    def pause_s(self) -> float:
        """Until the next look at questions that have no answer."""
        return LOOK_S if self._options.dns else super().pause_s()

    def drain(self) -> Iterator[Event]:
        """The events that came since the last call, and the questions that are late now."""
        yield from super().drain()
        if self._questions is not None:
            now_ns = host_clock.monotonic_ns()
            yield from self._questions.late(now_ns, self.wall_ns(0))

    def make_event(self, record: Record) -> Event | None:
        """An event of the kernel's record; addresses are named by the answers before it."""
        fields = record.fields
        head = fields.head
        time_ns = self.wall_ns(head.time_ns)
        if record.kind == _DNS:
            answer = parse(bytes(fields.message[: fields.size]))
            if answer is None:
                return None
            self._names.add(answer, fields.netns)
            if fields.unwanted:
                return None
            return Event(
                *(time_ns, "dns", head.tgid, head.tid, head.uid, head.comm, head.cgroup),
                netns=fields.netns,
                took_ns=fields.took_ns or None,
                names=answer.names,
                addresses=answer.addresses,
            )
        remote = _address(fields.family, fields.remote)
        return Event(
            time_ns,
            EVENTS[record.kind],
            head.tgid,
            head.tid,
            head.uid,
            head.comm,
            head.cgroup,
            fields.netns,
            f"{fields.socket:x}",
            DIRECTIONS[fields.direction],
            _address(fields.family, fields.local),
            fields.local_port,
            remote,
            fields.remote_port,
            self._names.get(remote, fields.netns),
            fields.took_ns or None,
            fields.received,
            fields.sent,
            fields.retransmits,
            fields.srtt_us,
            errno_name(fields.error) if fields.error else "",
            _state(fields.old_state),
            _state(fields.new_state),
        )


class _Wanted:
    """A test for processes that ran before the trace: are they targets?"""

    def __init__(self, options: TcpOptions) -> None:
        self._all = not _has_targets(options)
        self._options = options
        self._pids = set(options.pids)
        if options.comm is not None:
            self._pids |= {*processes_called(options.comm)}
        if options.tree:
            self._pids |= descendants(self._pids)
        for tid in options.tids:
            status = proc.status(tid)
            self._pids.add(int(status["Tgid"]) if status else 0)

    def __call__(self, pid: int) -> bool:
        """Return True if the process is a target."""
        if not self._all and pid not in self._pids:
            return False
        return targets.is_in_scope(pid, self._options)


def _has_targets(options: TcpOptions) -> bool:
    """Return True if only some processes are followed."""
    return bool(options.pids or options.tids or options.comm is not None)


def _address(family: int, data: object) -> str:
    raw = bytes(data)  # type: ignore[call-overload]
    if family == _AF_INET:
        return str(ipaddress.IPv4Address(raw[:4]))
    address = ipaddress.IPv6Address(raw)
    return str(address.ipv4_mapped or address)


def _state(number: int) -> str:
    return STATES[number] if number < len(STATES) else str(number)


def _has_tracepoints() -> bool:
    """Return True if the returns of accept(2) can be traced apart from the returns of other
    calls.
    """
    try:
        for name in ("sys_exit_accept4", "sys_exit_accept"):
            tracefs.tracepoint_format("syscalls", name)
    except (KernelError, NotSupportedError):  # no tracefs, or it is not ours to read
        return False
    return True


def _accept_numbers() -> list[int]:
    abi = syscalls.machine(os.uname().machine).native
    return [syscalls.number(abi, name) or 0 for name in ("accept", "accept4")]
