"""A profile as text, in the layout that was asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.offcpu.options import Options
from purebpf.report import Profile

__all__ = ["render"]

_US = 1000
"""Nanoseconds in what bcc's layouts count."""


def render(profile: Profile, options: Options) -> Iterable[str | bytes]:
    """The pieces of the output, without the title."""
    if options.format == "json":
        from purebpf.report import json

        return [json.document(profile)]
    if options.format == "folded":
        from purebpf.report import folded

        return folded.lines(profile, delimiter=options.delimited, scale=_US)
    if options.format != "text":
        from purebpf.report import formats

        return formats.write(profile, options.format)
    from purebpf.report import text

    blocks = text.blocks(profile, delimiter=options.delimited, offsets=options.offsets, scale=_US)
    return ["\n", *blocks]
