"""Firefox Profiler's processed format, version 47, which every later version upgrades.

https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md

A track for each thread, or for each process where threads were counted together. A sample stands
at the begin of its slot; without a time line they follow one another, a millisecond each, and only
the weights mean something.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from json import JSONEncoder
from typing import Any

from purebpf.report.functions import Function, Functions, at_line
from purebpf.report.profile import Labels, Profile, Row

__all__ = ["document"]

_VERSION = 47
_CATEGORIES = {
    "user": "yellow",
    "kernel": "orange",
    "python": "green",
    "jit": "blue",
    "inlined": "lightblue",
    "unknown": "grey",
}
_NUMBER = {name: number for number, name in enumerate(_CATEGORIES)}
_WEIGHTS = {"ns": ("tracing-ms", 1e-6), "bytes": ("bytes", 1)}
_LIBRARY = 1  # the type of a resource


def document(profile: Profile) -> str:
    """The whole file."""
    functions = Functions(at_line)
    threads: dict[Labels, list[tuple[Row, list[int]]]] = {}
    for row in reversed(profile.rows()):
        whose = Labels(*row.labels[:3])  # not where, nor in which cgroup and state
        threads.setdefault(whose, []).append((row, functions.path(row)))
    table = functions.table
    tree = {
        "meta": _meta(profile),
        "libs": [],
        "threads": [_thread(profile, table, whose, samples) for whose, samples in threads.items()],
    }
    return JSONEncoder(separators=(",", ":")).encode(tree) + "\n"


def _meta(profile: Profile) -> dict[str, Any]:
    started_s = profile.about.get("started_s", 0)
    return {
        "interval": profile.slot_ns / 1e6 or 1,
        "startTime": 1000 * started_s if isinstance(started_s, int | float) else 0,
        "processType": 0,
        "product": "purebpf",
        "arguments": profile.title,
        "stackwalk": 1,
        "debug": False,
        "version": 27,
        "preprocessedProfileVersion": _VERSION,
        "symbolicated": True,
        "usesOnlyOneStackType": True,
        "doesNotUseFrameImplementation": True,
        "sourceCodeIsNotOnSearchfox": True,
        "categories": [
            {"name": name, "color": color, "subcategories": ["Other"]}
            for name, color in _CATEGORIES.items()
        ],
        "extensions": {"baseURL": [], "id": [], "name": [], "length": 0},
        "markerSchema": [],
    }


def _thread(
    profile: Profile,
    functions: Sequence[Function],
    labels: Labels,
    rows: Sequence[tuple[Row, list[int]]],
) -> dict[str, Any]:
    comm, pid, tid, *_ = labels
    tables = _Tables(functions)
    weight_type, factor = _WEIGHTS.get(profile.unit, ("samples", 1))
    samples = sorted(
        (time_ms, stack, weight * factor)
        for row, path in rows
        for stack in [tables.stack(path)]
        for time_ms, weight in _times(row, profile.slot_ns)
    )
    return {
        "name": comm,
        "processName": comm,
        "processType": "default",
        "isMainThread": tid in {0, pid},
        "pid": str(pid),
        "tid": tid or pid,
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "samples": {
            "length": len(samples),
            "stack": [stack if stack >= 0 else None for _, stack, _ in samples],
            "time": [time if profile.slot_ns else at for at, (time, *_) in enumerate(samples)],
            "weight": [weight for *_, weight in samples],
            "weightType": weight_type,
        },
        "markers": {
            **{name: [] for name in ("category", "data", "endTime", "name", "phase", "startTime")},
            "length": 0,
        },
        **tables.tables(),
    }


def _times(row: Row, slot_ns: int) -> Iterator[tuple[float, int]]:
    """When, in milliseconds, and how much."""
    if not row.slots:
        yield 0.0, row.weight
    for slot, weight in row.slots:
        yield slot * slot_ns / 1e6, weight


class _Tables:
    """The tables of one thread: its stacks as a tree, its frames, functions and modules."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self._functions = functions
        self._stacks: dict[tuple[int, int], int] = {}
        self._frames: dict[int, int] = {}

    def stack(self, path: Sequence[int]) -> int:
        """The number of a path, -1 for the empty one."""
        at, stacks, frames = -1, self._stacks, self._frames
        for number in path:
            frame = frames.setdefault(number, len(frames))
            at = stacks.setdefault((at, frame), len(stacks))
        return at

    def tables(self) -> dict[str, Any]:
        """All of them, as columns."""
        frames = [self._functions[number] for number in self._frames]
        categories = [_NUMBER.get(each.kind, 0) for each in frames]
        used: dict[Function, int] = {}
        numbers = [used.setdefault(each._replace(line=0), len(used)) for each in frames]
        strings: dict[str, int] = {}
        resources: dict[str, int] = {}
        names = [strings.setdefault(each.name, len(strings)) for each in used]
        files = [
            strings.setdefault(each.file, len(strings)) if each.file else None for each in used
        ]
        modules = [
            resources.setdefault(each.module, len(resources)) if each.module else -1
            for each in used
        ]
        count = len(frames)
        zeros, nulls = [0] * count, [None] * count
        return {
            "stackTable": {
                "length": len(self._stacks),
                "prefix": [prefix if prefix >= 0 else None for prefix, _ in self._stacks],
                "frame": [frame for _, frame in self._stacks],
                "category": [categories[frame] for _, frame in self._stacks],
                "subcategory": [0] * len(self._stacks),
            },
            "frameTable": {
                "length": count,
                "func": numbers,
                "category": categories,
                "subcategory": zeros,
                "address": [-1] * count,
                "inlineDepth": zeros,
                "innerWindowID": zeros,
                "line": [each.line or None for each in frames],
                **dict.fromkeys(("nativeSymbol", "implementation", "column"), nulls),
            },
            "funcTable": {
                "length": len(used),
                "name": names,
                "resource": modules,
                "isJS": [False] * len(used),
                "relevantForJS": [False] * len(used),
                "fileName": files,
                **dict.fromkeys(("lineNumber", "columnNumber"), [None] * len(used)),
            },
            "resourceTable": {
                "length": len(resources),
                "name": [strings.setdefault(each, len(strings)) for each in resources],
                "type": [_LIBRARY] * len(resources),
                **dict.fromkeys(("lib", "host"), [None] * len(resources)),
            },
            "nativeSymbols": {
                **{name: [] for name in ("address", "functionSize", "libIndex", "name")},
                "length": 0,
            },
            "stringArray": list(strings),
        }
