"""Stacks of Go programs with the functions that the compiler inlined."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping

from purebpf.observe.runtimes.golang.goroutines_now import inlined_functions
from purebpf.results.model.profile import Row
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["expanded", "with_inlined"]


def with_inlined(rows: Iterable[Row], pids: Container[int]) -> Iterator[Row]:
    """Yield rows, those of the Go programs among them with their inlined functions."""
    rows = list(rows)
    addresses: dict[int, set[int]] = defaultdict(set)
    for row in rows:
        if row.labels.pid in pids:
            addresses[row.labels.pid].update(_return_addresses(row.user or ()))
    names = {pid: inlined_functions(pid, wanted) for pid, wanted in addresses.items()}
    for row in rows:
        inlined = names.get(row.labels.pid)
        yield row._replace(user=tuple(expanded(row.user or (), inlined))) if inlined else row


def expanded(
    stack: Iterable[Frame | Unknown], inlined: Mapping[int, Iterable[str]]
) -> Iterator[Frame | Unknown]:
    """Yield the frames of a stack, and before each one the functions that are inlined in it.

    Args:
        stack: the innermost frame first.
        inlined: names by return address, the innermost first.
    """
    for frame, address in zip(stack, _return_addresses(stack), strict=True):
        for name in inlined.get(address, ()):
            yield Frame(name, 0, frame.module, frame.address, "inlined")
        yield frame


def _return_addresses(stack: Iterable[Frame | Unknown]) -> list[int]:
    """The address behind each instruction; the innermost one is not over yet."""
    return [frame.address + (not at) for at, frame in enumerate(stack)]
