"""The loss line: what the numbers do not include, zero included."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from purebpf.cli import command
from purebpf.results import Loss, Profile
from purebpf.results.model.spelling import printable

__all__ = ["of_loss", "of_table", "paragraphs", "tell"]

_REASONS = 4


def paragraphs(profile: Profile) -> list[str]:
    """The loss line of a profile, then one paragraph for each loss that happened, and hints."""
    unnamed = profile.unnamed()
    words = f"unnamed={unnamed.function_percent:.1f}%", f"unknown={unnamed.percent:.1f}%"
    texts = of_loss(profile.loss, profile.unit, *words)
    if unnamed.unknown:
        texts.append("  unknown: " + _reasons(unnamed.frames, unnamed.reasons))
    return texts + [f"  hint: {hint}" for hint in profile.hints]


def of_loss(loss: Loss, unit: str, *more: str) -> list[str]:
    """The loss line, then one paragraph for each loss that happened.

    The line is `loss: expected=490 seen=490 map_full=0 ... unknown=1.5%`: words and numbers that
    a script can split. `expected=?` if it is unknown. `unit` is what is lost, `more` are
    further words.
    """
    expected = "?" if loss.expected is None else str(loss.expected)
    words = [f"expected={expected}", f"seen={loss.seen}"]
    words += [f"{cause.name}={cause.lost}" for cause in loss.causes]
    texts = ["loss: " + " ".join((*words, *more))]
    if loss.missed > loss.tolerance:
        texts.append(
            f"  missed: {loss.missed} of {expected} {unit} never arrived. A hypervisor stopped "
            "the CPU, or it was inside another BPF program or bpf(2) call"
        )
    return texts + [f"  {cause.name}: {cause.what}" for cause in loss.causes if cause.lost]


def of_table(loss: Loss, subject: Collection[str]) -> list[str]:
    """The loss line of what was counted, not sampled, then one paragraph for each loss.

    Of the causes that belong to the `subject`, the number says all.
    """
    line = "loss: " + " ".join(f"{cause.name}={cause.lost}" for cause in loss.causes)
    lost = (cause for cause in loss.causes if cause.lost and cause.name not in subject)
    return [line, *(f"  {cause.name}: {cause.what}" for cause in lost)]


def tell(paragraphs: Sequence[str]) -> None:
    """Print the loss line as it is, for scripts, and the rest wrapped, for people."""
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
