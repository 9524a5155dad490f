"""The addresses to look for, and the output."""

from __future__ import annotations

from purebpf.measure.options import RunOptions, TargetOptions
from purebpf.tuples import NamedTuple

__all__ = ["FREQUENCY", "MAP_ENTRIES", "RING_PAGES", "SampleIpOptions", "Symbol", "title"]

FREQUENCY = 999
MAP_ENTRIES = 8192
RING_PAGES = 64


class Symbol(NamedTuple):
    """A function, or with an `offset` in bytes one instruction of it."""

    name: str
    offset: int | None = None


class SampleIpOptions(TargetOptions, RunOptions):
    """A frozen request. Without `ranges` (start and end, which is outside), `symbols` and
    `modules`, every address. `program`: FILE or FILE:NAME of a BPF program that sees each sample in
    them, and may drop it.
    """

    ranges: tuple[tuple[int, int], ...] = ()
    symbols: tuple[Symbol, ...] = ()
    modules: tuple[str, ...] = ()
    counting: bool = False
    hex: bool = False
    frequency: int = FREQUENCY
    period: int | None = None
    map_entries: int = MAP_ENTRIES
    ring_pages: int = RING_PAGES
    output: str | None = None
    program: str | None = None
    strict: bool = False
    verbose: bool = False


def title(options: SampleIpOptions) -> str:
    """Return the sentence that describes the sampling."""
    names = [f"{start:#x}-{end:#x}" for start, end in options.ranges]
    names += [
        symbol.name if symbol.offset is None else f"{symbol.name}+{symbol.offset:#x}"
        for symbol in options.symbols
    ]
    names += options.modules
    verb = "Counting" if options.counting else "Showing"
    rate = f"every {options.period}" if options.period else f"at {options.frequency} Hertz"
    return f"{verb} sampled addresses in {', '.join(names) or 'everything'}, {rate}"
