"""Answers as profiles, for every format of purebpf. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache

from purebpf.results import Labels, Profile
from purebpf.results.model.loss import Cause, Loss
from purebpf.services.fleet.answers import FramePlace, Weighted
from purebpf.services.fleet.coverage import Coverage
from purebpf.services.fleet.selection import Selection
from purebpf.symbols.frame import Address, FileOffset, Frame, Reason, Unknown

__all__ = ["describe", "profile_of"]

_WHAT = {"cpu": "CPU time", "offcpu": "time blocked", "runqueue": "time in the run queue"}
_KINDS = frozenset({"user", "kernel", "python", "inlined", "jit"})


def profile_of(selection: Selection, stacks: Iterable[Weighted], coverage: Coverage) -> Profile:
    """Stacks of services as a profile, in nanoseconds; a service is where a process would be."""
    loss = Loss(
        coverage.expected,
        coverage.seen,
        # what hosts miss between windows is not lost here
        max(0, coverage.expected - coverage.seen),
        (
            *(Cause(cause, count, f"{cause}: {count} samples") for cause, count in coverage.lost),
            Cause(
                "windows_missing",
                max(0, coverage.expected_windows - coverage.windows),
                "windows that hosts should have sent in this range, and did not",
            ),
        ),
    )
    made = Profile(describe(selection, coverage), unit="ns", loss=loss)
    entry = cache(_entry)
    for service, frames, value in stacks:
        split = 0
        while split < len(frames) and frames[split].kind == "kernel":
            split += 1
        kernel, user = (tuple(map(entry, part)) for part in (frames[:split], frames[split:]))
        made.add(user, kernel, value, Labels(service or "[no service]"))
    return made


def describe(selection: Selection, coverage: Coverage) -> str:
    """Describe an answer in a sentence."""
    start, end = (
        f"{datetime.fromtimestamp(us / 1e6, UTC):%Y-%m-%d %H:%M}"
        for us in (selection.since_us, selection.until_us)
    )
    of = "".join(f", {name} {value}" for name, value in selection.where)
    hosts = f"{coverage.hosts} host{'s' if coverage.hosts != 1 else ''}"
    return f"{_WHAT[selection.kind]} of {hosts}{of}, {start} to {end} UTC"


def _entry(place: FramePlace) -> Frame | Unknown:
    kind = place.kind if place.kind in _KINDS else "user"
    if place.function:
        return Frame(place.function, 0, place.module, Address(0), kind)
    offset = FileOffset(place.file_offset)
    return Unknown(
        Reason.STRIPPED, place.module, Address(place.file_offset), kind, "", place.build_id, offset
    )
