"""Formats and files find one another."""

from __future__ import annotations

import argparse
import gzip

import pytest

from purebpf.cli.destination import Destination, add_destinations, destinations, encode


def parsed(*arguments: str) -> tuple[Destination, ...]:
    parser = argparse.ArgumentParser()
    add_destinations(parser.add_argument_group("output"))
    found = parser.parse_args(arguments)
    return destinations(parser, found.formats, found.outputs)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([], [("text", None)]),
        (["--format", "csv"], [("csv", None)]),
        (["-o", "a"], [("text", "a")]),
        (["-o", "a.pb.gz", "-o", "a.csv"], [("pprof", "a.pb.gz"), ("csv", "a.csv")]),
        (["--format", "json", "-o", "a.txt"], [("json", "a.txt")]),
        (["-o", "-"], [("text", None)]),
        (["-o", "-", "-o", "a.csv"], [("text", None), ("csv", "a.csv")]),
        (["--format", "pprof", "-o", "-"], [("pprof", None)]),
        (["--format", "perf.data", "-o", "-"], [("perf.data", None)]),
        (
            ["--format", "json", "-o", "a", "-o", "b", "--format", "csv"],
            [("json", "a"), ("csv", "b")],
        ),
    ],
)
def test_the_first_format_goes_to_the_first_file(
    arguments: list[str], wanted: list[tuple[str, str | None]]
) -> None:
    assert list(parsed(*arguments)) == wanted


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--format", "svg"], "'svg'; known: text, folded, json"),
        (["--format", "csv", "--format", "json"], "of several formats needs its own -o"),
        (["-o", "a", "-o", "a"], "the same file is named twice"),
        (["-o", "-", "-o", "-"], "the same file is named twice"),
        (["--format", "csv", "-o", "a", "-o", "b"], "1 --format and 2 -o"),
    ],
)
def test_what_does_not_fit_is_a_usage_error(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        parsed(*arguments)
    assert raised.value.code == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--format", "pprof"], ["--format", "perf.data", "-o", "-"]])
def test_a_terminal_gets_nothing_binary(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with pytest.raises(SystemExit) as raised:
        parsed(*arguments)
    assert raised.value.code == 2
    assert "to a terminal; use -o FILE" in capsys.readouterr().err


def test_a_name_asks_for_gzip() -> None:
    pieces = ["a", b"b"]
    packed = list(encode(Destination("json", "a.json.GZ"), pieces))
    assert gzip.decompress(b"".join(each for each in packed if isinstance(each, bytes))) == b"ab"
    assert all(isinstance(each, bytes) for each in packed)
    assert encode(Destination("json", "a.json"), pieces) is pieces
    assert encode(Destination("json", None), pieces) is pieces
    assert encode(Destination("pprof", "a.pb.gz"), pieces) is pieces, "it is compressed already"
