"""A new output format is one module and one line of `FORMATS`."""

from __future__ import annotations

import argparse
import sys
from types import ModuleType

import pytest

from purebpf.cli.destination import add_destinations, destinations
from purebpf.formats import FORMATS, Format
from purebpf.results import Profile
from purebpf.results.formats.writer import write
from purebpf.tools.completion.model import describe


@pytest.fixture
def tsv(monkeypatch: pytest.MonkeyPatch) -> None:
    """A format, added as CONTRIBUTING.md says."""
    module = ModuleType("purebpf.results.formats.tsv")
    module.document = lambda profile: f"{profile.title}\t{profile.total}\n"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(FORMATS, "tsv", Format("formats.tsv:document", (".tsv",), "two columns"))


@pytest.mark.usefixtures("tsv")
def test_one_line_is_enough_for_all_that_names_formats() -> None:
    parser = argparse.ArgumentParser()
    add_destinations(parser.add_argument_group("output"))
    assert "tsv" in parser.format_help()
    (option,) = (each for each in describe("any", "", parser).options if "--format" in each.flags)
    assert option.value is not None
    assert "tsv" in option.value.choices
    (chosen,) = destinations(parser, [], ["out.tsv"])
    assert chosen.format == "tsv"
    assert [*write(Profile("waits"), "tsv")] == ["waits\t0\n"]
