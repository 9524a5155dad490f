"""`StackNumbers`: numbers for stacks that user space finished, beside the program's."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.observe.unwind.user_stacks import Trace
from purebpf.unwind.reason import Reason

__all__ = ["StackNumbers", "as_completed"]

_FIRST = 1 << 62
"""FINISHED_BIT of bpf_src/include/stacks.h: programs give no such numbers to user stacks."""


class StackNumbers:
    """Gives each stack one number.

    Attributes:
        traces: the stacks by number.
    """

    def __init__(self) -> None:
        self.traces: dict[int, Trace] = {}
        self._numbers: dict[Trace, int] = {}

    def number(self, trace: Trace) -> int:
        """The number of a stack. One that user space finished is the one that BPF completes."""
        trace = as_completed(trace)
        number = self._numbers.get(trace)
        if number is None:
            number = self._numbers[trace] = _FIRST + len(self._numbers)
            self.traces[number] = trace
        return number

    def same(self, stored: Mapping[int, Trace]) -> dict[int, int]:
        """The numbers of those that the program has stored, too, with its own for them."""
        numbers = self._numbers
        return {numbers[trace]: own for own, trace in stored.items() if trace in numbers}


def as_completed(trace: Trace) -> Trace:
    """A stack that user space finished as the program has it that completes it."""
    return trace._replace(reason=Reason.COMPLETE) if trace.reason == Reason.FINISHED else trace
