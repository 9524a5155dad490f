"""Wake-ups by an interrupt: the thread that it interrupted is not the waker."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from purebpf.symbols.frame import Frame

if TYPE_CHECKING:
    from purebpf.results.build.stored_stacks import Stacks
    from purebpf.results.model.profile import Stack

__all__ = ["INTERRUPT", "Interrupts", "interrupt_part"]

INTERRUPT = "[interrupt]"
"""The name of what ended a wait, where that was not a thread."""

# arch/x86/include/asm/idtentry.h: DEFINE_IDTENTRY_SYSVEC and _IRQ; arch/arm64/kernel/entry.S
_ENTRY = re.compile(
    r"asm_(sysvec_\w+|common_interrupt|spurious_interrupt|exc_nmi|device_interrupt)$"
    r"|el[01][ht]?_(64_)?(irq|fiq)$|el[01]t_32_(irq|fiq)$|ret_to_\w+_irq$"
)
# kernel/entry/common.c: what a task does for itself on its way back from an interrupt
_WAY_BACK = re.compile(
    r"(raw_)?irqentry_exit|(raw_)?exit_to_user_mode|(arm64_)?preempt_schedule_irq|prepare_exit_to"
)


def interrupt_part(kernel: Stack | None) -> Stack | None:
    """The frames of a kernel stack, leaf first, up to the entry of an interrupt; None without one.

    A softirq at the end of an interrupt is part of it. A softirq that a thread runs, as when it
    sends to its own machine, is not: that thread did the work. By name, as `without_switch`.
    """
    on_way_back = False
    for depth, entry in enumerate(kernel or (), 1):
        if not isinstance(entry, Frame):
            continue
        if _WAY_BACK.match(entry.name):
            on_way_back = True
        elif _ENTRY.match(entry.name):
            if not on_way_back:
                return kernel[:depth] if kernel else None
            on_way_back = False
    return None


class Interrupts:
    """The kernel stacks of interrupts, by number.

    Interrupts with the same frames share a number, whichever thread each of them stopped.
    """

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks
        self._numbers: dict[int, int] = {}
        self._first: dict[Stack, int] = {}

    def number(self, kernel: int) -> int | None:
        """The number of the first stack with the same interrupt; None: there is none."""
        if kernel not in self._numbers:
            part = interrupt_part(self._stacks.kernel(kernel))
            self._numbers[kernel] = 0 if part is None else self._first.setdefault(part, kernel)
        return self._numbers[kernel] or None
