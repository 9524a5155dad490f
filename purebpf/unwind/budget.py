"""A bound for the work on bytes that other users wrote."""

from __future__ import annotations

__all__ = ["Budget", "OverBudgetError"]


class OverBudgetError(Exception):
    """The work takes more steps than any real file needs."""


class Budget:
    """Steps left. A step is a byte of instructions to interpret, an entry or a row: about 1 us."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Take steps from the remaining budget.

        Raises:
            OverBudgetError: there are not as many left. Those taken do not come back.
        """
        self.left -= steps
        if self.left < 0:
            raise OverBudgetError
