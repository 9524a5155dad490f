"""Connections counted by peer and port: a table at the end, or its rows as JSON. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

from purebpf.cli.event_lines import fit
from purebpf.cli.event_table import EventTable, spell_reasons
from purebpf.cli.units import size_text
from purebpf.results.model.spelling import printable
from purebpf.results.model.units import in_unit
from purebpf.tools.tcp.event import Event
from purebpf.tools.tcp.render import spell_end
from purebpf.tuples import NamedTuple

_Key = TypeVar("_Key")

__all__ = ["Peer", "PeerTable", "TcpRow"]

_FIRST_CLIENT_PORT = 32768
"""Of net.ipv4.ip_local_port_range, as the kernel has it when nobody changes it."""


class Peer(NamedTuple):
    """The other end of connections, and the port of the service on either side.

    Attributes:
        direction: "out", "in", or "" where the connection is older than the run and its ports do
            not tell.
        address: of the other end, or its name.
        port: its port for "out", else the port of this machine.
    """

    direction: str
    address: str
    port: int


class TcpRow:
    """The events with one peer. Times are nanoseconds, sizes bytes."""

    __slots__ = (
        *("connections", "errors", "made", "made_ns", "open_ns", "received", "retransmits"),
        *("sent", "slowest_ns"),
    )

    def __init__(self) -> None:
        self.connections = 0
        self.made = 0
        self.made_ns = 0
        self.slowest_ns = 0
        self.open_ns = 0
        self.received = 0
        self.sent = 0
        self.retransmits = 0
        self.errors: Counter[str] = Counter()

    @property
    def failed(self) -> int:
        """The number of connections that failed."""
        return self.errors.total()

    @property
    def made_avg_ns(self) -> float:
        """The mean time until connect(2) succeeded, or that an accepted connection waited in the
        backlog.
        """
        return self.made_ns / self.made if self.made else 0.0

    def add_row(self, other: TcpRow) -> None:
        """Count what another row has counted."""
        for name in (
            "connections",
            "made",
            "made_ns",
            "open_ns",
            "received",
            "retransmits",
            "sent",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.slowest_ns = max(self.slowest_ns, other.slowest_ns)
        self.errors += other.errors

    def add(self, event: Event) -> None:
        """Count an event."""
        if event.kind in ("connect", "accept"):
            self.connections += 1
            self.made += 1
            self.made_ns += event.took_ns or 0
            self.slowest_ns = max(self.slowest_ns, event.took_ns or 0)
        elif event.kind == "fail":
            self.connections += 1
            self.errors[event.error or "?"] += 1
        elif event.kind == "close":
            self.connections += not event.direction or event.took_ns is None
            self.open_ns += event.took_ns or 0
            self.received += event.received
            self.sent += event.sent
        elif event.kind in ("retransmit", "synack"):
            self.retransmits += 1


class _Older(NamedTuple):
    """A connection that is older than the run: which end is the service is not known yet."""

    address: str
    local_port: int
    remote_port: int


class PeerTable(EventTable[Event, Peer, TcpRow]):
    """A table by peer and port: most failures first, then most connections."""

    header = " FAILED   CONNS CONNECT     MAX    OPEN   IN  OUT RESENT ERROR         PEER"

    def __init__(self, *, top: int | None = None, format: str = "text") -> None:  # noqa: A002 - as the option is called
        super().__init__(top=top, format=format)
        self._older: dict[_Older, TcpRow] = {}

    def _add(self, event: Event) -> bool:
        if event.kind in ("dns", "state"):
            return True
        row = self._row(event)
        if row is not None:
            row.add(event)
        return row is not None

    def _row(self, event: Event) -> TcpRow | None:
        has_room = len(self._rows) + len(self._older) < self.room
        address = event.remote_name or event.remote_address
        if not event.direction:
            older = _Older(address, event.local_port, event.remote_port)
            return _row_of(self._older, older, has_room=has_room)
        port = event.remote_port if event.direction == "out" else event.local_port
        peer = Peer(event.direction, address, port)
        return _row_of(self._rows, peer, has_room=has_room)

    def _place_older(self) -> None:
        """Count each older connection for its peer."""
        services = {peer.port for peer in self._rows if peer.direction == "in"}
        peers = {(peer.address, peer.port) for peer in self._rows if peer.direction == "out"}
        uses = Counter(older.local_port for older in self._older)
        uses_of_peer = Counter((older.address, older.remote_port) for older in self._older)
        for older, row in self._older.items():
            address, local, remote = older
            there = (address, remote)
            for here_is_service, there_is_service in (
                (local in services, there in peers),
                (local < _FIRST_CLIENT_PORT, remote < _FIRST_CLIENT_PORT),
                (uses[local] > uses_of_peer[there], uses_of_peer[there] > uses[local]),
            ):
                if here_is_service != there_is_service:
                    direction = "in" if here_is_service else "out"
                    break
            else:
                direction = ""
            peer = Peer(direction, address, remote if direction == "out" else local)
            self._rows.setdefault(peer, TcpRow()).add_row(row)
        self._older.clear()

    def _rank(self) -> list[tuple[Peer, TcpRow]]:
        self._place_older()
        return sorted(
            self._rows.items(),
            key=lambda item: (-item[1].failed, -item[1].connections, item[0]),
        )

    def _empty(self) -> str:
        return "no connection began, failed or ended (trace shows the data of open ones)"

    def _line(self, key: Peer, row: TcpRow) -> str:
        return fit(_line(key, row), self._width)

    def _document(self, key: Peer, row: TcpRow) -> dict[str, object]:
        return _document(key, row)


def _row_of(rows: dict[_Key, TcpRow], key: _Key, *, has_room: bool) -> TcpRow | None:
    if key not in rows:
        if not has_room:
            return None
        rows[key] = TcpRow()
    return rows[key]


def _line(peer: Peer, row: TcpRow) -> str:
    connect = in_unit(row.made_avg_ns) if row.made else "-"
    slowest = in_unit(row.slowest_ns) if row.made else "-"
    return (
        f"{row.failed:7} {row.connections:7} {connect:>7} {slowest:>7} "
        f"{in_unit(row.open_ns):>7} {size_text(row.received):>4} {size_text(row.sent):>4} "
        f"{row.retransmits:6} {spell_reasons(row.errors):13} {printable(_spell(peer))}"
    )


def _spell(peer: Peer) -> str:
    """`> REMOTE:PORT` of connections from here, `PORT < REMOTE` of those that came."""
    if peer.direction == "out":
        return f"> {spell_end(peer.address, peer.port)}"
    return f"{peer.port} {'<' if peer.direction else '-'} {peer.address}"


def _document(peer: Peer, row: TcpRow) -> dict[str, object]:
    return {
        "event": "peer",
        **peer._asdict(),
        "connections": row.connections,
        "failed": row.failed,
        "errors": dict(row.errors.most_common()),
        "connect_avg_ns": row.made_avg_ns if row.made else None,
        "connect_max_ns": row.slowest_ns if row.made else None,
        "open_ns": row.open_ns,
        "received": row.received,
        "sent": row.sent,
        "retransmits": row.retransmits,
    }
