"""Lines of CSV with names that other users chose."""

from __future__ import annotations

import csv

from purebpf.results.model.csv_line import csv_line


def test_a_name_cannot_move_the_cursor_or_begin_a_line() -> None:
    line = csv_line(["a\nb\x1b[2J", 7, 1.5, 'x",=\u2028'])
    assert line == 'a?b?[2J,7,1.5,"x"",=?"\n'
    assert next(csv.reader([line])) == ["a?b?[2J", "7", "1.5", 'x",=?']
