"""The formats by name: which file name means which, and who writes it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import NamedTuple

from purebpf.results.model.profile import Profile
from purebpf.results.model.spelling import printable

__all__ = ["FORMATS", "Format", "Style", "compress", "heading", "of_path", "write"]

_GZIP = 31
"""What zlib calls the window of a gzip member; its time is 0."""


class Format(NamedTuple):
    """A format of saved profiles.

    Attributes:
        writer: `room.module:function` of `purebpf.results`.
        suffixes: of the names of its files.
        what: its description, for people.
        is_timed: it has a place for the time of a sample.
        is_binary: a terminal cannot show it.
    """

    writer: str
    suffixes: tuple[str, ...]
    what: str
    is_timed: bool = False
    is_binary: bool = False


FORMATS = {
    "text": Format("formats.text:blocks", (".txt",), "one block for each stack"),
    "folded": Format("formats.folded:lines", (".folded", ".collapsed"), "one line for each stack"),
    "json": Format(
        "formats.json:document",
        (".json",),
        "everything; save in this form to convert later",
        is_timed=True,
    ),
    "html": Format(
        "formats.html:page", (".html", ".htm"), "a flame graph that works offline", is_timed=True
    ),
    "pprof": Format(
        "formats.pprof:document",
        (".pb.gz", ".pprof"),
        "go tool pprof, Pyroscope, Parca",
        is_binary=True,
    ),
    "speedscope": Format("formats.speedscope:document", (".speedscope.json",), "speedscope.app"),
    "firefox": Format(
        "formats.firefox:document", (".firefox.json",), "profiler.firefox.com", is_timed=True
    ),
    "chrome": Format(
        "formats.chrome:document",
        (".trace.json",),
        "Perfetto: a time line for each thread",
        is_timed=True,
    ),
    "perf.data": Format(
        "formats.perf_data:document",
        (".data",),
        "perf report, hotspot, samply",
        is_timed=True,
        is_binary=True,
    ),
    "csv": Format("shape.table:csv", (".csv",), "functions with their own and total weight"),
}


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


def of_path(path: str) -> str | None:
    """The format that a file's name asks for, or None; `.gz` behind it does not matter."""
    name = path.lower()
    matches = [
        (len(suffix), format_name)
        for format_name, known in FORMATS.items()
        for suffix in known.suffixes
        if name.endswith((suffix, f"{suffix}.gz"))
    ]
    return max(matches)[1] if matches else None


def write(profile: Profile, format_name: str, style: Style = _PLAIN) -> Iterable[str | bytes]:
    """The pieces of the file, in order.

    Args:
        profile: the profile to write.
        format_name: a key of `FORMATS`.
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
