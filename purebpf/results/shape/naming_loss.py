"""The names and frames that naming left out, as losses."""

from __future__ import annotations

from purebpf.results.model.loss import Loss, count_cause
from purebpf.symbols.budget import Budget
from purebpf.symbols.longest_name import LONGEST_NAME

__all__ = ["with_naming"]


def with_naming(loss: Loss, budget: Budget) -> Loss:
    """Return the losses of a measurement, and of naming since the last call."""
    skipped, budget.skipped = budget.skipped, 0
    why = "; ".join(budget.exceeded)
    if budget.is_stopped:
        why = "naming was interrupted" + (f"; {why}" if why else "")
    causes = (
        count_cause("names_skipped", skipped, f"addresses were not looked up: {why}"),
        count_cause(
            "names_cut",
            budget.shortened,
            f"names have more than {LONGEST_NAME} characters, and were cut",
        ),
    )
    return loss._replace(causes=(*loss.causes, *causes))
