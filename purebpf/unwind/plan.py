"""The steps of an unwinder at an address, computed once for each."""

from __future__ import annotations

from enum import Enum

from purebpf.tuples import NamedTuple
from purebpf.unwind.machine import Machine
from purebpf.unwind.rule import How, Row

__all__ = ["Known", "Plan", "Special", "plan_of"]


class Plan(NamedTuple):
    """A row, sorted by kind of step.

    Attributes:
        ends: there is no caller.
        base, cfa: as in the row; `base` is negative where `cfa` has to be evaluated.
        ra: offset from the CFA of the saved return address; None where it is elsewhere.
        saved: (register, offset from the CFA).
        others: (register, rule) pairs except saved and unchanged registers.
        row: the row itself.
    """

    ends: bool
    base: int
    cfa: int
    ra: int | None
    saved: tuple[tuple[int, int], ...]
    others: tuple[tuple[int, tuple[How, int] | tuple[How, bytes]], ...]
    row: Row


class Special(Enum):
    """In place of a plan."""

    SIGRETURN = 1
    """Code that a signal handler returns to."""
    NO_RULE = 2
    UNSUPPORTED = 3
    """A rule that cannot be read."""
    ENTRY = 4
    """A function that nothing called."""
    STUB = 5
    """A stub of a PLT without a rule: the frame of what it goes on to."""
    ELSEWHERE = 6
    """The caller is on another stack."""
    UNKNOWN_STACK = 10
    """The code changes stacks, and runs on one of them."""
    DEPTH = 11
    """Code without a rule that keeps the frame pointer, and whose depth is known."""
    FRAME_ELSEWHERE = 12
    """The same, but its frame is on another stack than the one that it called with."""
    OUTERMOST = 7
    """There is no caller, as code without a rule knows otherwise."""
    FRAMELESS = 8
    """Code without a rule that keeps no frame pointers."""
    GENERATED = 9
    """Code that a runtime generated, see `generated.py`."""


Known = Plan | Special


def plan_of(row: Row, machine: Machine) -> Plan:
    """Return the steps for a row, for the registers that a call preserves and all registers of a
    signal's frame.
    """
    ra = row.registers.get(row.ra)
    followed = range(machine.registers) if row.is_signal else (*machine.kept, machine.sp)
    saved, others = [], []
    for number in followed:
        rule = row.registers.get(number)
        if isinstance(rule, int):
            saved.append((number, rule))
        elif rule is not None:
            others.append((number, rule))
    is_plain = isinstance(row.cfa, int) and 0 <= row.cfa_register < machine.registers
    return Plan(
        ends=isinstance(ra, tuple) and ra[0] is How.UNDEFINED,
        base=row.cfa_register if is_plain else -1,
        cfa=row.cfa if isinstance(row.cfa, int) else 0,
        ra=ra if isinstance(ra, int) else None,
        saved=tuple(saved),
        others=tuple(others),
        row=row,
    )
