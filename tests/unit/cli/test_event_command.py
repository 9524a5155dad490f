"""What commands that print events as they happen share."""

from __future__ import annotations

import pytest

from purebpf.cli.event_command import title
from purebpf.tools.io import IoOptions
from purebpf.tools.tcp import TcpOptions


@pytest.mark.parametrize("options", [IoOptions, TcpOptions])
def test_only_a_run_without_an_end_is_announced(options: type[IoOptions | TcpOptions]) -> None:
    doing = "Measuring"
    assert title(doing, options()).endswith("Hit Ctrl-C to end.")
    assert title(doing, options(duration_s=1)) == title(doing, options(command=("true",))) == ""
