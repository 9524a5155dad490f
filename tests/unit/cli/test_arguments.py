"""Argument types say what is wrong with a value."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable

import pytest

from purebpf.cli.arguments import cpu_list, id_list, milliseconds, output, positive_int, seconds


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (positive_int, "1", 1),
        (positive_int, str(2**63 - 1), 2**63 - 1),
        (seconds, "5", 5.0),
        (seconds, "0.25", 0.25),
        (seconds, "500ms", 0.5),
        (seconds, "5s", 5.0),
        (seconds, "1.5m", 90.0),
        (seconds, "2h", 7200.0),
        (seconds, "250us", 0.00025),
        (milliseconds, "0", 0.0),
        (milliseconds, "2.5", 2.5),
        (milliseconds, "10ms", 10.0),
        (milliseconds, "500us", 0.5),
        (milliseconds, "250ns", 0.00025),
        (milliseconds, "1.5s", 1500.0),
        (id_list, "185", (185,)),
        (id_list, "185,2040,185", (185, 2040)),
        (output, "out.txt", "out.txt"),
        (output, "-", None),
        (cpu_list, "0", (0,)),
        (cpu_list, "8,0-3,2", (0, 1, 2, 3, 8)),
    ],
)
def test_an_argument_becomes_its_value(
    parse: Callable[[str], object], text: str, value: object
) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *(
            (positive_int, text)
            for text in ("0", "-1", "x", "", "1_0", " 1", "٣", "1.0", str(2**63))
        ),
        *((seconds, text) for text in ("0", "-1", "nan", "inf", "x", "", "1e30")),
        *((milliseconds, text) for text in ("-1", "x", "", "ms", "1m", "5mss", "nan", "1e30s")),
        *((id_list, text) for text in ("", "1,", "0", "-1", "4194305", "a")),
        *((cpu_list, text) for text in ("", "-1", "3-1", "0-", "99999999", "0,,1", "a-b")),
    ],
)
def test_refused_with_the_value_in_the_message(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="'"):
        parse(text)
