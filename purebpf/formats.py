"""The formats of saved profiles: `--format`, its help, file names and completion follow."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["FORMATS", "Format", "of_path"]


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
