"""A profile in the layout that was asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.profile.options import Options
from purebpf.report import Profile, formats

__all__ = ["render"]


def render(profile: Profile, options: Options, format_name: str) -> Iterable[str | bytes]:
    """The pieces of one output, without the title."""
    style = formats.Style(options.delimited, options.annotations, options.addresses)
    return formats.write(profile, format_name, style)
