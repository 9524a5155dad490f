"""The command line of `purebpf report`."""

from __future__ import annotations

import pytest

from purebpf.tools.report.options import parse


@pytest.mark.parametrize(
    ("argv", "path"),
    [
        ([], "perf.data"),
        (["app.data"], "app.data"),
        (["-i", "app.data"], "app.data"),
        (["-"], "-"),
        (["--all", "app.data", "-o", "out.json"], "app.data"),
    ],
)
def test_the_file_stands_alone_or_behind_its_option(argv: list[str], path: str) -> None:
    options, _ = parse(argv)
    assert options.path == path


def test_there_is_one_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["-i", "one.data", "two.data"])
    assert "FILE and --input exclude each other" in capsys.readouterr().err
