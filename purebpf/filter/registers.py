"""The fields of the sample in the scratch registers of a filter program."""

from __future__ import annotations

from purebpf.abi.assembler import R0, R1, R3, R4, R5
from purebpf.filter.fields import Field
from purebpf.tuples import NamedTuple

__all__ = ["FieldRegister", "Registers"]

_SCRATCH = (R1, R3, R4, R5, R0)


class FieldRegister(NamedTuple):
    """A register, and whether the field is in it already."""

    register: int
    ready: bool


class Registers:
    """The contents of the scratch registers at a place of the program, on every path to it."""

    def __init__(self) -> None:
        self._fields: dict[int, Field] = {}
        self._oldest_first: list[int] = list(_SCRATCH)

    def of(self, field: Field) -> FieldRegister:
        """The register for a field: the one that holds it, or else the one used longest ago."""
        for register, held in self._fields.items():
            if held == field:
                self._use(register)
                return FieldRegister(register, ready=True)
        register = self.spare()
        self._fields[register] = field
        return FieldRegister(register, ready=False)

    def spare(self) -> int:
        """A register for something else: the one used longest ago."""
        register = self._oldest_first[0]
        self._fields.pop(register, None)
        self._use(register)
        return register

    def _use(self, register: int) -> None:
        self._oldest_first.remove(register)
        self._oldest_first.append(register)

    def snapshot(self) -> dict[int, Field]:
        """Return the contents here."""
        return dict(self._fields)

    def join(self, other: dict[int, Field]) -> None:
        """Keep only the contents that `other`, the state of another path to here, has as well."""
        self._fields = {
            register: field
            for register, field in self._fields.items()
            if other.get(register) == field
        }
