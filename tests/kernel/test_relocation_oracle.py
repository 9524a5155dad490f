"""Relocation and linking against libbpf's, instruction by instruction."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import purebpf
from purebpf.abi.instruction import LD_IMM64, PSEUDO_MAP_FD, PSEUDO_MAP_VALUE
from purebpf.btf.core import Targets
from purebpf.elf import read_object
from purebpf.errors import CoreRelocationError, FormatError
from purebpf.kernel.btf import kernel_btf
from purebpf.relocate import Linker
from purebpf.relocate.code import Code
from purebpf.spec import ObjectSpec
from tests.support import libbpf
from tests.support.btf_random import random_kernel

TESTS = Path(__file__).parents[1]
CORE = TESTS / "data/core"
OBJECTS = sorted([*TESTS.glob("data/**/*.bpf.o"), *TESTS.glob("../purebpf/objects/*.bpf.o")])

DIFFERENT = {
    "elf_bad_legacy_maps": "no more maps without BTF",
    "elf_bad_map_data": "purebpf refuses contents that libbpf ignores",
    "elf_bad_static_map": "static maps",
    "elf_bad_undefined": "an undefined function",
    "elf_big_endian": "libbpf 1.1 opens its own byte order only",
    "elf_externs": "purebpf does not bind externs",
    "elf_functions": "libbpf wants subprograms in .text",
    "elf_maps": "libbpf 1.1 does not know all of these maps",
}
"""Objects that one of the two refuses, and why."""

LOADABLE = (
    "core/core_task",
    "elf_linked",
    "elf_pointers",
    "load_counter",
    "load_run",
    "load_tail",
)
"""Objects of tests/data that both load into the kernel."""


def name_of(path: Path) -> str:
    return path.name.removesuffix(".bpf.o")


def read(path: Path) -> ObjectSpec:
    return read_object(path)


def link_all(spec: ObjectSpec, targets: Targets) -> dict[str, bytes]:
    """Each program that loads by default."""
    linker = Linker(spec, targets)
    programs = [linker.link(name) for name, each in spec.programs.items() if each.autoload]
    return {each.name: each.bind(dict.fromkeys(each.maps, 0)) for each in programs}


def without_maps(code: bytes) -> bytes:
    """The code without the numbers of maps, which differ from load to load."""
    blank = Code(code, "little")
    for slot in range(len(blank)):
        is_map = blank.source(slot) in (PSEUDO_MAP_FD, PSEUDO_MAP_VALUE)
        if blank.opcode(slot) == LD_IMM64 and is_map:
            blank.set_immediate(slot, 0)
    return bytes(blank)


def every(programs: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: without_maps(code) for name, code in programs.items()}


def outcome(
    relocate: Callable[..., Mapping[str, bytes]], *arguments: object
) -> dict[str, bytes] | None:
    """The programs, or None when the object is refused."""
    try:
        return every(relocate(*arguments))
    except (CoreRelocationError, FormatError, OSError):
        return None


def test_each_exception_is_an_object() -> None:
    assert set(DIFFERENT) <= set(map(name_of, OBJECTS))


@pytest.mark.needs("bpf", "libbpf", "vmlinux_btf")
@pytest.mark.filterwarnings("ignore:.*stay unrelocated:RuntimeWarning")
@pytest.mark.parametrize(
    "path", [path for path in OBJECTS if name_of(path) not in DIFFERENT], ids=name_of
)
def test_programs_are_what_libbpf_makes_of_them(path: Path) -> None:
    theirs = every(libbpf.relocate(path))
    assert every(link_all(read(path), lambda: [kernel_btf()])) == theirs


@pytest.mark.needs("bpf", "libbpf")
@pytest.mark.parametrize("name", ["core_values", "core_loads"])
def test_programs_for_another_kernel_are_what_libbpf_makes_of_them(name: str) -> None:
    path, target = CORE / f"{name}.bpf.o", CORE / f"{name}.target.o"
    types = read(target).btf
    assert types is not None
    assert every(link_all(read(path), [types])) == every(libbpf.relocate(path, target))


@pytest.mark.needs("bpf", "libbpf")
@pytest.mark.parametrize("name", ["core_values", "core_loads"])
def test_random_kernels_give_what_libbpf_gives(name: str, tmp_path: Path) -> None:
    path, target = CORE / f"{name}.bpf.o", tmp_path / "kernel.btf"
    spec = read(path)
    seen: Counter[bool] = Counter()
    for seed in range(100):
        kernel = random_kernel(seed)
        target.write_bytes(kernel.bytes())
        ours = outcome(link_all, spec, [kernel.btf()])
        assert ours == outcome(libbpf.relocate, path, target), f"seed {seed}"
        seen[ours is None] += 1
    assert min(seen[False], seen[True]) > 5, "one-sided: the random kernels prove little"


@pytest.mark.needs("bpf", "libbpf", "bpftool", "vmlinux_btf")
@pytest.mark.filterwarnings("ignore:.*stay unrelocated:RuntimeWarning")
@pytest.mark.parametrize("name", [*LOADABLE, "profile"])
def test_the_kernel_makes_the_same_of_both(name: str, tmp_path: Path) -> None:
    path = TESTS / f"data/{name}.bpf.o"
    if name == "profile":
        path = TESTS / "../purebpf/objects/profile.bpf.o"
    with libbpf.loaded(path) as theirs, purebpf.load(path) as ours:
        assert set(theirs) == set(ours.programs)
        for program, fd in theirs.items():
            expected = translated(fd, tmp_path / "theirs")
            assert translated(ours.programs[program].fileno(), tmp_path / "ours") == expected


def translated(fd: int, dump: Path) -> bytes:
    """The instructions after the verifier, as bpftool reads them back."""
    (number,) = [
        line.split()[1]
        for line in Path(f"/proc/self/fdinfo/{fd}").read_text().splitlines()
        if line.startswith("prog_id:")
    ]
    command = ["bpftool", "prog", "dump", "xlated", "id", number, "file", str(dump)]
    subprocess.run(command, check=True, capture_output=True)
    return without_maps(dump.read_bytes())
