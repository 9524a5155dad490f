"""CO-RE relocations and externs: what an object asks of the kernel."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from purebpf.abi.bpf import BPF_F_MMAPABLE, BPF_F_RDONLY_PROG, bpf_core_relo_kind
from purebpf.btf.types.kinds import Datasec, Func, FuncProto, Kind, Linkage, Struct, Var
from purebpf.elf import read_object
from purebpf.elf.btf_ext import read_btf_ext
from purebpf.errors import FormatError, LinkError, SchemaError
from purebpf.spec import ExternSpec, ObjectSpec, RelocationKind
from tests.support.builders.btf_builder import BtfBuilder
from tests.support.builders.elf_builder import ElfBuilder

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def core() -> ObjectSpec:
    return read_object(DATA / "elf_core.bpf.o")


@pytest.fixture(scope="module")
def externs() -> ObjectSpec:
    return read_object(DATA / "elf_externs.bpf.o")


def test_core_relocations_of_every_kind(core: ObjectSpec) -> None:
    found = core.functions["every_kind"].core_relocations
    kinds = {bpf_core_relo_kind(relocation.kind) for relocation in found}
    assert kinds == set(bpf_core_relo_kind)
    assert core.btf is not None
    code = core.functions["every_kind"].code
    for relocation in found:
        assert code[relocation.offset] != 0, "the first half of an instruction"
    offsets = [relocation.offset for relocation in found]
    assert offsets == sorted(offsets)


def test_core_relocations_name_type_and_access(core: ObjectSpec) -> None:
    assert core.btf is not None
    found = {
        (core.btf.name(relocation.type_id), relocation.access, relocation.kind)
        for relocation in core.functions["every_kind"].core_relocations
    }
    assert ("task_struct", "0:0", 0) in found
    assert ("task_struct", "0:1:2:1", 0) in found
    assert ("task_struct", "0:1", 2) in found
    assert ("gone___v1", "0", 8) in found
    assert ("choice", "1", 11) in found


def test_externs_have_their_section_and_weakness(externs: ObjectSpec) -> None:
    assert externs.btf is not None
    weak = {name for name, extern in externs.externs.items() if extern.weak}
    assert {name: extern.section for name, extern in externs.externs.items()} == {
        "bpf_prog_active": ".ksyms",
        "init_task": ".ksyms",
        "absent": ".ksyms",
        "bpf_rcu_read_lock": ".ksyms",
        "bpf_rcu_read_unlock": ".ksyms",
        "bpf_no_parameter_names": ".ksyms",
        "LINUX_KERNEL_VERSION": ".kconfig",
        "CONFIG_BPF_SYSCALL": ".kconfig",
        "CONFIG_DEFAULT_HOSTNAME": ".kconfig",
        "CONFIG_HZ": ".kconfig",
    }
    assert weak == set(externs.externs) - {
        "bpf_prog_active",
        "init_task",
        "bpf_rcu_read_lock",
        "LINUX_KERNEL_VERSION",
    }


def test_externs_keep_the_type_they_were_declared_with(externs: ObjectSpec) -> None:
    btf = externs.btf
    assert btf is not None
    assert btf.resolve(externs.externs["init_task"].type_id) == 0
    absent = btf.resolve(externs.externs["absent"].type_id)
    assert (btf.kind(absent), btf.name(absent)) == (Kind.FWD, "task_struct")
    lock = externs.externs["bpf_rcu_read_lock"]
    assert btf.kind(lock.type_id) is Kind.FUNC
    assert isinstance(lock, ExternSpec)


def test_references_to_kernel_symbols(externs: ObjectSpec) -> None:
    found = [
        relocation.target
        for relocation in externs.functions["use_externs"].relocations
        if relocation.kind is RelocationKind.EXTERN
    ]
    symbols = {name for name, extern in externs.externs.items() if extern.section == ".ksyms"}
    assert set(found) == symbols


def test_configuration_values_are_a_map_of_constants(externs: ObjectSpec) -> None:
    values = externs.maps[".kconfig"]
    assert (values.type, values.key_size, values.value_size, values.max_entries) == (2, 4, 23, 1)
    assert values.flags == BPF_F_RDONLY_PROG | BPF_F_MMAPABLE
    assert values.frozen
    assert values.contents == bytes(23)
    assert externs.btf is not None
    assert externs.btf.name(values.value_type_id) == ".kconfig"


def test_references_to_configuration_values_are_places_in_that_map(externs: ObjectSpec) -> None:
    places = {
        relocation.addend
        for relocation in externs.functions["use_externs"].relocations
        if relocation.target == ".kconfig"
    }
    values = [each for each in externs.variables.values() if each.map == ".kconfig"]
    assert {each.name: (each.offset, each.size) for each in values} == {
        "CONFIG_HZ": (0, 8),
        "LINUX_KERNEL_VERSION": (8, 4),
        "CONFIG_BPF_SYSCALL": (12, 1),
        "CONFIG_DEFAULT_HOSTNAME": (13, 10),
    }
    assert places == {each.offset for each in values}


def test_configuration_values_cannot_be_set_like_globals(externs: ObjectSpec) -> None:
    with pytest.raises(SchemaError, match=r"CONFIG_HZ is a kernel configuration value; .*kconfig="):
        externs.set(CONFIG_HZ=1000)


def test_ksyms_are_variables_the_kernel_takes(externs: ObjectSpec) -> None:
    btf = externs.btf
    assert btf is not None
    (type_id,) = btf.find(".ksyms", Kind.DATASEC)
    section = btf.type(type_id)
    assert isinstance(section, Datasec)
    assert section.size == 4 * 6
    assert [(e.offset, e.size) for e in section.entries] == [(4 * i, 4) for i in range(6)]
    for entry in section.entries:
        variable = btf.type(entry.type_id)
        assert isinstance(variable, Var)
        assert variable.linkage is Linkage.GLOBAL
        assert btf.sizeof(variable.type_id) == 4
    names = sorted(btf.name(entry.type_id) for entry in section.entries)
    assert names == ["absent", "bpf_prog_active", *["dummy_ksym"] * 3, "init_task"]


def test_kernel_functions_become_global_ones_with_named_parameters(externs: ObjectSpec) -> None:
    btf = externs.btf
    assert btf is not None
    function = btf.type(externs.externs["bpf_no_parameter_names"].type_id)
    assert isinstance(function, Func)
    assert function.linkage is Linkage.GLOBAL
    prototype = btf.type(function.type_id)
    assert isinstance(prototype, FuncProto)
    assert [parameter.name for parameter in prototype.params] == ["dummy_ksym", "dummy_ksym"]


def test_configuration_values_are_laid_out_by_alignment(externs: ObjectSpec) -> None:
    btf = externs.btf
    assert btf is not None
    (type_id,) = btf.find(".kconfig", Kind.DATASEC)
    section = btf.type(type_id)
    assert isinstance(section, Datasec)
    assert [(btf.name(e.type_id), e.offset, e.size) for e in section.entries] == [
        ("CONFIG_HZ", 0, 8),
        ("LINUX_KERNEL_VERSION", 8, 4),
        ("CONFIG_BPF_SYSCALL", 12, 1),
        ("CONFIG_DEFAULT_HOSTNAME", 13, 10),
    ]
    assert section.size == 23
    for entry in section.entries:
        variable = btf.type(entry.type_id)
        assert isinstance(variable, Var)
        assert variable.linkage is Linkage.GLOBAL


def test_a_function_without_a_definition_is_refused() -> None:
    with pytest.raises(LinkError, match="use refers to it") as caught:
        read_object(DATA / "elf_bad_undefined.bpf.o")
    assert caught.value.symbol == "nowhere"


def test_types_keep_their_ids(core: ObjectSpec) -> None:
    assert core.btf is not None
    for relocation in core.functions["every_kind"].core_relocations:
        if relocation.access == "0:1:2:1":
            assert isinstance(core.btf.type(relocation.type_id), Struct)
            break
    else:
        pytest.fail("no access to nested[2].second")


def _changed(name: str, pattern: bytes, at: int, value: bytes) -> bytes:
    """An object's bytes with some of them changed, counted from the first place of `pattern`."""
    data = bytearray((DATA / f"{name}.bpf.o").read_bytes())
    place = data.index(pattern) + at
    data[place : place + len(value)] = value
    return bytes(data)


BTF_EXT = bytes.fromhex("9feb010020000000")


@pytest.mark.parametrize(
    ("at", "value", "problem"),
    [
        (0, b"\0\0", "not BTF.ext"),
        (2, b"\2", "version 2"),
        (4, b"\xff\xff\xff\xff", "claims to be 4294967295 bytes"),
        (4, b"\4\0\0\0", "claims to be 4 bytes"),
        (12, b"\xff\xff\xff\x7f", "leave the section"),
        (20, b"\xff\xff\xff\x7f", "leave the section"),
        (28, b"\xff\xff\xff\x7f", "leave the section"),
        (32, b"\4\0\0\0", "records of 4 bytes"),
        (32, b"\x0a\0\0\0", "records of 10 bytes"),
        (40, b"\xff\xff\xff\xff", "leave the table"),
        (44, b"\1\0\0\0", "inside an instruction"),
        (48, b"\1\0\0\0", "is not a function"),
    ],
)
def test_damaged_tables_are_refused(at: int, value: bytes, problem: str) -> None:
    with pytest.raises(FormatError, match=problem) as caught:
        read_object(_changed("elf_core", BTF_EXT, at, value))
    assert caught.value.where.startswith(".BTF.ext")


def test_longer_records_are_read_as_far_as_they_are_known(core: ObjectSpec) -> None:
    """A table of functions of which the records have a third word, which is skipped."""
    data = (DATA / "elf_core.bpf.o").read_bytes()
    start = data.index(BTF_EXT)
    body = bytearray(data[start:])
    header = list(struct.unpack_from("<8sIIIIII", body))
    functions = bytes(body[32 : 32 + header[2]])
    longer = struct.pack("<I", 12) + functions[4:] + bytes(4)
    btf = core.btf
    assert btf is not None
    table = struct.pack("<8sIIIIII", BTF_EXT, 0, len(longer), len(longer), 0, 0, 0) + longer
    found = read_btf_ext(memoryview(table), btf, "test").functions
    assert found == {"raw_tp/sched_switch": {0: core.functions["every_kind"].type_id}}


def test_tables_of_before_core() -> None:
    spec = read_object(_changed("elf_core", BTF_EXT, 24, bytes(8)))
    assert spec.functions["every_kind"].core_relocations == ()


def test_byte_orders_do_not_mix() -> None:
    big = (DATA / "elf_big_endian.bpf.o").read_bytes()
    start = big.index(b"\xeb\x9f\1\0\0\0\0\x18")
    types, strings = (int.from_bytes(big[start + at : start + at + 4], "big") for at in (12, 20))
    built = ElfBuilder()
    built.program()
    built.section(".BTF", big[start : start + 24 + types + strings])
    with pytest.raises(FormatError, match="is big-endian, unlike the file"):
        read_object(built.build())


def test_pointers_of_bpf_have_eight_bytes_whatever_long_is() -> None:
    """As bpf_object__init_btf() of libbpf has it."""
    btf = BtfBuilder()
    btf.int("long", 4, signed=True)
    pointer = btf.ptr()
    built = ElfBuilder()
    built.program()
    built.section(".BTF", btf.btf().data)
    found = read_object(built.build()).btf
    assert found is not None
    assert btf.btf().sizeof(pointer) == 4
    assert found.sizeof(pointer) == 8


def test_a_variable_that_elf_does_not_know() -> None:
    with pytest.raises(FormatError, match=r"DATASEC \.bss: variable Seen has no symbol"):
        read_object(_changed("elf_core", b"\0seen\0", 1, b"S"))
