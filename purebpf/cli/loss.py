"""The loss line: what the numbers do not include, zero included."""

from __future__ import annotations

from purebpf.report import Profile

__all__ = ["paragraphs"]

_REASONS = 4


def paragraphs(profile: Profile) -> list[str]:
    """The loss line, then one paragraph for each loss that happened.

    The line is `loss: expected=490 seen=490 map_full=0 ... unknown=1.5%`: words and numbers that
    a script can split. `expected=?` where nobody can know.
    """
    loss = profile.loss
    unnamed = profile.unnamed()
    expected = "?" if loss.expected is None else str(loss.expected)
    words = [f"expected={expected}", f"seen={loss.seen}"]
    words += [f"{cause.name}={cause.lost}" for cause in loss.causes]
    words.append(f"unknown={unnamed.percent:.1f}%")
    found = ["loss: " + " ".join(words)]
    if loss.missed > loss.tolerance:
        found.append(
            f"  missed: {loss.missed} of {expected} {profile.unit} never came. A hypervisor had "
            "stopped the CPU, or it was inside another BPF program or bpf(2) call"
        )
    found += [f"  {cause.name}: {cause.what}" for cause in loss.causes if cause.lost]
    if unnamed.unknown:
        found.append("  unknown: " + _reasons(unnamed.frames, unnamed.reasons))
    return found


def _reasons(frames: int, reasons: tuple[tuple[str, str, int], ...]) -> str:
    """The heaviest reasons, in percent of all frames."""
    parts = []
    for why, where, weight in reasons[:_REASONS]:
        module = where.rpartition("/")[2] or where
        parts.append(f"{100 * weight / frames:.1f}% {why}" + (f" [{module}]" if module else ""))
    if len(reasons) > _REASONS:
        rest = sum(weight for _, _, weight in reasons[_REASONS:])
        parts.append(f"{100 * rest / frames:.1f}% for {len(reasons) - _REASONS} other reasons")
    return "; ".join(parts)
