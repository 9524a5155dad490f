"""The events of a TCP connection. Pure."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["DIRECTIONS", "STATES", "Event"]

STATES = (
    *("", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT"),
    *("CLOSE", "CLOSE_WAIT", "LAST_ACK", "LISTEN", "CLOSING", "NEW_SYN_RECV", "BOUND_INACTIVE"),
)
"""States of a socket by number, from include/net/tcp_states.h."""

DIRECTIONS = ("", "out", "in")
"""enum tcp_direction of bpf_src/tcp/records.h: "" is that of a connection older than the run."""


class Event(NamedTuple):
    """An event of a connection, or (kind `dns`) the answer of a name server, or its lateness.

    Attributes:
        time_ns: since 1970.
        kind: one of `purebpf.tools.tcp.request.EVENTS`.
        pid, tid, uid, comm: the owner, which connected, accepted or asked for a name; 0 and "": it
            is not known.
        cgroup: the number of the owner's cgroup v2; 0: it is not known.
        socket: the kernel's address of it in hexadecimal, the same in all events of a connection.
        took_ns: of connect and fail, since the SYN; of accept, in the backlog; of close, since the
            connection began; of state, in the old state; of dns, since the question. None: it began
            before the run, or the question is not known.
        received, sent: payload, without retransmissions.
        retransmits: segments that were sent again so far.
        error: an errno's name, such as ECONNREFUSED; "": none.
        netns: the number of the network namespace; of kind dns, where the answer came.
        remote_name: the name that a name server gave for that address, in the same network
            namespace.
        names, addresses: of kind dns, the questioned name first; empty while there is no answer.
    """

    time_ns: int
    kind: str
    pid: int = 0
    tid: int = 0
    uid: int = 0
    comm: str = ""
    cgroup: int = 0
    netns: int = 0
    socket: str = ""
    direction: str = ""
    local_address: str = ""
    local_port: int = 0
    remote_address: str = ""
    remote_port: int = 0
    remote_name: str = ""
    took_ns: int | None = None
    received: int = 0
    sent: int = 0
    retransmits: int = 0
    srtt_us: int = 0
    error: str = ""
    old_state: str = ""
    new_state: str = ""
    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
