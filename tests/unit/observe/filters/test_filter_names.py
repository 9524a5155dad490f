"""Names in sample filters: what is said of those that stand for nothing."""

from __future__ import annotations

import struct
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from purebpf.loader.attach._common import probe_place
from purebpf.observe.filters.filter_names import MachineNames
from purebpf.symbols.budget import FILE, PROCESS, Allowance, Budget, OverBudgetError
from purebpf.symbols.usdt import usdt_probes
from purebpf.syscall import proc
from tests.support.builders.hollow_file import HollowFile, Part

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


def _mapping_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = f"10000000-10010000 r-xp 00000000 00:00 {path.stat().st_ino} {path}\n"
    monkeypatch.setattr(proc, "maps", lambda _: line)


@pytest.mark.parametrize("part", [".symtab", ".dynsym"])
def test_a_process_with_many_symbols_costs_what_its_account_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Files of the users' processes decide what a name costs that is looked up in them."""
    symbol = struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0x1000, 16)
    kind = {".symtab": 2, ".dynsym": 11}[part]
    hostile = tmp_path / "hostile"
    HollowFile(
        Part(".text", flags=6, address=0x1000, size=0x10000, kind=8),
        Part(part, data=symbol * 50_000, kind=kind, link=".strtab", entry_size=24),
        Part(".strtab", data=b"\0main\0", kind=3),
    ).write(str(hostile))
    _mapping_of(hostile, monkeypatch)
    ticks = count()
    budget = Budget({PROCESS: Allowance(1 << 30, 5.0)}, lambda: float(next(ticks)))
    with pytest.raises(LookupError, match=r"process 4711: process 4711 used its 5 s of naming"):
        MachineNames([4711], budget).symbol("main")
    assert next(ticks) < 12


def test_usdt_notes_cost_what_the_file_s_account_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = tmp_path / "hostile"
    HollowFile(Part(".note.stapsdt", data=bytes(12 * 50_000), kind=7)).write(str(hostile))
    ticks = count()
    small = partial(Budget, {FILE: Allowance(1 << 30, 5.0)}, lambda: float(next(ticks)))
    monkeypatch.setattr(probe_place, "Budget", small)
    with (
        pytest.raises(OverBudgetError, match="hostile used its 5 s of naming"),
        probe_place.open_image(str(hostile)) as (image, _),
    ):
        assert not list(usdt_probes(image))
    assert next(ticks) < 12
