"""The command line of sampleip."""

from __future__ import annotations

import pytest

from purebpf.tools.sampleip.options import parse
from purebpf.tools.sampleip.request import SampleIpOptions, Symbol, title


def test_what_to_look_for() -> None:
    found = parse(
        ["--range", "0x10-0x20", "--symbol", "f", "--symbol", "g+0x1c", "--module", "ext4", "5"]
    )
    assert found.ranges == ((0x10, 0x20),)
    assert found.symbols == (Symbol("f"), Symbol("g", 0x1C))
    assert found.modules == ("ext4",)
    assert found.duration_s == 5
    assert title(found) == ("Showing sampled addresses in 0x10-0x20, f, g+0x1c, ext4, at 999 Hertz")


def test_leading_zeros_are_decimal() -> None:
    options = parse(["--range", "010-0x10", "--symbol", "f+010"])
    assert options.ranges == ((10, 16),)
    assert options.symbols == (Symbol("f", 10),)


def test_names_may_hold_a_plus() -> None:
    assert parse(["--symbol", "operator+"]).symbols == (Symbol("operator+"),)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--range", "0x20-0x10"], "start must be below the end"),
        (["--range", "0x20"], "not a range such as"),
        (["--range", "0-0x10000000000000001"], "does not fit in 64 bits"),
        (["--hex", "--count"], "--hex shows samples"),
        (["-F", "99", "-c", "5"], "not allowed with"),
        (["-p", "1", "--", "ls"], "exclude a command"),
    ],
)
def test_a_wrong_command_line_is_refused(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(argv)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_the_title_says_what_is_sampled() -> None:
    assert title(SampleIpOptions(counting=True, period=1000)) == (
        "Counting sampled addresses in everything, every 1000"
    )
