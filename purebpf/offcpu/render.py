"""Waits in the layout that was asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.offcpu.options import Options
from purebpf.report import Profile, formats
from purebpf.report.spans import summed

__all__ = ["ONE_BY_ONE", "render"]

ONE_BY_ONE = frozenset({"json", "chrome", "perf.data"})
"""Formats that date each long wait; in the others equal ones are added up."""


def render(profile: Profile, options: Options, format_name: str) -> Iterable[str | bytes]:
    """The pieces of one output, without the title."""
    if format_name not in ONE_BY_ONE:
        profile = summed(profile)
    style = formats.Style(options.delimited, offsets=options.offsets)
    return formats.write(profile, format_name, style)
