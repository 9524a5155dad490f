"""Sentences about functions whose calls cannot be timed, or not to their ends. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from purebpf.results.model.spelling import count_text, printable

__all__ = ["describe_limits"]

_SHOWN = 3


def describe_limits(untimed: Mapping[str, str], away: Sequence[str]) -> tuple[str, ...]:
    """One sentence for each function that is only counted, and one for those that jump away.

    Args:
        untimed: functions without known ends of their calls, and why.
        away: functions that may end with a jump to code of another file.
    """
    sentences = [
        f"{printable(name)}: its calls are counted, not timed: where they end is not known, as "
        f"{problem}."
        for name, problem in list(untimed.items())[:_SHOWN]
    ]
    if (more := len(untimed) - _SHOWN) > 0:
        sentences.append(count_text(more, "more functions are counted, not timed."))
    if away:
        names = ", ".join(map(printable, away[:_SHOWN]))
        others = f" and {len(away) - _SHOWN} more" if len(away) > _SHOWN else ""
        sentences.append(
            f"{names}{others}: calls may end with a jump to another file (a tail call): they are "
            "timed until then."
        )
    return tuple(sentences)
