"""A profile in the layout that was asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.profile.options import Options
from purebpf.results import Profile
from purebpf.results.formats import registry

__all__ = ["render"]


def render(profile: Profile, options: Options, format_name: str) -> Iterable[str | bytes]:
    """The pieces of one output, without the title."""
    style = registry.Style(options.delimited, options.annotations, options.addresses)
    return registry.write(profile, format_name, style)
