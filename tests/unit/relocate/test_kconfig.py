"""Configuration values: what each type takes of a .config, and what it does not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from purebpf.btf.codec.codecs import codec
from purebpf.elf import read_object
from purebpf.errors import NotSupportedError, SchemaError
from purebpf.relocate.kconfig import check_lines, settings, with_values
from purebpf.spec import ExternSpec, MapSpec, ObjectSpec, VariableSpec
from tests.support.builders.btf_builder import BtfBuilder

DATA = Path(__file__).parents[2] / "data"


def extern(what: str, *, weak: bool = False, name: str = "CONFIG_X") -> ObjectSpec:
    """An object with one extern, of a type that is named in C."""
    types = BtfBuilder()
    char = types.int("char", 1, signed=True)
    ids = {
        "bool": types.int("_Bool", 1, boolean=True),
        "bool of 4 bytes": types.int("wide", 4, boolean=True),
        "char": char,
        "unsigned char": types.int("unsigned char", 1),
        "short": types.int("short", 2, signed=True),
        "unsigned short": types.int("unsigned short", 2),
        "int": types.int("int", 4, signed=True),
        "unsigned long": types.int("unsigned long", 8),
        "long": types.int("long", 8, signed=True),
        "__int128": types.int("__int128", 16, signed=True),
        "tristate": types.enum("libbpf_tristate", {"TRI_NO": 0, "TRI_YES": 1}),
        "enum": types.enum("other", {"A": 0}),
        "char[4]": types.array(char, 4),
        "int[4]": types.array(types.int("int", 4), 4),
    }
    btf = types.btf()
    size = btf.sizeof(ids[what])
    return ObjectSpec(
        name="test",
        source="test.o",
        byteorder="little",
        license="GPL",
        programs={},
        functions={},
        maps={".kconfig": MapSpec(".kconfig", 2, 4, size, 1, section=".kconfig")},
        variables={name: VariableSpec(name, ".kconfig", 0, size, ids[what])},
        externs={name: ExternSpec(name, ".kconfig", ids[what], weak)},
        btf=btf,
    )


def image(what: str, value: str | int) -> bytes:
    return with_values(extern(what), {"CONFIG_X": value}).maps[".kconfig"].contents


@pytest.mark.parametrize(
    ("what", "value", "expected"),
    [
        ("bool", "y", b"\1"),
        ("bool", "n", b"\0"),
        ("bool", 1, b"\1"),
        ("tristate", "n", b"\0\0\0\0"),
        ("tristate", "y", b"\1\0\0\0"),
        ("tristate", "m", b"\2\0\0\0"),
        ("char", "m", b"m"),
        ("char", "-1", b"\xff"),
        ("unsigned char", "255", b"\xff"),
        ("short", "-32768", b"\0\x80"),
        ("unsigned short", "0xffff", b"\xff\xff"),
        ("int", "250", b"\xfa\0\0\0"),
        ("int", "010", b"\x08\0\0\0"),
        ("int", "+7", b"\7\0\0\0"),
        ("int", 0x61200, b"\0\x12\6\0"),
        ("unsigned long", "0xffffffffffffffff", b"\xff" * 8),
        ("long", "-2", b"\xfe" + b"\xff" * 7),
        ("char[4]", '"ab"', b"ab\0\0"),
        ("char[4]", '"abcdef"', b"abc\0"),
        ("char[4]", '""', b"\0\0\0\0"),
    ],
)
def test_configuration_values_fill_their_variable(
    what: str, value: str | int, expected: bytes
) -> None:
    assert image(what, value) == expected


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("bool", "m"),
        ("bool", "1"),
        ("bool", 2),
        ("tristate", "1"),
        ("tristate", 1),
        ("int", "y"),
        ("int", '"text"'),
        ("int", "2147483648"),
        ("int", "08"),
        ("int", "1_000"),
        ("int", ""),
        ("int", "12abc"),
        ("unsigned char", "256"),
        ("unsigned short", "-1"),
        ("unsigned long", "18446744073709551616"),
        ("long", "-18446744073709551616"),
        ("long", 1 << 64),
        ("char[4]", "y"),
        ("char[4]", "12"),
        ("char[4]", '"open'),
        ("char[4]", '"'),
    ],
)
def test_values_that_a_type_does_not_take(what: str, value: str | int) -> None:
    with pytest.raises(SchemaError, match=re.escape(f"CONFIG_X: its configured value {value!r}")):
        image(what, value)


@pytest.mark.parametrize("what", ["bool of 4 bytes", "__int128", "enum", "int[4]"])
def test_types_that_no_value_has(what: str) -> None:
    with pytest.raises(NotSupportedError, match="CONFIG_X: a configuration value is a bool"):
        image(what, "1")


def test_without_a_value_only_a_weak_extern_is_zero() -> None:
    assert with_values(extern("int", weak=True), {}).maps[".kconfig"].contents == bytes(4)
    with pytest.raises(NotSupportedError, match=r"extern CONFIG_X: .*configuration does not set"):
        with_values(extern("int"), {})


def test_a_name_that_no_value_can_have_is_a_slip_however_weak() -> None:
    assert with_values(extern("int", weak=True, name="LINUX_NEWER"), {}).maps[".kconfig"].contents
    with pytest.raises(NotSupportedError, match=r"extern CONFG_HZ: .*values start with CONFIG_"):
        with_values(extern("int", weak=True, name="CONFG_HZ"), {})


def test_settings_are_the_first_lines_of_wanted_names() -> None:
    text = (
        "# CONFIG_OFF is not set\n#CONFIG_COMMENT=y\n CONFIG_INDENTED=y\n"
        'CONFIG_HZ=250\r\nCONFIG_HZ=1000\nCONFIG_HZ_250=y\nCONFIG_TEXT="a=b"\nCONFIG_EMPTY='
    )
    wanted = {"OFF", "COMMENT", "INDENTED", "HZ", "TEXT", "EMPTY"}
    assert settings(text, {f"CONFIG_{name}" for name in wanted}) == {
        "CONFIG_HZ": "250",
        "CONFIG_TEXT": '"a=b"',
        "CONFIG_EMPTY": "",
    }


def test_the_values_of_an_object_are_where_its_variables_are() -> None:
    spec = read_object(DATA / "load_kconfig.bpf.o")
    given: dict[str, Any] = {
        "LINUX_KERNEL_VERSION": 0x60100,
        "LINUX_HAS_BPF_COOKIE": 1,
        "CONFIG_BPF_SYSCALL": "y",
        "CONFIG_NET": "m",
        "CONFIG_BPF": "y",
        "CONFIG_HZ": "1000",
        "CONFIG_DEFAULT_HOSTNAME": '"some host"',
    }
    filled = with_values(spec, given)
    assert filled.btf is not None
    values = {
        name: codec(filled.btf, each.type_id).decode(filled.maps[".kconfig"].contents, each.offset)
        for name, each in filled.variables.items()
        if each.map == ".kconfig"
    }
    assert values == {
        "LINUX_KERNEL_VERSION": 0x60100,
        "LINUX_HAS_BPF_COOKIE": True,
        "LINUX_HAS_SYSCALL_WRAPPER": 0,
        "LINUX_SOMETHING_ELSE": 0,
        "CONFIG_BPF_SYSCALL": True,
        "CONFIG_NET": 2,
        "CONFIG_BPF": ord("y"),
        "CONFIG_HZ": 1000,
        "CONFIG_PHYSICAL_START": 0,
        "CONFIG_NO_SUCH_NUMBER": 0,
        "CONFIG_DEFAULT_HOSTNAME": "som",
        "CONFIG_LOCALVERSION": "",
    }
    assert spec.maps[".kconfig"].contents == bytes(len(spec.maps[".kconfig"].contents))


def test_an_object_without_externs_stays_as_it_is() -> None:
    spec = read_object(DATA / "load_counter.bpf.o")
    assert with_values(spec, {}) is spec


@pytest.mark.parametrize(
    "line",
    [
        *("CONFIG_HZ 1000", "CONFIG_HZ", "CONFIG_HZ: 1000", " CONFIG_HZ=1000", "HZ=1000"),
        "CONFIG_HZ=",
        *("CONFIG_HZ = 1000", "CONFIG_HZ= 1000", "config_hz=1000", "CONFIG_=", "-DCONFIG_HZ=1000"),
    ],
)
def test_a_line_that_sets_nothing_is_named(line: str) -> None:
    with pytest.raises(SchemaError, match="line 3 is not a setting: '"):
        check_lines(f"# CONFIG_A is not set\nCONFIG_B=y\n{line}\n")


def test_the_lines_of_a_config_are_settings() -> None:
    check_lines('#\n# Linux\n\nCONFIG_HZ=1000\r\nCONFIG_CC="gcc 12 (Debian)"\nCONFIG_X=-0x1\n')
