"""A file name that promises a picture is refused: a text under that name has no use."""

from __future__ import annotations

import argparse

import pytest

from purebpf.cli.destination import Destination, destinations


@pytest.mark.parametrize("name", ["x.svg", "x.PNG", "dir/x.svg.gz", "x.pdf"])
def test_a_picture_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        destinations(argparse.ArgumentParser(), (), (name,))
    assert end.value.code == 2
    assert "use -o FILE.html" in capsys.readouterr().err


def test_the_format_may_be_asked_for() -> None:
    parser = argparse.ArgumentParser()
    assert destinations(parser, ("text",), ("x.svg",)) == (Destination("text", "x.svg"),)
    assert destinations(parser, (), ("x.log",)) == (Destination("text", "x.log"),)
