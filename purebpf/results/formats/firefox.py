"""Firefox Profiler's processed format, version 47, which every later version upgrades.

https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md

A track for each thread, or for each process where threads were counted together. A sample is
at the begin of its slot; without a time line they follow one another, a millisecond each, and only
the weights mean something.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import repeat
from json import JSONEncoder
from typing import Any

from purebpf.results.formats.chunked import join
from purebpf.results.model.profile import Labels, Profile, Row
from purebpf.results.shape import sorted_paths
from purebpf.results.shape.functions import Function, Functions, at_line

__all__ = ["document"]

_VERSION = 47
_CATEGORIES = {
    "user": "yellow",
    "kernel": "orange",
    "python": "green",
    "jit": "blue",
    "inlined": "lightblue",
    "unknown": "grey",
    "cut": "grey",
}
_NUMBER = {name: number for number, name in enumerate(_CATEGORIES)}
_WEIGHTS = {"ns": ("tracing-ms", 1e-6), "bytes": ("bytes", 1)}
_LIBRARY = 1  # the type of a resource

_Sample = tuple[bytes, Row]
_encode = JSONEncoder(separators=(",", ":")).encode


def document(profile: Profile) -> Iterator[str]:
    """The pieces of the file.

    The heaviest thread is the first. A thread's stacks are a tree of as many nodes as there are
    frames in different places, which is most of the file: its columns are written a piece at a
    time.
    """
    functions = Functions(at_line)
    threads: dict[Labels, list[_Sample]] = {}
    for row in profile.rows():
        whose = Labels(*row.labels[:3])  # not where, nor in which cgroup and state
        path = sorted_paths.sortable(functions.path(row))
        threads.setdefault(whose, []).append((path, row))
    table = functions.table
    yield f'{{"meta":{_encode(_meta(profile))},"libs":[],"threads":['
    separator = ""
    for whose, samples in sorted(threads.items(), key=_weight, reverse=True):
        yield separator
        yield from _thread(profile, table, whose, samples)
        separator = ","
    yield "]}\n"


def _weight(thread: tuple[Labels, list[_Sample]]) -> int:
    return sum(row.weight for _, row in thread[1])


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
    profile: Profile, functions: Sequence[Function], labels: Labels, rows: list[_Sample]
) -> Iterator[str]:
    comm, pid, tid, *_ = labels
    tree = _Tree(rows)
    weight_type, factor = _WEIGHTS.get(profile.unit, ("samples", 1))
    samples = sorted(
        (time_ms, stack, weight * factor)
        for (_, row), stack in zip(rows, tree.leaves, strict=True)
        for time_ms, weight in _times(row, profile.slot_ns)
    )
    about = {
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
        **_tables([functions[number] for number in tree.functions]),
    }
    yield _encode(about)[:-1] + ","
    yield from tree.table([_NUMBER.get(functions[function].kind, 0) for function in tree.functions])
    yield "}"


def _times(row: Row, slot_ns: int) -> Iterator[tuple[float, int]]:
    """When, in milliseconds, and how much."""
    if not row.slots:
        yield 0.0, row.weight
    for slot, weight in row.slots:
        yield slot * slot_ns / 1e6, weight


class _Tree:
    """The stacks of one thread: each node its parent's number and a frame's.

    Attributes:
        functions: of each frame.
        leaves: the node of each row, -1 for an empty stack; it sorts the rows.
    """

    def __init__(self, rows: list[_Sample]) -> None:
        rows.sort(key=_path)
        self.functions: dict[int, int] = {}
        self.leaves = array("i")
        self._parents, self._frames = array("i"), array("I")
        frames, parents, number = self.functions, self._parents, self.functions.setdefault
        last, open_ = b"", [-1]
        for path, _ in rows:
            keep = sorted_paths.shared(last, path)
            del open_[keep + 1 :]
            for function in sorted_paths.numbers(path[keep * sorted_paths.WORD :]):
                parents.append(open_[-1])
                open_.append(len(parents) - 1)
                self._frames.append(number(function, len(frames)))
            self.leaves.append(open_[-1])
            last = path

    def table(self, categories: Sequence[int]) -> Iterator[str]:
        """The table of the stacks, given the category of each frame."""
        count = len(self._frames)
        yield f'"stackTable":{{"length":{count},"prefix":['
        yield from join(("null" if parent < 0 else str(parent) for parent in self._parents), ",")
        yield '],"frame":['
        yield from join(map(str, self._frames), ",")
        yield '],"category":['
        yield from join((str(categories[frame]) for frame in self._frames), ",")
        yield '],"subcategory":['
        yield from join(repeat("0", count), ",")
        yield "]}"


def _path(sample: _Sample) -> bytes:
    return sample[0]


def _tables(frames: Sequence[Function]) -> dict[str, Any]:
    """Frames, their functions and modules, as columns."""
    categories = [_NUMBER.get(frame.kind, 0) for frame in frames]
    used: dict[Function, int] = {}
    numbers = [used.setdefault(frame._replace(line=0), len(used)) for frame in frames]
    strings: dict[str, int] = {}
    resources: dict[str, int] = {}
    names = [strings.setdefault(frame.name, len(strings)) for frame in used]
    files = [strings.setdefault(frame.file, len(strings)) if frame.file else None for frame in used]
    modules = [
        resources.setdefault(frame.module, len(resources)) if frame.module else -1 for frame in used
    ]
    count = len(frames)
    zeros, nulls = [0] * count, [None] * count
    return {
        "frameTable": {
            "length": count,
            "func": numbers,
            "category": categories,
            "subcategory": zeros,
            "address": [-1] * count,
            "inlineDepth": zeros,
            "innerWindowID": zeros,
            "line": [frame.line or None for frame in frames],
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
            "name": [strings.setdefault(resource, len(strings)) for resource in resources],
            "type": [_LIBRARY] * len(resources),
            **dict.fromkeys(("lib", "host"), [None] * len(resources)),
        },
        "nativeSymbols": {
            **{name: [] for name in ("address", "functionSize", "libIndex", "name")},
            "length": 0,
        },
        "stringArray": list(strings),
    }
