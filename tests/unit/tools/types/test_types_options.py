"""The command line of `purebpf types`."""

from __future__ import annotations

from purebpf.tools.types.options import parse
from purebpf.tools.types.request import TypesOptions


def test_a_target_is_chosen_as_in_other_commands() -> None:
    options, _ = parse(["--comm", "server", "-C", "0-1", "--tree", "5"])
    assert options == TypesOptions(comm="server", cpus=(0, 1), tree=True, duration_s=5)
