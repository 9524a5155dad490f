"""The calls to time, for a command line or a program."""

from __future__ import annotations

import re

from purebpf.measure.options import RunOptions, TargetOptions
from purebpf.tuples import NamedTuple

__all__ = ["GROUPINGS", "Grouping", "LatencyOptions", "parse_grouping"]

GROUPINGS = ("", "process", "thread", "comm", "cpu", "cgroup", "ret", "arg")
"""enum grouping of bpf_src/latency/rows.h."""

_WORD = re.compile(r"(ret|arg(?:[1-9]|1[0-2]))(:int|:uint)?")
MOST_ARGUMENTS = 6
"""Of functions that are in registers; static probes have 12."""


class Grouping(NamedTuple):
    """The key that splits the rows of a function.

    Attributes:
        kind: one of GROUPINGS.
        argument: which, from 1 on, where `kind` is "arg".
        bits: of a result or argument, 32 or 64.
        signed: whether it may be below zero.
    """

    kind: str = ""
    argument: int = 0
    bits: int = 64
    signed: bool = True


def parse_grouping(text: str) -> Grouping:
    """`process`, `ret`, `ret:int`, `arg2:uint`; "" for functions alone.

    A word without a type has 64 bits and a sign; `:int` and `:uint` are C's.

    Raises:
        ValueError: it is none of them.
    """
    if text in GROUPINGS[:-2]:
        return Grouping(text)
    word = _WORD.fullmatch(text)
    if word is None:
        groupings = (*GROUPINGS[1:-1], "ret:int", "arg1 to arg6", "arg1:uint")
        raise ValueError(f"unknown grouping {text!r} (known: {', '.join(groupings)})")
    kind, number = word[1][:3], int(word[1][3:] or "0")
    return Grouping(kind, number, 32 if word[2] else 64, word[2] != ":uint")


class LatencyOptions(TargetOptions, RunOptions):
    """The target, and which of its calls. Empty tuples and None mean: no restriction.

    Attributes:
        functions: of the kernel, `vfs_read`; of files, `libc.so.6:malloc`,
            `./server:ns::Class::run`; patterns with `*` and `?` of either.
        pairs: events that begin and end a call, `sched:a,sched:b`, or static probes,
            `FILE:PROVIDER:a,FILE:PROVIDER:b`; functions and pairs exclude each other.
        by: as `parse_grouping` takes it.
        only_count: count calls, and do not time them.
        time: also add up the time of calls by the path of traced calls around them.
        unit_ns: of the histograms.
        linear: units of each bucket; 0: four buckets to each power of two.
        slower_ms: calls that took so long are separate events; None: no call is.
        stacks: those have the stacks of their callers.
        call_graph: how user stacks are walked: one of
            `purebpf.observe.instruments.call_graph.CHOICES`.
        interval_s: rows of each such time are events as well.
        rows: that there is room for.
        duration_s: None: until a signal, or until `command` or all of `pids` end.
        tree: the children of `pids` also count.
    """

    functions: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    by: str = ""
    only_count: bool = False
    time: bool = False
    unit_ns: int = 1000
    linear: int = 0
    slower_ms: float | None = None
    stacks: bool = False
    call_graph: str = "auto"
    interval_s: float | None = None
    rows: int = 1024
