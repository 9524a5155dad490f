"""Events of connections as text or JSON. Pure."""

from __future__ import annotations

from purebpf.cli.event_lines import JsonLines, TextLines, clock, event_document, fit
from purebpf.cli.units import size_text
from purebpf.results.model.spelling import printable
from purebpf.results.model.units import in_unit
from purebpf.tools.tcp.event import Event

__all__ = ["Json", "TcpText", "spell_end"]

_HEADER = (
    f"{'TIME':12} {'EVENT':7} {'PID':>7} {'COMM':8} {'TOOK':>7} {'IN':>4} {'OUT':>4} CONNECTION"
)
_WORDS = {"retransmit": "resent"}
_ARROWS = {"out": ">", "in": "<", "": "-"}


class TcpText(TextLines[Event]):
    """A line for each event; `verbose`: with the local end of a connection, too."""

    def __init__(self, *, verbose: bool = False) -> None:
        self._is_verbose = verbose

    def header(self) -> str:
        """The names of the columns."""
        return _HEADER

    def line(self, event: Event, width: int | None) -> str:
        """An event; its end is cut."""
        return fit(self._line(event), width)

    def _line(self, event: Event) -> str:
        took = "-" if event.took_ns is None else in_unit(event.took_ns)
        is_over = event.kind == "close"
        received, sent = map(size_text, (event.received, event.sent)) if is_over else ("", "")
        owner = f"{event.pid:7}" if event.pid else f"{'-':>7}"
        return (
            f"{clock(event.time_ns)} {_WORDS.get(event.kind, event.kind):7} {owner} "
            f"{printable(event.comm)[:8]:8} {took:>7} {received:>4} "
            f"{sent:>4} {printable(self._what(event))}"
        )

    def _what(self, event: Event) -> str:
        if event.kind == "dns" and not event.names:
            return "no answer yet"
        if event.kind == "dns":
            return f"{event.names[0]} is {', '.join(event.addresses)}"
        ends = self._ends(event)
        if event.kind == "state":
            return f"{ends} {event.old_state} to {event.new_state}"
        if event.kind == "retransmit":
            return f"{ends} {event.retransmits} so far"
        if event.kind == "close" and event.retransmits:
            ends += f" {event.retransmits} resent"
        return f"{ends} {event.error}" if event.error else ends

    def _ends(self, event: Event) -> str:
        """`> REMOTE:PORT` of a connection of ours, `PORT < REMOTE:PORT` of one that came."""
        remote = spell_end(event.remote_name or event.remote_address, event.remote_port)
        if self._is_verbose:
            local = spell_end(event.local_address, event.local_port)
            return f"{local} {_ARROWS[event.direction]} {remote}"
        if event.direction == "out":
            return f"> {remote}"
        return f"{event.local_port} {_ARROWS[event.direction]} {remote}"


class Json(JsonLines[Event]):
    """An object for each event."""

    def document(self, event: Event) -> dict[str, object]:
        """Every field."""
        fields = event._asdict()
        return event_document(fields.pop("kind"), fields.pop("time_ns"), fields)


def spell_end(address: str, port: int) -> str:
    """An address or a name with a port."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
