"""A profile in the layout that was asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.cli.destination import Destination, encoded
from purebpf.profile.options import Options
from purebpf.report import Profile, formats

__all__ = ["render"]


def render(profile: Profile, options: Options, destination: Destination) -> Iterable[str | bytes]:
    """The pieces of one output. On standard output, the title of a text is there already."""
    style = formats.Style(options.delimited, options.annotations, options.addresses)
    pieces = formats.write(profile, destination.format, style)
    if destination.format == "text":
        title = "" if destination.path is None else f"{profile.title}\n"
        pieces = [f"{title}\n", *pieces]
    return encoded(destination, pieces)
