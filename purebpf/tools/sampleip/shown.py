"""The output of samples: as bytes at once, or as lines below a table of functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from purebpf.cli.event_lines import fit_line
from purebpf.closable import Closing
from purebpf.tools.sampleip.functions import FunctionCounts
from purebpf.tools.sampleip.held_lines import HeldLines
from purebpf.tools.sampleip.render import (
    COUNT_HEADER,
    SAMPLE_HEADER,
    count_lines,
    dump,
    sample_line,
)

if TYPE_CHECKING:
    from purebpf.cli.output import Output
    from purebpf.symbols.frame import Frame, Unknown
    from purebpf.tools.sampleip.request import SampleIpOptions
    from purebpf.tools.sampleip.session import Sample

__all__ = ["shown"]

_Rows = Iterable[tuple[int, int, int, "Frame | Unknown"]]


def shown(output: Output, options: SampleIpOptions) -> Dumped | Listed:
    """Return the printer of samples that the options choose."""
    return Dumped(output) if options.hex else Listed(output, options)


class Dumped(Closing):
    """The bytes of each sample, as they come."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def show(self, samples: list[Sample]) -> None:
        """Write samples."""
        self._output.write(dump(event, data) for event, data, _ in samples)

    def end(self, rows: _Rows) -> None:
        """Nothing: programs read this output."""

    def close(self) -> None:
        """Nothing is held."""


class Listed(Closing):
    """A table of functions, then the samples, or the addresses with their counts.

    A run without a defined end prints samples as they come, and the table at the end.
    """

    def __init__(self, output: Output, options: SampleIpOptions) -> None:
        self._output = output
        self._counting = options.counting
        self._columns = None if options.verbose else output.columns
        self._functions = FunctionCounts()
        is_bounded = options.duration_s is not None or bool(options.command)
        self._held = HeldLines() if is_bounded and not options.counting else None
        if not self._held and not options.counting:
            self._write([SAMPLE_HEADER])

    def show(self, samples: list[Sample]) -> None:
        """Count samples, and write them now or later."""
        for sample in samples:
            self._functions.add(sample.where)
        lines = (sample_line(event, where) for event, _, where in samples)
        if self._held:
            self._held.add(lines)
        elif samples:
            self._write(lines)

    def end(self, rows: _Rows) -> None:
        """Write the table, and then the lines that waited for it."""
        counted = tuple(rows)
        for _, _, count, where in counted:
            self._functions.add(where, count)
        self._write(self._functions.lines())
        if self._counting:
            self._write([COUNT_HEADER, *count_lines(counted)])
        elif self._held:
            self._write([SAMPLE_HEADER])
            self._write(self._held.lines())

    def close(self) -> None:
        """Release its resources; again is harmless."""
        if self._held:
            self._held.close()

    def _write(self, lines: Iterable[str]) -> None:
        self._output.write(fit_line(line, self._columns) for line in lines)
