"""A request for events of TCP connections, by a command line or by a program."""

from __future__ import annotations

from purebpf.measure.options import RunOptions, TargetOptions

__all__ = ["DEFAULT_EVENTS", "EVENTS", "TcpOptions"]

EVENTS = ("connect", "accept", "close", "fail", "retransmit", "synack", "state", "dns")
"""enum tcp_event_kind of bpf_src/tcp/records.h."""

DEFAULT_EVENTS = EVENTS[: EVENTS.index("state")]


class TcpOptions(TargetOptions, RunOptions):
    """The target, and which of its events. Empty tuples and None mean: no restriction.

    `events` are of EVENTS; with `dns`, answers of name servers are read, and remote addresses
    named by them. `port` is of either side. `duration_s` None: until a signal, or until `command`
    or all of `pids` end. `tree`: children of `pids` also count. `connections`: how many have room
    at a time.
    """

    events: tuple[str, ...] = DEFAULT_EVENTS
    dns: bool = False
    port: int | None = None
    connections: int = 65536
