"""The words of the loss line for unwound stacks that end early."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.results.model.loss import Cause
from purebpf.unwind.reason import Reason

__all__ = ["cause"]

_ADVICE = {
    Reason.COPY_SHORT: "the copied part of the stack was too small: record larger copies",
    Reason.NO_UNWIND_INFO: "code without unwind information, or its file is not on this machine",
    Reason.TOO_DEEP: "the limit of frames was reached",
    Reason.COMPAT32: "32-bit code without tables: frame pointers may lead past callers",
    Reason.NO_REGISTERS: "there were no user registers",
    Reason.OVER_BUDGET: "reading the files would have taken too long",
    Reason.UNKNOWN_MAPPING: "the stack led to addresses outside the mapped files",
    Reason.NO_CALLER: "the return address was 0 where no rule says that a stack begins",
    Reason.RULE_UNSUPPORTED: "rules of the files that cannot be followed there",
}


def cause(ends: Mapping[int, int]) -> Cause:
    """The stacks that end early, as a loss.

    Args:
        ends: how many stacks ended for each `purebpf.unwind.reason.Reason`.
    """
    cut = {Reason(r): number for r, number in ends.items() if not Reason(r).is_whole}
    ranked = sorted(cut.items(), key=lambda item: -item[1])
    reasons = ", ".join(f"{reason.name.lower()}={number}" for reason, number in ranked)
    total = sum(cut.values())
    advice = f" {_ADVICE[ranked[0][0]]}" if ranked and ranked[0][0] in _ADVICE else ""
    what = f"{total} user stacks end early ({reasons}):{advice}"
    return Cause("stacks_cut", total, what)
