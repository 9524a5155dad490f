"""Events of connections as text and JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from purebpf.cli.event_lines import timestamp
from purebpf.results import Cause, Loss
from purebpf.tools.tcp.event import Event
from purebpf.tools.tcp.render import Json, TcpText

OUT = Event(
    1_700_000_000_123_456_789,
    "connect",
    pid=1234,
    tid=1235,
    comm="curl",
    direction="out",
    local_address="10.0.0.5",
    local_port=43212,
    remote_address="93.184.216.34",
    remote_port=443,
    took_ns=12_345_678,
)
IN = OUT._replace(
    kind="close", comm="nginx", pid=77, direction="in", local_port=80, remote_port=55312,
    took_ns=61_000_000_000, received=99_499, sent=1_234_567, retransmits=3, error="ECONNRESET",
)  # fmt: skip
EVENTS = (
    OUT,
    OUT._replace(kind="fail", remote_address="2001:db8::1", error="ETIMEDOUT"),
    OUT._replace(remote_name="example.com"),
    IN._replace(kind="accept", took_ns=40_700, error=""),
    IN,
    OUT._replace(kind="close", direction="", took_ns=None, pid=0, comm=""),
    OUT._replace(kind="retransmit", retransmits=2, took_ns=None),
    IN._replace(kind="state", old_state="LAST_ACK", new_state="CLOSE", error=""),
    Event(OUT.time_ns, "dns", names=("example.com",), addresses=("93.184.216.34", "::2")),
    Event(OUT.time_ns, "dns", pid=1234, comm="curl", took_ns=301_000_000),
)
GOLDEN = """\
TIME         EVENT       PID COMM        TOOK   IN  OUT CONNECTION
22:13:20.123 connect    1234 curl     12.3 ms           > 93.184.216.34:443
22:13:20.123 fail       1234 curl     12.3 ms           > [2001:db8::1]:443 ETIMEDOUT
22:13:20.123 connect    1234 curl     12.3 ms           > example.com:443
22:13:20.123 accept       77 nginx    40.7 us           80 < 93.184.216.34:55312
22:13:20.123 close        77 nginx     61.0 s  99k 1.2M 80 < 93.184.216.34:55312 3 resent ECONNRESET
22:13:20.123 close         -                -    0    0 43212 - 93.184.216.34:443
22:13:20.123 resent     1234 curl           -           > 93.184.216.34:443 2 so far
22:13:20.123 state        77 nginx     61.0 s           80 < 93.184.216.34:55312 LAST_ACK to CLOSE
22:13:20.123 dns           -                -           example.com is 93.184.216.34, ::2
22:13:20.123 dns        1234 curl      301 ms           no answer yet
"""


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def text(width: int | None = None, *events: Event) -> list[str]:
    printer = TcpText()
    return "".join((*printer.begin(width), *printer.show(events or EVENTS))).splitlines()


def test_lines_are_the_golden_ones() -> None:
    assert text() == GOLDEN.splitlines()


def test_a_terminal_of_80_columns_holds_every_line() -> None:
    assert max(map(len, text(80))) == 80
    assert text(80)[5].endswith("...")


def test_a_usual_event_fits_without_being_cut() -> None:
    assert all(len(line) <= 80 for line in text(None, OUT, IN._replace(error="", retransmits=0)))


def test_verbose_has_the_local_address_too() -> None:
    (line,) = TcpText(verbose=True).show([OUT])
    assert line.endswith(" 10.0.0.5:43212 > 93.184.216.34:443\n")


def test_names_of_others_do_not_move_the_cursor() -> None:
    evil = OUT._replace(comm="a\x1b[2Jb", remote_name="x\n\x1b]0;y\x07.com")
    (line,) = TcpText().show([evil])
    assert line[:-1].isprintable()
    assert "a?[2Jb" in line


def test_json_has_every_field_and_ends_with_the_loss() -> None:
    printer = Json()
    loss = Loss(causes=(Cause("events_full", 3, "3 events"),))
    lines = [*printer.begin(None), *printer.show(EVENTS), *printer.end(loss)]
    *events, last = map(json.loads, lines)
    for shown, event in zip(events, EVENTS, strict=True):
        assert (shown.pop("event"), shown.pop("time")) == (event.kind, timestamp(event.time_ns))
        made = Event(event.time_ns, event.kind, **shown)
        assert made == event._replace(names=list(event.names), addresses=list(event.addresses))
    assert last == {"event": "loss", "schema": "purebpf.events/1", "loss": {"events_full": 3}}
