"""Configuration values: lines of a kernel's .config into the map that `__kconfig` externs are in.

`CONFIG_HZ=250` gives an integer its value, `=y`, `=m` and `=n` a bool, a char or an enum
libbpf_tristate, and `="text"` an array of char, cut to its size. The rules for each type and the
errors are libbpf's (bpf_object__process_kconfig_line).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Literal

from purebpf.btf.types.kinds import Array, Enum, Enum64, Int
from purebpf.btf.types.parse import Btf
from purebpf.errors import NotSupportedError, SchemaError
from purebpf.spec import ObjectSpec, VariableSpec

__all__ = ["KCONFIG", "PREFIX", "check_lines", "settings", "with_values"]

KCONFIG = ".kconfig"
PREFIX = "CONFIG_"
_PREFIXES = (PREFIX, "LINUX_")
_TRISTATE = "libbpf_tristate"
_LINE = re.compile(r"^(CONFIG_\w+)=(.*?)\r?$", re.MULTILINE)
_SETTING = re.compile(r"CONFIG_\w+=\S.*?\r?")
_STATES = {"n": 0, "y": 1, "m": 2}
_NUMBER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|[0-9]+)")
_U64 = (1 << 64) - 1


def check_lines(text: str) -> None:
    """Refuse lines that set nothing: a misspelt setting would have the kernel's own value.

    Raises:
        SchemaError: a line is not empty, a comment or `CONFIG_NAME=VALUE`; names it.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.startswith("#") and not _SETTING.fullmatch(line):
            raise SchemaError(
                f"kconfig: line {number} is not a setting: {line.rstrip()[:100]!r}. "
                "Write CONFIG_NAME=VALUE, without blanks"
            )


def settings(text: str, names: Collection[str]) -> dict[str, str]:
    """Return the settings of a .config for `names`; the first line counts, and comments do not."""
    settings_by_name: dict[str, str] = {}
    for line in _LINE.finditer(text):
        if line[1] in names:
            settings_by_name.setdefault(line[1], line[2])
    return settings_by_name


def with_values(spec: ObjectSpec, values: Mapping[str, str | int]) -> ObjectSpec:
    """`spec` with its configuration values filled in: texts of a .config, or numbers.

    A weak extern without a value is 0, if it is called as one that could have a value.

    Raises:
        NotSupportedError: an extern that is not weak has no value; one of a type that has no
            values in libbpf.
        SchemaError: a value that the extern's type does not take.
    """
    if KCONFIG not in spec.maps:
        return spec
    image = bytearray(spec.maps[KCONFIG].value_size)
    for name, variable in spec.variables.items():
        if variable.map != KCONFIG:
            continue
        if name in values:
            data = _Value(spec, variable).encode(values[name])
            image[variable.offset : variable.offset + len(data)] = data
        elif not spec.externs[name].weak or not name.startswith(_PREFIXES):
            raise NotSupportedError(f"{spec.source}: extern {name}", _absent(name))
    filled = spec.maps[KCONFIG]._replace(contents=bytes(image))
    return spec._replace(maps={**spec.maps, KCONFIG: filled})


def _absent(name: str) -> str:
    if name.startswith(PREFIX):
        return (
            "this kernel's configuration does not set it, and it is not declared __weak; set it "
            f"with load(..., kconfig='{name}=...')"
        )
    if name.startswith(_PREFIXES):
        return "libbpf does not define this value, and it is not declared __weak"
    return "unknown value: configuration values start with CONFIG_, those of libbpf with LINUX_"


class _Value:
    """One extern, and the values that its type accepts."""

    def __init__(self, spec: ObjectSpec, variable: VariableSpec) -> None:
        assert spec.btf is not None  # variables come from BTF
        self._where = f"{spec.source}: extern {variable.name}"
        self._order: Literal["little", "big"] = "little" if spec.byteorder == "little" else "big"
        self._size = variable.size
        self._type = _type(spec.btf, variable.type_id)
        if not self._type:
            raise NotSupportedError(
                self._where,
                "a configuration value is a bool, a char or integer, an enum libbpf_tristate or "
                "an array of char",
            )

    def encode(self, value: str | int) -> bytes:
        """The extern's bytes for a number, or for the text after `=`."""
        if isinstance(value, int):
            return self._number(value, value)
        if value in _STATES:
            return self._state(value)
        if value.startswith('"'):
            return self._text(value)
        number = _NUMBER.fullmatch(value)
        if number is None or self._type == "bool":
            raise self._unfit(value)
        try:
            magnitude = int(number[2], 8 if number[2].isdigit() and number[2][0] == "0" else 0)
        except ValueError:
            raise self._unfit(value) from None
        return self._number(-magnitude if number[1] == "-" else magnitude, value)

    def _unfit(self, value: str | int) -> SchemaError:
        return SchemaError(
            f"{self._where}: its configured value {value!r} does not fit a {self._type} of "
            f"{self._size} bytes"
        )

    def _state(self, value: str) -> bytes:
        """y, m or n; a char is the letter itself."""
        if self._type.endswith("char"):
            return value.encode()
        if self._type == "tristate" or (self._type == "bool" and value != "m"):
            return _STATES[value].to_bytes(self._size, self._order)
        raise self._unfit(value)

    def _text(self, value: str) -> bytes:
        if self._type != "string" or len(value) < 2 or not value.endswith('"'):
            raise self._unfit(value)
        return value[1:-1].encode(errors="surrogateescape")[: self._size - 1] + b"\0"

    def _number(self, value: int, configured: str | int) -> bytes:
        """A number in the range of the type; 64-bit ones may be of either sign."""
        if self._type in ("string", "tristate") or (self._type == "bool" and value not in (0, 1)):
            raise self._unfit(configured)
        if self._size == 8 and abs(value) <= _U64:
            return (value & _U64).to_bytes(8, self._order)
        try:
            return value.to_bytes(self._size, self._order, signed=self._type.startswith("signed"))
        except OverflowError:
            raise self._unfit(configured) from None


def _type(btf: Btf, type_id: int) -> str:
    """Name the kind of value that a type holds; "" for a type that holds none."""
    btf_type = btf.type(btf.resolve(type_id))
    if isinstance(btf_type, Array):
        element = _type(btf, btf_type.element)
        return "string" if btf_type.count and element.endswith("char") else ""
    if isinstance(btf_type, Enum | Enum64):
        return "tristate" if btf_type.name == _TRISTATE and btf_type.size == 4 else ""
    if not isinstance(btf_type, Int) or btf_type.size not in (1, 2, 4, 8):
        return ""
    if btf_type.is_bool:
        return "bool" if btf_type.size == 1 else ""
    sign = "signed " if btf_type.signed else ""
    return f"{sign}{'char' if btf_type.size == 1 else 'integer'}"
