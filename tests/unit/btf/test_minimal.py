"""BTF with few types: every relocation has the result that it has with all of them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf import objects
from purebpf.abi.bpf import bpf_core_relo_kind
from purebpf.btf.core.matching import CoreResult, match
from purebpf.btf.core.minimal import Wanted, minimise
from purebpf.btf.types.kinds import Array, Void
from purebpf.btf.types.parse import Btf
from purebpf.btf.types.write import write_btf
from purebpf.elf import read_object
from purebpf.errors import CoreRelocationError, SchemaError
from purebpf.spec import ObjectSpec
from tests.support.builders.btf_random import random_kernel

DATA = Path(__file__).parents[2] / "data"
VMLINUX = Path("/sys/kernel/btf/vmlinux")


def wanted(spec: ObjectSpec) -> Wanted:
    assert spec.btf is not None
    return Wanted(spec.btf, [one for f in spec.functions.values() for one in f.core_relocations])


def answers(objects_: list[Wanted], target: Btf) -> Iterator[CoreResult]:
    """Without numbers of types, of which there are fewer."""
    for local, relocations in objects_:
        for result in match(local, relocations, [target]):
            if result.kind != bpf_core_relo_kind.BPF_CORE_TYPE_ID_TARGET:
                yield result._replace(found="")


@pytest.fixture(scope="module")
def compiled() -> list[Wanted]:
    return [wanted(read_object(path)) for path in sorted((DATA / "core").glob("*.bpf.o"))]


@pytest.mark.parametrize("seed", range(150))
def test_of_kernels_made_at_random(compiled: list[Wanted], seed: int) -> None:
    kernel = random_kernel(seed).btf()
    for one in compiled:
        try:
            every = list(answers([one], kernel))
        except CoreRelocationError:  # candidates that disagree
            continue
        smaller = Btf(minimise(kernel, [one]))
        assert len(smaller) <= len(kernel)
        assert list(answers([one], smaller)) == every


def test_of_this_kernel_and_what_is_shipped() -> None:
    if not VMLINUX.exists():
        pytest.skip(f"this kernel has no {VMLINUX}")
    kernel = Btf(VMLINUX.read_bytes())
    paths = sorted(Path(objects.__file__).parent.glob("*.bpf.o"))
    shipped = [wanted(spec) for path in paths if (spec := read_object(path)).btf]
    made = minimise(kernel, shipped)
    assert len(made) < 20_000
    assert list(answers(shipped, Btf(made))) == list(answers(shipped, kernel))


def test_bpftool_takes_as_few_types(tmp_path: Path) -> None:
    """And reads ours: each struct and member that it kept is there at the same place."""
    if not VMLINUX.exists() or not shutil.which("bpftool"):
        pytest.skip(f"needs bpftool and {VMLINUX}")
    path = Path(objects.__file__).parent / "tcp.bpf.o"
    theirs = tmp_path / "theirs.btf"
    command = ["bpftool", "gen", "min_core_btf", str(VMLINUX), str(theirs), str(path)]
    subprocess.run(command, check=True)
    one = wanted(read_object(path))
    kernel = Btf(VMLINUX.read_bytes())
    assert list(answers([one], Btf(theirs.read_bytes()))) == list(answers([one], kernel))
    ours = tmp_path / "ours.btf"
    ours.write_bytes(minimise(kernel, [one]))
    assert ours.stat().st_size < 2 * theirs.stat().st_size
    dumped = subprocess.run(
        ["bpftool", "btf", "dump", "file", str(ours)], check=True, capture_output=True, text=True
    ).stdout
    assert "STRUCT 'tcp_sock'" in dumped


def test_nothing_wanted() -> None:
    assert len(Btf(minimise(random_kernel(1).btf(), []))) == 1


@pytest.mark.parametrize("order", ["<", ">"])
def test_what_is_written_is_what_was_read(order: str) -> None:
    for known in (read_object(DATA / "core/core_values.target.o").btf, random_kernel(3).btf()):
        assert known is not None
        every = [known.type(number) for number in range(1, len(known))]
        again = Btf(write_btf(every, order))
        assert [again.type(number) for number in range(1, len(again))] == every


def test_every_type_of_this_kernel_can_be_written() -> None:
    if not VMLINUX.exists():
        pytest.skip(f"this kernel has no {VMLINUX}")
    kernel = Btf(VMLINUX.read_bytes())
    every = [kernel.type(number) for number in range(1, len(kernel))]
    again = Btf(write_btf(every))
    assert [again.type(number) for number in range(1, len(again))] == every


def test_a_type_that_does_not_fit() -> None:
    with pytest.raises(SchemaError, match="does not fit into BTF"):
        write_btf([Array(1, 1, 1 << 32)])
    with pytest.raises(SchemaError, match="no type of that kind"):
        write_btf([Void()])
