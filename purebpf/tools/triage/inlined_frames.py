"""Rows of Go programs with the functions that the compiler inlined."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator

from purebpf.observe.runtimes.golang.goroutines_now import inlined_functions
from purebpf.observe.runtimes.golang.inlined_frames import expanded, return_addresses
from purebpf.results.model.profile import Row

__all__ = ["with_inlined"]


def with_inlined(rows: Iterable[Row], pids: Container[int]) -> Iterator[Row]:
    """Yield rows, those of the Go programs among them with their inlined functions."""
    rows = list(rows)
    addresses: dict[int, set[int]] = defaultdict(set)
    for row in rows:
        if row.labels.pid in pids:
            addresses[row.labels.pid].update(return_addresses(row.user or ()))
    names = {pid: inlined_functions(pid, wanted) for pid, wanted in addresses.items()}
    for row in rows:
        inlined = names.get(row.labels.pid)
        yield row._replace(user=tuple(expanded(row.user or (), inlined))) if inlined else row
