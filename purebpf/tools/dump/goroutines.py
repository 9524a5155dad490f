"""The goroutines of a Go program that wait: its threads are idle meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from purebpf.observe.runtimes.golang.goroutines_now import (
    find_goroutines,
    inlined_functions,
    read_goroutines,
)
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.symbols.frame import Frame
from purebpf.tools.dump.model import DumpedFrame, DumpedGoroutines

__all__ = ["dump_goroutines"]

_MOST, _MOST_STACKS = 10_000, 200
"""Goroutines that are read, 0.3 s, and stacks that are named."""


def dump_goroutines(pid: int) -> tuple[DumpedGoroutines, ...]:
    """Return the goroutines of a process that wait, by stack; () where there are none."""
    listed = find_goroutines(pid)
    if listed is None:
        return ()
    found, weight = read_goroutines(pid, listed, _MOST)
    counts = Counter(one.addresses for one in found)
    commonest = counts.most_common(_MOST_STACKS)
    inlined = inlined_functions(pid, {address for stack, _ in commonest for address in stack})
    names = Symbolizer()
    return tuple(
        DumpedGoroutines(round(weight * count), tuple(_frames(names, pid, addresses, inlined)))
        for addresses, count in commonest
    )


def _frames(
    names: Symbolizer, pid: int, addresses: tuple[int, ...], inlined: Mapping[int, Iterable[str]]
) -> Iterator[DumpedFrame]:
    """Yield the functions of a stack, and before each one those that are inlined in it."""
    for address, entry in zip(addresses, names.user_stack(pid, addresses), strict=False):
        for name in inlined.get(address, ()):
            yield DumpedFrame("inlined", name, entry.module)
        name = entry.name if isinstance(entry, Frame) else f"{address:#x}"
        yield DumpedFrame("user", name, entry.module)
