"""Waits in the chosen layout. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.cli import places
from purebpf.cli.destination import ResultOptions, wants_answer
from purebpf.results import Profile
from purebpf.results.build.offcpu_rows import sum_waits
from purebpf.results.formats import writer
from purebpf.tools.offcpu.options import ONE_BY_ONE

__all__ = ["render"]


def render(profile: Profile, options: ResultOptions, format_name: str) -> Iterable[str | bytes]:
    """The pieces of one output, without the title."""
    if format_name not in ONE_BY_ONE:
        profile = sum_waits(profile)
    has_waker = any(row.marks.waker for row in profile.rows())
    details = options.delimited or options.offsets or has_waker
    if wants_answer(options, format_name, details=details):
        return places.pieces(
            profile, top=options.top, everything=options.all_stacks, whole_names=options.verbose
        )
    style = writer.Style(options.delimited, offsets=options.offsets)
    return writer.write(profile, format_name, style)
