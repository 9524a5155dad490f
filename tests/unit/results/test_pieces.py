"""Items and separators, whatever a piece holds."""

from __future__ import annotations

import pytest

from purebpf.results.formats import chunked
from purebpf.results.formats.chunked import join


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 6, 7])
def test_pieces_are_what_one_join_would_be(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "_ITEMS", 3)
    items = [str(number) for number in range(count)]
    assert "".join(join(items, ",\n")) == ",\n".join(items)
