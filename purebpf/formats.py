"""The formats of saved profiles: `--format`, its help, file names and completion follow.

`python scripts/generate_options.py` writes them into docs/formats.md.
"""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["FORMATS", "Format", "of_path"]


class Format(NamedTuple):
    """A format of saved profiles.

    Attributes:
        writer: `room.module:function` of `purebpf.results`.
        suffixes: of the names of its files.
        opens_in: a cell of the table in docs/formats.md, in Markdown: the programs that show it.
        is_timed: it has a place for the time of a sample.
        is_binary: a terminal cannot show it.
    """

    writer: str
    suffixes: tuple[str, ...]
    opens_in: str
    is_timed: bool = False
    is_binary: bool = False


FORMATS = {
    "text": Format(
        "formats.text:blocks",
        (".txt",),
        "a terminal: functions and the ten heaviest stacks, all with `--all`; `--layout bcc`",
    ),
    "folded": Format(
        "formats.folded:lines", (".folded", ".collapsed"), "flamegraph.pl, speedscope, inferno"
    ),
    "json": Format(
        "formats.json:document",
        (".json",),
        "anything; use this format to save and convert",
        is_timed=True,
    ),
    "html": Format(
        "formats.html:page",
        (".html", ".htm"),
        "a browser, offline: [flamegraph.md](flamegraph.md)",
        is_timed=True,
    ),
    "pprof": Format(
        "formats.pprof:document",
        (".pb.gz", ".pprof"),
        "`go tool pprof`, Pyroscope, Parca, Grafana",
        is_binary=True,
    ),
    "speedscope": Format(
        "formats.speedscope:document",
        (".speedscope.json",),
        "<https://www.speedscope.app>, or its offline copy",
    ),
    "firefox": Format(
        "formats.firefox:document",
        (".firefox.json",),
        "<https://profiler.firefox.com>, profiler-cli",
        is_timed=True,
    ),
    "chrome": Format(
        "formats.chrome:document",
        (".trace.json",),
        "<https://ui.perfetto.dev>, chrome://tracing, speedscope: a time line",
        is_timed=True,
    ),
    "perf.data": Format(
        "formats.perf_data:document",
        (".data",),
        "`perf report`, `perf script`, hotspot, samply",
        is_timed=True,
        is_binary=True,
    ),
    "csv": Format(
        "shape.table:csv",
        (".csv",),
        "spreadsheets, DuckDB: functions with their own and total weight",
    ),
}


def of_path(path: str) -> str | None:
    """The format that a file's name asks for, or None; `.gz` behind it does not matter."""
    name = path.lower()
    matches = [
        (len(suffix), format_name)
        for format_name, output_format in FORMATS.items()
        for suffix in output_format.suffixes
        if name.endswith((suffix, f"{suffix}.gz"))
    ]
    return max(matches)[1] if matches else None
