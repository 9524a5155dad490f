"""The goroutines of a Go program that wait: its threads are idle meanwhile."""

from __future__ import annotations

from collections import Counter

from purebpf.observe.runtimes.golang.goroutines_now import find_goroutines, read_goroutines
from purebpf.observe.runtimes.golang.inlined_frames import name_stacks
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.symbols.frame import Frame, Unknown
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
    named = name_stacks(Symbolizer(), pid, [addresses for addresses, _ in commonest])
    return tuple(
        DumpedGoroutines(round(weight * count), tuple(map(_dumped, stack)))
        for stack, (_, count) in zip(named, commonest, strict=True)
    )


def _dumped(frame: Frame | Unknown) -> DumpedFrame:
    kind = "inlined" if frame.kind == "inlined" else "user"
    name = frame.name if isinstance(frame, Frame) else f"{frame.address:#x}"
    return DumpedFrame(kind, name, frame.module)
