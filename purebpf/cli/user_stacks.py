"""The terminal's lines about user stacks: how many are whole, and how they were walked."""

from __future__ import annotations

from purebpf.results import Profile
from purebpf.results.shape.stack_ends import spell_percent, stack_ends

__all__ = ["describe", "describe_in_words"]

_WAYS = {
    "tables": "by unwind tables",
    "deep": "by unwind tables, deep ones from copies",
    "copy": "by unwinding copies",
    "fp": "by frame pointers",
    "recorded": "as the file has them",
}


def describe(profile: Profile) -> str:
    """One line; "" where there are no user stacks.

    `stacks: complete=98.7% finished=0.9% guessed=0.3% cut=0.1% (read_fault=3) copies=412 lost=0 by
    unwind tables`: shares of the weight; of each reason for a cut, the samples, or the share where
    time is measured; stacks that were copied and finished outside of BPF, or should have been.
    """
    about, ends = profile.about, stack_ends(profile)
    if ends is None:
        return ""
    total = ends.total or 1
    parts = {"complete": ends.whole, "guessed": ends.guessed, "cut": ends.cut}
    if profile.unit == "samples" and isinstance(finished := about.get("finished"), int):
        parts["complete"] = max(0, ends.whole - finished)
        parts = {"complete": parts.pop("complete"), "finished": finished} | parts
    words = [f"{name}={100 * part / total:.1f}%" for name, part in parts.items()]
    if ends.cuts:
        is_count = profile.unit == "samples"
        reasons = [
            f"{name}={weight}" if is_count else f"{name}={100 * weight / total:.1f}%"
            for name, weight in ends.cuts
        ]
        words.append(f"({' '.join(reasons)})")
    if "copies" in about:
        words += [f"copies={about['copies']}", f"lost={about['copies_lost']}"]
    words.append(_WAYS[str(about["call_graph"])])
    why = about.get("call_graph_why")
    return "stacks: " + " ".join(words) + (f", as tables are not possible: {why}" if why else "")


def describe_in_words(profile: Profile) -> str:
    """`user stacks: 98 % whole, 2 % cut`; "" where there are none."""
    ends = stack_ends(profile)
    if ends is None or not ends.total:
        return ""
    shares = [
        f"{spell_percent(part, ends.total)} % {name}"
        for name, part in (
            ("whole", ends.whole),
            ("guessed in part", ends.guessed),
            ("cut", ends.cut),
        )
        if part > 0 or name == "whole"
    ]
    why = profile.about.get("call_graph_why")
    way = _WAYS.get(str(profile.about.get("call_graph")), "")
    return f"user stacks: {', '.join(shares)}" + (f"; walked {way}, as {why}" if why else "")
