"""Rules: how to find a frame's caller.

A rule of a register is an `int`, which means "saved at that offset from the CFA", by far the most
frequent; `None`, which means that there is no rule; or a pair of `How` and an argument.
"""

from __future__ import annotations

from purebpf.enums import IntEnum
from purebpf.tuples import NamedTuple

__all__ = [
    "CFA_DEPTH",
    "CFA_EXPRESSION",
    "CFA_UNSUPPORTED",
    "DEPTH_BITS",
    "DEPTH_ELSEWHERE",
    "DEPTH_FRAMELESS",
    "DEPTH_FRAME_ELSEWHERE",
    "DEPTH_INTERRUPTED",
    "DEPTH_OUTERMOST",
    "DEPTH_UNKNOWN",
    "UNSUPPORTED",
    "How",
    "RegisterRule",
    "Row",
    "Rule",
]

CFA_EXPRESSION = -1
CFA_UNSUPPORTED = -2
CFA_DEPTH = -3
"""In place of the register that the CFA is relative to. `CFA_DEPTH`: there is no rule, but the
function has taken that many bytes from the stack.
"""

DEPTH_ELSEWHERE = -2
DEPTH_OUTERMOST = -3
"""Depths of code that called with another stack pointer: the caller's stack is not known; there is
no caller.
"""
DEPTH_FRAMELESS = -4
"""In place of the depth of code that keeps no frame pointers: it is not known."""
DEPTH_UNKNOWN = -5
"""The same of code whose instructions were read: a leaf there has a frame, or may have one."""
DEPTH_INTERRUPTED = 1
DEPTH_FRAME_ELSEWHERE = 2
DEPTH_BITS = 7
"""Added to a depth, which is a multiple of 8: what the function returns to was interrupted and has
not called it; or its frame is on another stack than the functions that it calls. All such bits.
"""


class How(IntEnum):
    """The kinds of a register's rule other than a saved place."""

    UNDEFINED = 0
    SAME = 1
    VALUE = 2
    """It is the CFA plus an offset."""
    REGISTER = 3
    """It is in another register."""
    EXPRESSION = 4
    """It is saved at the address that an expression computes."""
    VALUE_EXPRESSION = 5
    """It is what an expression computes."""


RegisterRule = int | tuple[How, int] | tuple[How, bytes] | None


class Rule(NamedTuple):
    """The parts of a row that BPF and tables need: interned, so equal rules are one.

    Attributes:
        cfa_register: the register that the CFA is relative to, or `CFA_EXPRESSION` or
            `CFA_UNSUPPORTED`.
        cfa: the offset from it in bytes, or the expression.
        fp, ra: the rules of the frame pointer and of the return address.
        is_signal: a frame that the kernel built for a signal handler.
    """

    cfa_register: int
    cfa: int | bytes
    fp: RegisterRule
    ra: RegisterRule
    is_signal: bool


class Row(NamedTuple):
    """A rule with all registers, by number, for a complete unwinder."""

    cfa_register: int
    cfa: int | bytes
    registers: dict[int, RegisterRule]
    ra: int
    is_signal: bool


UNSUPPORTED = Rule(CFA_UNSUPPORTED, 0, None, None, False)
"""Instructions that cannot be read: the code has a rule, but not one that we know."""
