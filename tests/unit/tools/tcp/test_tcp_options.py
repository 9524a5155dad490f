"""Command lines of tcp: what they ask for, and how wrong ones are reported."""

from __future__ import annotations

import pytest

from purebpf.cli.event_command import EventView
from purebpf.tools.tcp.options import Shape, parse
from purebpf.tools.tcp.request import DEFAULT_EVENTS, TcpOptions
from tests.support.command_line import asking

ALL = """\
-p 12,13 --tree -C 0-1 -G /sys/fs/cgroup --events close,fail --dns --port 443
--connections 9 --format json -o out --strict 7"""


def test_nothing_is_every_connection() -> None:
    assert parse([]) == (TcpOptions(), EventView(), Shape())


def test_every_option_becomes_its_field() -> None:
    assert parse(ALL.split()) == asking(
        (TcpOptions(), EventView(), Shape()),
        pids=(12, 13),
        tree=True,
        cpus=(0, 1),
        cgroup="/sys/fs/cgroup",
        events=("close", "fail", "dns"),
        dns=True,
        port=443,
        connections=9,
        duration_s=7.0,
        format="json",
        output="out",
        strict=True,
    )


def test_dns_adds_its_events_to_the_others() -> None:
    assert parse(["--dns"])[0].events == (*DEFAULT_EVENTS, "dns")
    assert parse(["--events", "dns"])[0].dns


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--events", "open"], "unknown event 'open'; known: connect, accept, close, fail"),
        (["--port", "65536"], "'65536' is not a port (expected 1 to 65535)"),
        (["--port", "http"], "'http' is not a port"),
        (["-p", "1", "--", "true"], "exclude a command"),
    ],
)
def test_a_wrong_option_is_said(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        parse(arguments)
    assert raised.value.code == 2
    assert message in capsys.readouterr().err
