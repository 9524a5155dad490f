"""The page's facts about a run: the most important in one line, and the rest as a list."""

from __future__ import annotations

from typing import Any

from purebpf.results.model.profile import Profile
from purebpf.results.model.spelling import printable
from purebpf.results.model.units import bytes_in_unit

__all__ = ["brief_of_both", "describe", "rate", "title"]

_ENDLESS = "... Hit Ctrl-C to end."
_CPU_EVENTS = ("cpu-clock", "cpu-cycles", "cycles", "task-clock")

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
    "copies": "user stacks copied, to be walked to their end",
    "finished": "of these, walked to their end",
    "copies_lost": "copies that found no room",
    "python_stacks": "stacks with Python functions",
    "python_frames": "Python functions in them",
    "python_merged": "different Python stacks joined with native ones",
    "python_inexact": "of these, joined by their order alone",
    "without_gil": "samples of threads without the GIL",
    "unfreed": "allocations not freed",
    "freed": "allocations freed",
    "growths": "calls of mmap, mremap or brk",
}
_CLOCKS = ("started_s", "started_ns", "ended_ns")  # a date, and readings of CLOCK_MONOTONIC


_TITLES = {"Tracing off-CPU time": "off-CPU", "Tracing the wall clock": "wall clock"}
"""The beginnings of the titles of profiles of waits (`request.title`)."""


def title(profile: Profile) -> str:
    """`gunicorn (28461) - CPU - 6 s`, `... - off-CPU - 6 s`; the title of another profile."""
    about = profile.about
    elapsed_s, command = about.get("elapsed_s"), about.get("command")
    subject = _subject(profile)
    if not subject or not isinstance(elapsed_s, int | float):
        return profile.title.removesuffix(_ENDLESS)
    owners = {(row.labels.process_name, row.labels.pid) for row in profile.rows()}
    names = {name for name, _ in owners}
    if isinstance(command, list | tuple) and command:
        who = str(command[0]).rpartition("/")[2]
    elif len(names) == 1:
        pids = [pid for _, pid in owners]
        who = f"{names.pop()} ({pids[0] if len(pids) == 1 else f'{len(pids)} PIDs'})"
    else:
        who = f"{len(owners)} processes" if owners else "no process"
    return printable(f"{who} - {subject} - {elapsed_s:.3g} s")


def _subject(profile: Profile) -> str:
    """Return the kind of time in a profile; "" if it is none of threads and CPUs."""
    for start, subject in _TITLES.items():
        if profile.title.startswith(start):
            return subject
    return "CPU" if profile.about.get("event") in _CPU_EVENTS else ""


def describe(profile: Profile) -> dict[str, Any]:
    """The facts of `Profile.about` for page/header.js.

    `brief` are the parts of the line on top, `rows` pairs of name and value, both text; `started_s`
    is seconds since 1970, or None. Counters of 0 are omitted.
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


def brief_of_both(before: Profile, after: Profile) -> list[str]:
    """Return the line on top of a comparison: the differences, from the one to the other."""
    both = (list(map(printable, _brief(profile))) for profile in (before, after))
    earlier, later = both
    if len(earlier) != len(later):
        return [f"before: {', '.join(earlier)}", f"after: {', '.join(later)}"]
    return [
        was if was == now else f"{was} → {now}" for was, now in zip(earlier, later, strict=True)
    ]


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
    elif profile.unit == "bytes":
        facts.append(bytes_in_unit(profile.total))
    else:
        facts.append(f"{profile.total:,} {profile.unit}")
    return facts


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
