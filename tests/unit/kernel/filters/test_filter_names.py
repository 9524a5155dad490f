"""Names in sample filters: what is said of those that stand for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.kernel.filters.filter_names import MachineNames
from purebpf.syscall import proc

HIDDEN = b"0000000000000000 T vfs_read\n0000000000000000 t in_a_module\t[fs]\n"


@pytest.fixture(autouse=True)
def kallsyms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kallsyms"
    path.write_bytes(HIDDEN)
    monkeypatch.setattr(proc, "KALLSYMS", str(path))


@pytest.mark.parametrize("name", ["vfs_read", "in_a_module"])
def test_a_function_with_a_hidden_address_is_there(name: str) -> None:
    with pytest.raises(LookupError, match=f"address of {name!r} is hidden.*CAP_SYSLOG"):
        MachineNames().symbol(name)


def test_a_misspelt_name_is_not() -> None:
    with pytest.raises(LookupError, match=r"unknown function 'vfs_raed'.*similar: vfs_read"):
        MachineNames().symbol("vfs_raed")


def test_the_kernels_functions_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    text = proc.kallsyms
    monkeypatch.setattr(proc, "kallsyms", lambda: reads.append(1) or text())
    with pytest.raises(LookupError):
        MachineNames().symbol("vfs_raed")
    assert reads == [1]
