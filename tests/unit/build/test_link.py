"""Objects linked by bpftool from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import purebpf
from purebpf import build
from tests.support.environment import ROOT

pytestmark = [pytest.mark.needs("clang", "bpftool"), pytest.mark.any_kernel]

DATA = ROOT / "tests/data"


def halves() -> list[bytes]:
    return [build.compile(DATA / f"elf_link_{half}.bpf.c", cache=False) for half in "ab"]


def test_two_objects_become_the_one_that_bpftool_made() -> None:
    linked = purebpf.read_object(build.link(*halves()))
    reference = purebpf.read_object(DATA / "elf_linked.bpf.o")
    assert [*linked.programs] == [*reference.programs]
    assert [*linked.maps] == [*reference.maps]
    assert {name: function.code for name, function in linked.functions.items()} == {
        name: function.code for name, function in reference.functions.items()
    }


def test_a_name_that_both_define_is_refused_with_the_words_of_bpftool(tmp_path: Path) -> None:
    path = tmp_path / "a.bpf.o"
    path.write_bytes(halves()[0])
    with pytest.raises(purebpf.LinkError, match=r"bpftool gen object: linking: .*1\.bpf\.o"):
        build.link(path, path)


def test_without_bpftool_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(purebpf.NotSupportedError, match="apt-get install bpftool"):
        build.link(b"")


def test_names_that_are_not_text_are_refused_with_the_words_of_bpftool() -> None:
    strange = halves()[0].replace(b"\0shared\0", b"\0share\xff\0")
    with pytest.raises(purebpf.LinkError, match=r"bpftool gen object: linking: .*\ufffd"):
        build.link(strange, strange)
