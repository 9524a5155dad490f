"""How user stacks ended: a frame at the root of those that are cut, and what the loss line says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from purebpf.results.model.loss import Cause
from purebpf.symbols.frame import Address, Frame
from purebpf.unwind.reason import Reason

__all__ = ["cause", "describe", "end_of", "summarize"]

_MARKS = {
    Reason.NO_UNWIND_INFO: "[no unwind info]",
    Reason.UNKNOWN_MAPPING: "[unknown mapping]",
    Reason.RULE_UNSUPPORTED: "[rule]",
    Reason.READ_FAULT: "[unreadable]",
    Reason.TOO_DEEP: "[too deep]",
}
_CUT = "[cut]"

_ADVICE = {
    Reason.COPY_SHORT: "the copied part of the stack was too small: record larger copies",
    Reason.NO_UNWIND_INFO: "code without unwind information, or its file is not on this machine",
    Reason.TOO_DEEP: "the limit of frames was reached",
    Reason.COMPAT32: "32-bit programs are not unwound from copies",
    Reason.NO_REGISTERS: "there were no user registers",
    Reason.OVER_BUDGET: "reading the files would have taken too long",
    Reason.UNKNOWN_MAPPING: "the stack led to addresses outside the mapped files",
    Reason.RULE_UNSUPPORTED: "rules of the files that cannot be followed there",
}


def end_of(reason: int) -> tuple[Frame, ...]:
    """What is put at the root of a stack, so that a cut one never looks whole; () for a whole one.

    Args:
        reason: a `purebpf.unwind.reason.Reason`.
    """
    known = Reason(reason)
    if known.is_whole:
        return ()
    return (Frame(_MARKS.get(known, _CUT), 0, "", Address(0), "user"),)


def summarize(ends: Mapping[int, int], guessed: int) -> dict[str, object]:
    """Facts about the stacks of a profile.

    Args:
        ends: how many stacks ended for each reason.
        guessed: how many of them have frames that are guesses.
    """
    whole = sum(number for reason, number in ends.items() if Reason(reason).is_whole)
    cut = {Reason(r).name.lower(): number for r, number in ends.items() if not Reason(r).is_whole}
    return {"whole": whole, "guessed": guessed, "cut": cut}


def describe(facts: Mapping[str, Any]) -> str:
    """One line about what `summarize` found; "" for no stacks."""
    whole, guessed, cut = facts["whole"], facts["guessed"], sum(facts["cut"].values())
    total = whole + cut
    if not total:
        return ""
    words = [f"{100 * whole / total:.1f}% whole"]
    if guessed:
        words.append(f"{100 * guessed / total:.1f}% with guessed frames")
    if cut:
        words.append(f"{100 * cut / total:.1f}% cut")
    return f"user stacks: {', '.join(words)}"


def cause(ends: Mapping[int, int]) -> Cause:
    """The stacks that end early, as a loss."""
    cut = {Reason(r): number for r, number in ends.items() if not Reason(r).is_whole}
    ranked = sorted(cut.items(), key=lambda item: -item[1])
    reasons = ", ".join(f"{reason.name.lower()}={number}" for reason, number in ranked)
    total = sum(cut.values())
    advice = f" {_ADVICE[ranked[0][0]]}" if ranked and ranked[0][0] in _ADVICE else ""
    what = f"{total} user stacks end early ({reasons}):{advice}"
    return Cause("stacks_cut", total, what)
