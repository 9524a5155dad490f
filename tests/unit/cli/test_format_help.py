"""The help of `--format`, which is written out: help imports no formats."""

from __future__ import annotations

import argparse

from purebpf.cli.destination import add_destinations
from purebpf.results.formats.registry import FORMATS


def test_the_help_names_every_format() -> None:
    parser = argparse.ArgumentParser()
    add_destinations(parser.add_argument_group("output"))
    (action,) = (action for action in parser._actions if action.dest == "formats")
    assert (action.help or "").partition(";")[0].split(", ") == list(FORMATS)
