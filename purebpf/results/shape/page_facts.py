"""What the page says about a run: the most important in one line, and the rest as a list."""

from __future__ import annotations

from typing import Any

from purebpf.results.model.profile import Profile
from purebpf.results.model.spelling import printable

__all__ = ["describe", "rate"]

_WORDS = {
    "event_asked": "event asked for",
    "event_why_not": "why not that event",
    "frequency_hz": "samples a second on each CPU",
    "period": "events a sample",
    "elapsed_s": "seconds measured",
    "cpus": "CPUs",
    "kernel_build_id": "build id of the kernel",
    "counted": "counted in the kernel",
    "idle": "samples of the idle task",
    "filtered": "outside the target",
    "outside_namespace": "outside this pid namespace",
    "stacks_displaced": "stacks kept in another slot",
    "switches": "context switches seen",
    "direct": "waits too long for the table, sent at once",
    "unsampled_ns": "nanoseconds on a CPU without a sample",
    "other_events": "events not shown",
}
_CLOCKS = ("started_s", "started_ns", "ended_ns")  # a date, and readings of CLOCK_MONOTONIC


def describe(profile: Profile) -> dict[str, Any]:
    """The facts of `Profile.about` for page/header.js.

    `brief` are the parts of the line on top, `rows` pairs of name and value, both text; `started_s`
    is seconds since 1970, or None. Counters that are 0 are left out.
    """
    about = profile.about
    started_s = about.get("started_s")
    rows = [
        [_WORDS.get(name, name.replace("_", " ")), printable(_text(value))]
        for name, value in about.items()
        if name not in _CLOCKS and value not in (0, "", [], ())
    ]
    return {
        "brief": list(map(printable, _brief(profile))),
        "rows": rows,
        "started_s": started_s if isinstance(started_s, int | float) else None,
    }


def rate(profile: Profile) -> dict[str, int]:
    """`frequency_hz`, samples a second of a busy CPU, and `cpus`; {} where there is no rate."""
    frequency, cpus = profile.about.get("frequency_hz"), profile.about.get("cpus")
    if not isinstance(frequency, int) or profile.unit != "samples":
        return {}
    return {"frequency_hz": frequency, "cpus": len(cpus) if isinstance(cpus, list) else 0}


def _brief(profile: Profile) -> list[str]:
    about = profile.about
    facts = []
    if isinstance(elapsed := about.get("elapsed_s"), int | float):
        facts.append(f"{elapsed:.1f} s")
    if isinstance(rate := about.get("frequency_hz"), int):
        facts.append(f"{rate} Hz")
    if host := about.get("host"):
        facts.append(str(host))
    if profile.unit == "ns":
        facts.append(f"{profile.total / 1e9:,.1f} s of thread time")
    else:
        facts.append(f"{profile.total:,} {profile.unit}")
    return facts


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
