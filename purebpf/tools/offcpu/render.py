"""Waits in the chosen layout. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from purebpf.cli import places
from purebpf.cli.destination import ResultOptions, wants_answer
from purebpf.findings.places import WORK
from purebpf.results import Profile
from purebpf.results.build.offcpu_rows import sum_waits
from purebpf.results.formats import writer
from purebpf.tools.offcpu.options import ONE_BY_ONE

__all__ = ["render", "waits_for_disks"]

_DISKS, _MUCH = frozenset({"disk", "fsync", "dirty-pages"}), 0.1
"""Waits for disks, and the part of the waits at work from which it matters who uses them."""


def waits_for_disks(profile: Profile) -> bool:
    """Return True if much of the time that threads wait at work is for disks."""
    working = [place for place in places.places_of(profile.rows()) if place.use == WORK]
    seconds = sum(place.seconds for place in working if place.kind in _DISKS)
    return seconds > _MUCH * sum(place.seconds for place in working)


def render(
    profile: Profile, options: ResultOptions, format_name: str, *, notes: Sequence[str] = ()
) -> Iterable[str | bytes]:
    """The pieces of one output, without the title; `notes` are lines above the places."""
    if format_name not in ONE_BY_ONE:
        profile = sum_waits(profile)
    if wants_answer(options, format_name, details=options.delimited or options.offsets):
        text = places.pieces(
            profile, top=options.top, everything=options.all_stacks, whole_names=options.verbose
        )
        return chain((f"{note}\n" for note in notes), text)
    if format_name in places.TELL_IDLE:
        profile = places.mark_idle(profile)
    style = writer.Style(options.delimited, offsets=options.offsets)
    return writer.write(profile, format_name, style)
