"""What an unwinder does at the addresses of files, for all processes that have them mapped."""

from __future__ import annotations

from collections.abc import Hashable

from purebpf.unwind.plan import Known, Plan
from purebpf.unwind.rule import RegisterRule

__all__ = ["SharedRules"]

_MOST = 1 << 15
"""Addresses."""
_Contents = tuple[int, int | bytes, tuple[tuple[int, RegisterRule], ...], int, bool]


class SharedRules:
    """Plans by file, the file's own address, and whether it is exact, or that of a caller.

    Addresses have few different plans: each is kept once. A compiler's 16,000 have 700, which take
    a tenth of the memory of as many as there are addresses.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Hashable, int], Known] = {}
        self._plans: dict[_Contents, Plan] = {}

    def __len__(self) -> int:
        """How many addresses it has."""
        return len(self._known)

    def find(self, file: Hashable, address: int, *, exact: bool) -> Known | None:
        """What was kept."""
        return self._known.get((file, address << 1 | exact))

    def keep(self, file: Hashable, address: int, known: Known, *, exact: bool) -> Known:
        """Keep it; an equal one that was kept before, if there is one."""
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
