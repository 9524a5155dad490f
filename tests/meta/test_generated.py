"""The generated kernel tables agree with the kernel the tests run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.btf.types.parse import Btf
from scripts import generate_formats, generate_trace_tables
from scripts.generate_abi import disagreements


@pytest.mark.needs("vmlinux_btf")
def test_abi_tables_do_not_contradict_this_kernel():
    assert disagreements(Btf(Path("/sys/kernel/btf/vmlinux").read_bytes())) == []


def test_struct_formats_are_those_of_the_declarations() -> None:
    assert generate_formats.TARGET.read_text() == generate_formats.generate()


@pytest.mark.needs("tracefs", "x86_64")
def test_trace_tables_do_not_contradict_this_machine() -> None:
    assert list(generate_trace_tables.disagreements()) == []
