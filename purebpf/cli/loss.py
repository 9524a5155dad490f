"""The last lines of a command: the samples missing in its numbers, in words or as counters.

In words by default: zeros and notes are not listed. `--verbose` has one line with every counter,
`loss: expected=490 seen=490 map_full=0 ...`, for scripts and for reports of bugs; JSON has the same
numbers under `loss`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.results.model.spelling import count_text, printable

if TYPE_CHECKING:
    from purebpf.results import Loss, Profile
    from purebpf.results.model.profile import Unnamed

__all__ = [
    "explain_loss",
    "explain_profile",
    "explain_table",
    "of_loss",
    "of_table",
    "paragraphs",
    "say_each",
    "words_of_loss",
    "words_of_profile",
]

_REASONS = 4
_WORST = 2
"""Reasons in words, of those that explain the frames without a name."""
_MODULES = 2
_NO_SYMBOL = "functions without a symbol (shown as FILE!0x1c340)"
_INDENT = "  "


def explain_profile(profile: Profile, *, verbose: bool) -> None:
    """Print the losses of a profile on standard error, with advice."""
    if verbose:
        from purebpf.cli.user_stacks import describe  # not for commands without stacks

        if line := describe(profile):
            command.say(line)
        _tell(paragraphs(profile))
    else:
        say_each(words_of_profile(profile))


def explain_loss(loss: Loss, unit: str, *more: str, verbose: bool) -> None:
    """Print the losses of a measurement without stacks; `more` are further counters."""
    if verbose:
        _tell(of_loss(loss, unit, *more))
    else:
        say_each(words_of_loss(loss, unit))


def explain_table(loss: Loss, *, verbose: bool) -> None:
    """Print the losses of counts, which are not sampled."""
    if verbose:
        _tell(of_table(loss))
    else:
        say_each(words_of_loss(loss, ""))


def say_each(lines: Sequence[str]) -> None:
    """Print each line, wrapped; its continuation is indented."""
    for line in lines:
        command.note(line, indent=_INDENT)


def words_of_profile(profile: Profile) -> list[str]:
    """Return `24 % of frames unnamed: ...`, advice about them, and `lost: nothing`."""
    from purebpf.cli.user_stacks import describe_in_words
    from purebpf.results.shape.stack_ends import describe_lost_callers

    return [
        *_unnamed(profile.unnamed()),
        *(f"  -> {hint}" for hint in profile.hints),
        *filter(None, [describe_in_words(profile)]),
        *_words_of_lost(
            [*_lost(profile.loss, profile.unit), *filter(None, [describe_lost_callers(profile)])]
        ),
    ]


def words_of_loss(loss: Loss, unit: str) -> list[str]:
    """Return `lost: nothing`, or the losses, a line each, with advice."""
    return _words_of_lost(_lost(loss, unit))


def _lost(loss: Loss, unit: str) -> list[str]:
    lost = [cause.what for cause in loss.causes if cause.lost and not cause.is_note]
    if loss.missed > loss.tolerance:
        lost.insert(0, _missed(loss, unit))
    return lost


def _words_of_lost(lost: Sequence[str]) -> list[str]:
    return [f"lost: {what}" for what in lost] or ["lost: nothing"]


def _missed(loss: Loss, unit: str) -> str:
    return (
        f"{loss.missed} of {loss.expected} {unit} never arrived. A hypervisor stopped the CPU, or "
        "it was inside another BPF program or bpf(2) call"
    )


def _unnamed(unnamed: Unnamed) -> list[str]:
    """The share of frames without a name, and why; the page has the same share."""
    percent = unnamed.percent + unnamed.function_percent
    if not percent:
        return []
    by_reason: Counter[str] = Counter()
    if unnamed.functions:
        by_reason[_NO_SYMBOL] = unnamed.functions
    modules: dict[str, list[str]] = {}
    for why, where, weight in unnamed.reasons:
        by_reason[why] += weight
        if where:
            modules.setdefault(why, []).append(printable(where.rpartition("/")[2] or where))
    ranked = by_reason.most_common()
    reasons = [_reason(why, modules.get(why, ())) for why, _ in ranked[:_WORST]]
    if len(ranked) > _WORST:
        reasons.append(f"{count_text(len(ranked) - _WORST, 'other reasons')} (-v)")
    return [f"{_share(percent)} of frames unnamed: {'; '.join(reasons)}"]


def _reason(why: str, modules: Sequence[str]) -> str:
    if not modules:
        return why
    more = f" and {len(modules) - _MODULES} more" if len(modules) > _MODULES else ""
    return f"{why} [{', '.join(modules[:_MODULES])}{more}]"


def _share(percent: float) -> str:
    return f"{percent:.0f} %" if percent >= 1 else f"{max(percent, 0.1):.1f} %"


def paragraphs(profile: Profile) -> list[str]:
    """Every counter of a profile, then one paragraph for each loss that happened, and hints."""
    unnamed = profile.unnamed()
    words = f"unnamed={unnamed.function_percent:.1f}%", f"unknown={unnamed.percent:.1f}%"
    lines = of_loss(profile.loss, profile.unit, *words)
    if unnamed.unknown:
        lines.append("  unknown: " + _reasons(unnamed.frames, unnamed.reasons))
    return lines + [f"  hint: {hint}" for hint in profile.hints]


def of_loss(loss: Loss, unit: str, *more: str) -> list[str]:
    """Every counter, then one paragraph for each loss that happened.

    The line is `loss: expected=490 seen=490 map_full=0 ... unknown=1.5%`: words and numbers that a
    script can split. `expected=?` if it is unknown. `unit` is the unit of losses, `more` are
    further words.
    """
    expected = "?" if loss.expected is None else str(loss.expected)
    words = [f"expected={expected}", f"seen={loss.seen}"]
    words += [f"{cause.name}={cause.lost}" for cause in loss.causes]
    lines = ["loss: " + " ".join((*words, *more))]
    if loss.missed > loss.tolerance:
        lines.append(f"  missed: {_missed(loss, unit)}")
    return lines + [f"  {cause.name}: {cause.what}" for cause in loss.causes if cause.lost]


def of_table(loss: Loss) -> list[str]:
    """Every counter of a count (not of samples), then one paragraph for each loss.

    Of notes, the number says all.
    """
    line = "loss: " + " ".join(f"{cause.name}={cause.lost}" for cause in loss.causes)
    lost = (cause for cause in loss.causes if cause.lost and not cause.is_note)
    return [line, *(f"  {cause.name}: {cause.what}" for cause in lost)]


def _tell(paragraphs: Sequence[str]) -> None:
    """Print the counters unwrapped, for scripts, and the rest wrapped, for people."""
    line, *details = paragraphs
    command.say(line)
    for detail in details:
        command.note(detail, indent="    ")


def _reasons(frames: int, reasons: tuple[tuple[str, str, int], ...]) -> str:
    """The heaviest reasons, in percent of all frames."""
    parts = []
    for why, where, weight in reasons[:_REASONS]:
        module = printable(where.rpartition("/")[2] or where)
        parts.append(f"{100 * weight / frames:.1f}% {why}" + (f" [{module}]" if module else ""))
    if len(reasons) > _REASONS:
        rest = sum(weight for _, _, weight in reasons[_REASONS:])
        parts.append(f"{100 * rest / frames:.1f}% for {len(reasons) - _REASONS} other reasons")
    return "; ".join(parts)
