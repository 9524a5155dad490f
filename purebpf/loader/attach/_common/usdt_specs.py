"""The specs of probes that programs with `bpf/usdt.bpf.h` read.

The header declares two maps. `__bpf_usdt_specs` has for a number where the arguments are; the
program finds its number in the attach cookie, or, before Linux 5.15, by its instruction pointer in
`__bpf_usdt_ip_to_spec_id`. Numbers belong to a link until it is closed.

The values are written by their BTF: libbpf 1.7 changed the struct, and objects keep the form of the
header they were compiled with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from purebpf.btf.codec.codecs import codec
from purebpf.errors import NotSupportedError
from purebpf.loader.maps.map import Map
from purebpf.symbols.usdt_arguments import MAX_ARGUMENTS, Argument, UnknownArgument, Where

__all__ = ["PLACES_MAP", "SPECS_MAP", "UsdtSpecs"]

SPECS_MAP = "__bpf_usdt_specs"
PLACES_MAP = "__bpf_usdt_ip_to_spec_id"

_LONG_BITS = 64


class UsdtSpecs:
    """The two maps of a loaded object, which stay the object's."""

    def __init__(self, specs: Map, places: Map, blank: dict[str, Any]) -> None:
        self._specs = specs
        self._places = places
        self._free = list(range(specs.max_entries - 1, -1, -1))
        self._blank = blank

    @classmethod
    def of(cls, maps: Mapping[str, Map]) -> UsdtSpecs | None:
        """Return the specs of an object; None when it was compiled without the header.

        Maps of these names and other values are not the header's.
        """
        if SPECS_MAP not in maps or PLACES_MAP not in maps:
            return None
        blank = _blank_argument(maps[SPECS_MAP])
        return None if blank is None else cls(maps[SPECS_MAP], maps[PLACES_MAP], blank)

    def problem_of(self, argument: Argument | UnknownArgument) -> str:
        """Return the reason why the object cannot read an argument, "" if it can."""
        if isinstance(argument, UnknownArgument):
            return argument.problem
        if argument.where is Where.SIB and "idx_reg_off" not in self._blank:
            return "the object's bpf/usdt.bpf.h cannot read elements of arrays: use libbpf's of 1.7"
        return ""

    def add(self, arguments: tuple[Argument | UnknownArgument, ...], cookie: int) -> int:
        """Describe the arguments of a probe: the number to find the description by.

        Raises:
            NotSupportedError: there is no free number.
            KernelError: the map cannot be written.
        """
        if not self._free:
            count = self._specs.max_entries
            raise NotSupportedError(
                "another USDT probe",
                f"map {SPECS_MAP} holds {count}; use spec.resize({SPECS_MAP}=...) before load()",
            )
        described = [self._blank | self._describe(argument) for argument in arguments]
        rest = [self._blank] * (MAX_ARGUMENTS - len(described))
        value = {"args": [*described, *rest], "usdt_cookie": cookie, "arg_cnt": len(arguments)}
        self._specs.put(self._free[-1], value)
        return self._free.pop()

    def _describe(self, argument: Argument | UnknownArgument) -> dict[str, Any]:
        if isinstance(argument, UnknownArgument) or self.problem_of(argument):
            return {"arg_type": int(Where.UNKNOWN)}
        return _describe(argument)

    def put_place(self, address: int, number: int) -> None:
        """Say which description holds at an address (before Linux 5.15, commit 7adfc6c9b315).

        Raises:
            KernelError: the map cannot be written: E2BIG, it is full.
        """
        self._places.put(address, number)

    def give_back(self, numbers: Iterable[int], addresses: Iterable[int] = ()) -> None:
        """Release the specs of a closed link for others to use."""
        self._free.extend(numbers)
        for address in addresses:
            self._places.pop(address, None)


def _blank_argument(specs: Map) -> dict[str, Any] | None:
    """The fields of an argument's description, all 0; None when the values have none."""
    if specs.btf is None:
        return None
    layout = codec(specs.btf, specs.value_type_id)
    arguments = getattr(layout.decode(bytes(layout.size)), "args", None)
    if not isinstance(arguments, tuple | list) or not arguments:
        return None
    fields = getattr(arguments[0], "_asdict", None)
    return None if fields is None else fields()


def _describe(argument: Argument) -> dict[str, Any]:
    """The fields of struct __bpf_usdt_arg_spec."""
    fields = {
        "val_off": argument.value % (1 << _LONG_BITS),
        "arg_type": int(argument.where),
        "reg_off": argument.register,
        "arg_signed": argument.signed,
        "arg_bitshift": _LONG_BITS - 8 * argument.size,
    }
    if argument.where is Where.SIB:
        fields |= {
            "idx_reg_off": argument.index_register,
            "scale_bitshift": argument.scale.bit_length() - 1,
        }
    return fields
