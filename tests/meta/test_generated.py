"""The generated kernel tables agree with the kernel the tests run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.btf.types.parse import Btf
from scripts.generate_abi import disagreements


@pytest.mark.needs("vmlinux_btf")
def test_abi_tables_do_not_contradict_this_kernel():
    assert disagreements(Btf(Path("/sys/kernel/btf/vmlinux").read_bytes())) == []
