"""Connections counted by peer and port: a table at the end, or its rows as JSON. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

from purebpf.cli.event_lines import fit, json_lines, json_loss
from purebpf.cli.units import size_text
from purebpf.results import Cause, Loss
from purebpf.results.model.spelling import count_text, printable
from purebpf.results.model.units import in_unit
from purebpf.tools.tcp.event import Event
from purebpf.tools.tcp.render import spell_end
from purebpf.tuples import NamedTuple

_Key = TypeVar("_Key")

__all__ = ["Peer", "PeerTable", "TcpRow"]

ROOM = 1 << 16
"""Peers that there is room for: some 40 MB."""

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


class PeerTable:
    """A `Printer` of a table by peer and port: most failures first, then most connections.

    Args:
        top: rows to print; None: all.
        format: "text" or "json".
    """

    def __init__(self, *, top: int | None = None, format: str = "text") -> None:  # noqa: A002 - as the option is called
        self._top = top
        self._format = format
        self._width: int | None = None
        self._rows: dict[Peer, TcpRow] = {}
        self._older: dict[_Older, TcpRow] = {}
        self._dropped = 0

    def begin(self, width: int | None) -> Iterable[str]:
        """Nothing yet."""
        self._width = width
        return ()

    def show(self, events: Iterable[Event]) -> Iterable[str]:
        """Nothing: events are counted."""
        for event in events:
            if event.kind in ("dns", "state"):
                continue
            row = self._row(event)
            if row is None:
                self._dropped += 1
            else:
                row.add(event)
        return ()

    def _row(self, event: Event) -> TcpRow | None:
        has_room = len(self._rows) + len(self._older) < ROOM
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

    def end(self, loss: Loss) -> Iterator[str]:
        """The table."""
        self._place_older()
        ranked = sorted(
            self._rows.items(),
            key=lambda item: (-item[1].failed, -item[1].connections, item[0]),
        )
        rows = ranked[: self._top]
        if self._format == "json":
            yield from json_lines(_document(peer, row) for peer, row in rows)
            yield from json_loss(loss)
            return
        if not rows and not self._dropped:
            yield "no connection began, failed or ended\n"
            return
        yield " FAILED   CONNS CONNECT     MAX    OPEN   IN  OUT RESENT ERROR         PEER\n"
        for peer, row in rows:
            yield fit(_line(peer, row), self._width) + "\n"
        if left := len(ranked) - len(rows):
            yield fit(f"... and {left} more", self._width) + "\n"

    def losses(self) -> tuple[Cause, ...]:
        """Events that the table has no room for."""
        warning = count_text(
            self._dropped, f"events were dropped: the table was full, at {ROOM} rows"
        )
        return (Cause("rows_full", self._dropped, warning),)


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
        f"{row.retransmits:6} {_error(row):13} {printable(_spell(peer))}"
    )


def _spell(peer: Peer) -> str:
    """`> REMOTE:PORT` of connections from here, `PORT < REMOTE` of those that came."""
    if peer.direction == "out":
        return f"> {spell_end(peer.address, peer.port)}"
    return f"{peer.port} {'<' if peer.direction else '-'} {peer.address}"


def _error(row: TcpRow) -> str:
    ranked = row.errors.most_common()
    if not ranked:
        return "-"
    return ranked[0][0] + (f" +{len(ranked) - 1}" if len(ranked) > 1 else "")


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
