"""Relocation and linking against libbpf's, instruction by instruction."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import purebpf
from purebpf.abi.instruction import (
    CALL,
    LD_IMM64,
    PSEUDO_KFUNC_CALL,
    PSEUDO_MAP_FD,
    PSEUDO_MAP_VALUE,
)
from purebpf.btf.core.matching import Targets
from purebpf.elf import read_object
from purebpf.errors import CoreRelocationError, FormatError
from purebpf.loader.load.kernel_types import KernelTypes
from purebpf.relocate import Linker
from purebpf.relocate.code import Code
from purebpf.relocate.externs import POISONED_KFUNC
from purebpf.spec import ObjectSpec
from tests.support.builders.btf_random import random_kernel
from tests.support.host import modules
from tests.support.host.faults import slow_host
from tests.support.oracles import libbpf, libbpf_tools

TESTS = Path(__file__).parents[3]
CORE = TESTS / "data/core"
OBJECTS = sorted([*TESTS.glob("data/**/*.bpf.o"), *TESTS.glob("../purebpf/objects/*.bpf.o")])

DIFFERENT = {
    "elf_bad_inner_value": "a value with a struct that is only declared",
    "elf_bad_legacy_maps": "libbpf 1.0 has no more maps without BTF",
    "elf_legacy_maps": "libbpf 1.0 has no more maps without BTF",
    "load_iproute2": "libbpf 1.0 has no more maps without BTF",
    "elf_bad_extern_map": "a map that is in no object",
    "elf_bad_map_data": "purebpf refuses contents that libbpf ignores",
    "elf_bad_map_type": "a value without a size",
    "elf_bad_static_map": "static maps",
    "elf_bad_undefined": "an undefined function",
    "elf_bad_ksym": "kernel symbols that are nowhere",
    "elf_big_endian": "libbpf 1.1 opens its own byte order only",
    "elf_externs": "init_task, which only kernels with CONFIG_KALLSYMS_ALL show",
    "elf_functions": "libbpf wants subprograms in .text",
    "elf_maps": "libbpf 1.1 does not know all of these maps",
    "load_arena": "libbpf 1.1 does not have arenas",
    "load_arena_first_page": "libbpf 1.1 does not have arenas",
    "load_static_programs": "libbpf refuses static programs",
    "load_library": "libbpf sends the type of a ring's records, which the kernel refuses",
    "load_jump_tables": "libbpf 1.1 does not have jump tables",
    "load_tags": "libbpf 1.1 does not link what only a tag refers to",
    "sample_programs": "libbpf sends the type of a perf buffer's records, which the kernel refuses",
    "stacks_of_others": "functions that purebpf.stacks joins to the object",
    "trace": "libbpf fills its map of programs, too, of which the test loads none",
    "load_kfunc_flavours": "libbpf 1.1 takes ___ for a part of a function's name",
}
"""Objects that one of the two refuses, and why."""

LOADABLE = (
    "core/core_task",
    "elf_linked",
    "elf_pointers",
    "load_counter",
    "load_hash_of_maps",
    "load_kconfig",
    "load_kernel_variables",
    "load_ksyms",
    "load_run",
    "load_tail",
)
"""Objects of tests/data that both load into the kernel."""


NEEDS = {
    "core/core_task": pytest.mark.needs("callbacks"),
    "attach_struct_ops": pytest.mark.needs("question_marks"),  # libbpf 1.1 does not hide them
    "filter_pinned": pytest.mark.needs("sample_contexts"),
    "load_dummy_ops": pytest.mark.needs("dummy_struct_ops"),
    "load_kconfig": pytest.mark.needs("kernel_config", "syscall_programs"),
    "load_kernel_variables": pytest.mark.needs("kernel_variables"),
    "load_module": pytest.mark.needs("modules"),
    "load_run": pytest.mark.needs("syscall_programs"),
    "load_user_ring": pytest.mark.needs("user_ring_buffer"),
    **dict.fromkeys(("offcpu", "spans", "summary"), pytest.mark.needs("task_storage")),
}
"""What an object asks of the kernel, so that either can relocate it."""


def name_of(path: Path) -> str:
    return path.name.removesuffix(".bpf.o")


def read(path: Path) -> ObjectSpec:
    return read_object(path)


def link_all(spec: ObjectSpec, targets: Targets | None = None) -> dict[str, bytes]:
    """Each program that loads by default, for this kernel or for other types."""
    with KernelTypes(spec) as types:
        linker = Linker(spec, targets or types.core_targets, types.extern)
        programs = [linker.link(name) for name, each in spec.programs.items() if each.autoload]
    return {each.name: each.bind(dict.fromkeys(each.maps, 0)) for each in programs}


def comparable(code: bytes) -> bytes:
    """The code without the numbers of maps, which differ from load to load.

    A call of a kernel function that does not exist is one of BTF type 0 for libbpf 1.1, and
    poisoned since 1.2.
    """
    blank = Code(code, "little")
    for slot in range(len(blank)):
        is_map = blank.source(slot) in (PSEUDO_MAP_FD, PSEUDO_MAP_VALUE)
        if blank.opcode(slot) == LD_IMM64 and is_map:
            blank.set_immediate(slot, 0)
        is_kfunc = blank.opcode(slot) == CALL and blank.source(slot) == PSEUDO_KFUNC_CALL
        if is_kfunc and not blank.immediate(slot):
            blank.replace_by_call(slot, POISONED_KFUNC)
    return bytes(blank)


def every(programs: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: comparable(code) for name, code in programs.items()}


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
@pytest.mark.filterwarnings("ignore:.*does not relocate:RuntimeWarning")
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=NEEDS.get(name_of(path), ()))
        for path in OBJECTS
        if name_of(path) not in DIFFERENT
    ],
    ids=name_of,
)
def test_programs_are_what_libbpf_makes_of_them(path: Path) -> None:
    theirs = every(libbpf.relocate(path))
    assert every(link_all(read(path))) == theirs


@pytest.fixture(autouse=True, scope="module")
def _conntrack() -> None:
    """The module that `load_module` asks for."""
    if modules.folder() is not None:
        modules.load_conntrack()


@pytest.mark.needs("bpf", "libbpf", "libbpf-tools", "vmlinux_btf")
@pytest.mark.parametrize("name", sorted(libbpf_tools.objects())[:: 5 if slow_host() else 1])
def test_installed_tools_become_what_libbpf_makes_of_them(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.bpf.o"
    path.write_bytes(libbpf_tools.objects()[name])
    theirs = every(libbpf.relocate(path))
    assert every(link_all(read(path))) == theirs


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
@pytest.mark.filterwarnings("ignore:.*does not relocate:RuntimeWarning")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=NEEDS.get(name, ())) for name in [*LOADABLE, "profile"]]
)
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
    return comparable(dump.read_bytes())
