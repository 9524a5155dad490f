"""Waits in the layout that was asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.offcpu.options import Options
from purebpf.results import Profile
from purebpf.results.build.offcpu_rows import summed
from purebpf.results.formats import registry

__all__ = ["ONE_BY_ONE", "render"]

ONE_BY_ONE = frozenset({"json", "chrome", "perf.data"})
"""Formats that date each long wait; in the others equal ones are added up."""


def render(profile: Profile, options: Options, format_name: str) -> Iterable[str | bytes]:
    """The pieces of one output, without the title."""
    if format_name not in ONE_BY_ONE:
        profile = summed(profile)
    style = registry.Style(options.delimited, offsets=options.offsets)
    return registry.write(profile, format_name, style)
