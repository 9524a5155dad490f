"""A line of CSV."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.results.model.spelling import printable

__all__ = ["csv_line"]


def csv_line(cells: Iterable[object]) -> str:
    """Return cells as a line; texts have `?` for characters that would move a terminal's cursor
    or break a line.
    """
    import csv  # which text and --help need not pay
    import io

    line = io.StringIO()
    shown = (printable(cell) if isinstance(cell, str) else cell for cell in cells)
    csv.writer(line, lineterminator="\n").writerow(shown)
    return line.getvalue()
