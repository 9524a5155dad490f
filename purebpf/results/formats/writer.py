"""Writes profiles in the formats of `purebpf.formats`."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from importlib import import_module

from purebpf.formats import FORMATS
from purebpf.results.model.profile import Profile
from purebpf.results.model.spelling import printable
from purebpf.tuples import NamedTuple

__all__ = ["Style", "compress", "heading", "write"]

_GZIP = 31
"""What zlib calls the window of a gzip member; its time is 0."""


class Style(NamedTuple):
    """The layout of formats for people; see `text.blocks` and `folded.lines`."""

    delimiter: bool = False
    annotations: bool = False
    addresses: bool = False
    offsets: bool = True
    by_thread: bool = False


_STYLES = {
    "text": ("delimiter", "addresses", "offsets"),
    "folded": ("delimiter", "annotations", "by_thread"),
}
_PLAIN = Style()
_SHOWN = {"ns": ("us", 1000)}
"""What the formats for people count instead of a unit, as bcc's do, and how many of it that has."""


def write(profile: Profile, format_name: str, style: Style = _PLAIN) -> Iterable[str | bytes]:
    """The pieces of the file, in order.

    Args:
        profile: the profile to write.
        format_name: a key of `purebpf.formats.FORMATS`.
        style: how text and folded lines look. Both count microseconds where the unit is ns.
    """
    module, _, function = FORMATS[format_name].writer.partition(":")
    writer = getattr(import_module(f"purebpf.results.{module}"), function)
    wanted = {name: getattr(style, name) for name in _STYLES.get(format_name, ())}
    if wanted:
        _, wanted["scale"] = _displayed_unit(profile.unit)
    written: str | bytes | Iterable[str] = writer(profile, **wanted)
    return (written,) if isinstance(written, str | bytes) else written


def heading(profile: Profile) -> str:
    """Return the heading of a text: the title, and the unit unless it is samples."""
    unit, _ = _displayed_unit(profile.unit)
    title = printable(profile.title)
    says_it = unit == "samples" or f"({unit})" in title
    return f"{title}\n" if says_it else f"{title} ({printable(unit)})\n"


def _displayed_unit(unit: str) -> tuple[str, int]:
    return _SHOWN.get(unit, (unit, 1))


def compress(pieces: Iterable[str | bytes]) -> Iterator[bytes]:
    """The pieces as one gzip member, the same for the same pieces; a piece at a time."""
    packer = zlib.compressobj(6, wbits=_GZIP)
    for piece in pieces:
        whole = piece.encode("utf-8", "backslashreplace") if isinstance(piece, str) else piece
        if packed := packer.compress(whole):
            yield packed
    yield packer.flush()
