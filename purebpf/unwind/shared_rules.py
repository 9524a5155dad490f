"""The steps of an unwinder at the addresses of files, for all processes that have them mapped."""

from __future__ import annotations

from collections.abc import Hashable

from purebpf.unwind.plan import Known, Plan
from purebpf.unwind.rule import RegisterRule

__all__ = ["SharedRules"]

_MOST = 1 << 15
"""Addresses."""
_Contents = tuple[int, int | bytes, tuple[tuple[int, RegisterRule], ...], int, bool]


class SharedRules:
    """Plans by file, the file's own address, and whether the address is exact, or a caller's.

    Addresses have few different plans: each is stored once. A compiler's 16,000 addresses have 700,
    which take a tenth of the memory of a plan for each address.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Hashable, int], Known] = {}
        self._plans: dict[_Contents, Plan] = {}

    def __len__(self) -> int:
        """Return the number of addresses."""
        return len(self._known)

    def find(self, file: Hashable, address: int, *, exact: bool) -> Known | None:
        """Return the stored plan."""
        return self._known.get((file, address << 1 | exact))

    def keep(self, file: Hashable, address: int, known: Known, *, exact: bool) -> Known:
        """Store it; return an equal one that was stored before, if there is one."""
        if len(self._known) >= _MOST:
            self.clear()
        if isinstance(known, Plan):
            row = known.row
            registers = tuple(sorted(row.registers.items(), key=_number))
            contents = row.cfa_register, row.cfa, registers, row.ra, row.is_signal
            known = self._plans.setdefault(contents, known)
        self._known[file, address << 1 | exact] = known
        return known

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()
        self._plans.clear()


def _number(item: tuple[int, RegisterRule]) -> int:
    return item[0]
