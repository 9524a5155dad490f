"""A profile as the page wants it: tables as JSON, and the stacks as arrays, deflated.

The paths of all rows, from process to leaf, are sorted; each row says how many frames it shares
with the one before it and which follow. That is the tree of all stacks in depth-first order, and
the page needs no look-ups to build it. page/model.js reads it.
"""

from __future__ import annotations

import zlib
from array import array
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from sys import byteorder
from typing import Any

from purebpf.errors import NotSupportedError
from purebpf.results.model.profile import Labels, Profile, Row, Waker
from purebpf.results.model.spelling import printable
from purebpf.results.shape import page_facts, sorted_paths
from purebpf.results.shape.alike_threads import Thread, group_threads
from purebpf.results.shape.chance import least_deviates
from purebpf.results.shape.functions import Function, Functions, function
from purebpf.results.shape.matching import Matching
from purebpf.results.shape.stack_ends import describe_lost_callers, stack_ends
from purebpf.symbols.frame import Frame, Unknown
from purebpf.symbols.short_names import shorten
from purebpf.tuples import NamedTuple

__all__ = ["Packed", "head", "pack"]

_KINDS = (
    "user",
    "kernel",
    "inlined",
    "jit",
    "python",
    "unknown",
    "process",
    "thread",
    "divider",
    "cut",
)
_COMPILED = ("user", "inlined")
_REASONS = 5
_NARROW = 0xFFFF  # functions with numbers that fit in 16 bits
_DEEPEST = 0xFFFF  # frames of a path, its process included: page/model.js has 16 bits for them
_LEVEL = 6
_OF_BOTH = {"total", "loss", "hints", "stacks"}  # what a comparison says of the earlier one, too


class Packed(NamedTuple):
    """`head` is JSON for the page, `data` base64 of the arrays whose sizes are in
    `head["counts"]`.
    """

    head: dict[str, Any]
    data: str


class _Entry:
    """The weight of one path for one set of labels."""

    __slots__ = ("before", "slots", "weight")

    def __init__(self) -> None:
        self.weight = 0
        self.before = 0
        self.slots: dict[int, int] = {}


def pack(profile: Profile, before: Profile | None = None) -> Packed:
    """Pack a profile, and with `before` the one to compare it with.

    Raises:
        NotSupportedError: a stack has more than 65,534 frames.
    """
    matching = Matching() if before is not None else None
    functions = Functions(matching or function)
    labels: dict[_Whose, int] = {}
    # Waiting is what a thread does; CPU time is its process's. Thread ids cannot be compared.
    has_threads = profile.unit == "ns" and before is None
    earlier = _rows(before, functions, labels, has_threads=False) if before is not None else []
    rows = _rows(profile, functions, labels, has_threads=has_threads)
    table, numbers = _sort_functions(functions.table)
    entries: dict[tuple[bytes, int], _Entry] = {}
    for path, label, weight, slots in _merging(rows, numbers):
        entry = entries.setdefault((path, label), _Entry())
        entry.weight += weight
        for slot, part in slots:
            entry.slots[slot] = entry.slots.get(slot, 0) + part
    for path, label, weight, _ in _merging(earlier, numbers):
        entries.setdefault((path, label), _Entry()).before += weight
    ordered = sorted(entries.items(), key=_key)
    header = head(profile)
    header["compare"] = before is not None
    if before is not None:
        header["earlier"] = {
            name: value for name, value in head(before).items() if name in _OF_BOTH
        }
        header["deviates"] = least_deviates(len(table)) if profile.unit == "samples" else 0
        header["facts"]["brief"] = page_facts.brief_of_both(before, profile)
    header["labels"] = [_encode_owner(label) for label in labels]
    header |= _tables([matching.shown.get(name, name) for name in table] if matching else table)
    header["functions"] |= _sources(profile, matching or function, table)
    data, header["counts"] = _arrays(ordered, len(table), compare=before is not None)
    return Packed(header, b64encode(zlib.compress(data, _LEVEL)).decode())


def head(profile: Profile) -> dict[str, Any]:
    """Return the page's facts about the profile as a whole."""
    loss, unnamed = profile.loss, profile.unnamed()
    whole = unnamed.frames or 1
    return {
        "title": printable(page_facts.title(profile)),
        "unit": profile.unit,
        "total": profile.total,
        "slot_ns": profile.slot_ns,
        **page_facts.rate(profile),
        "facts": page_facts.describe(profile),
        "hints": profile.hints,
        "stacks": _describe_stacks(profile),
        "loss": {
            "expected": loss.expected,
            "seen": loss.seen,
            "missed": loss.missed,
            "tolerance": loss.tolerance,
            "causes": [cause._asdict() for cause in loss.causes],
            "unknown": {
                "percent": unnamed.percent,
                "unnamed_percent": unnamed.function_percent,
                "reasons": [
                    {"reason": why, "module": where, "percent": 100 * weight / whole}
                    for why, where, weight in unnamed.reasons[:_REASONS]
                ],
            },
        },
    }


def _describe_stacks(profile: Profile) -> dict[str, Any] | None:
    """Describe how many user stacks are whole, and why the others are not."""
    ends = stack_ends(profile)
    if ends is None or not ends.total:
        return None
    return {
        "whole_percent": 100 * ends.whole / ends.total,
        "guessed_percent": 100 * ends.guessed / ends.total,
        "lost": describe_lost_callers(profile),
        "cuts": [
            {"reason": name.replace("_", " "), "percent": 100 * weight / ends.total}
            for name, weight in ends.cuts[:_REASONS]
        ],
    }


class _Whose(NamedTuple):
    """The filters of the page: labels, the kind of time where a profile has several, and whether it
    is a wait for something to do.
    """

    labels: Labels
    time: str
    is_idle: bool


def _whose(row: Row) -> _Whose:
    return _Whose(row.labels, row.marks.kind, row.marks.is_idle)


def _encode_owner(whose: _Whose) -> dict[str, Any]:
    owner = {**whose.labels._asdict(), "time": whose.time}
    if whose.is_idle:
        owner["idle"] = 1
    return {
        name: printable(value) if isinstance(value, str) else value for name, value in owner.items()
    }


_Row = tuple["array[int]", int, int, Sequence[tuple[int, int]]]


def _rows(
    profile: Profile, functions: Functions, labels: dict[_Whose, int], *, has_threads: bool
) -> list[_Row]:
    """Path, label, weight and slots of each row; functions are still numbered as they came."""
    rows: list[_Row] = []
    alike = _alike_threads(profile, functions) if has_threads else {}
    for row in profile.rows():
        path = array("I", [functions.process(row.labels.process_name)])
        if has_threads and row.labels.tid:
            name, count = alike[row.labels.pid, row.labels.tid]
            path.append(
                functions.threads(name, count)
                if count > 1
                else functions.thread(name, row.labels.tid)
            )
        path.extend(functions.path(row))
        if row.marks.waker:
            path.extend(_above(row, row.marks.waker, functions))
        if len(path) > _DEEPEST:
            raise NotSupportedError(
                f"a page with a stack of {len(path) - 1} frames",
                f"it holds up to {_DEEPEST - 1}: use --format json or folded",
            )
        whose = _whose(row)
        rows.append((path, labels.setdefault(whose, len(labels)), row.weight, row.slots))
    return rows


def _alike_threads(profile: Profile, functions: Functions) -> dict[Thread, tuple[str, int]]:
    """Return the group of each thread: workers of a pool are one column."""
    rows = [row for row in profile.rows() if row.labels.tid]
    names = {(row.labels.pid, row.labels.tid): row.labels.comm for row in rows}
    stacks = (((row.labels.pid, row.labels.tid), functions.path(row)) for row in rows if row.user)
    return group_threads(names, stacks)


def _above(row: Row, waker: Waker, functions: Functions) -> list[int]:
    """Return the frames above a stack that another task woke: its stack, leaf first, and its
    name.
    """
    path = functions.path(row._replace(user=waker.user, kernel=waker.kernel))
    return [functions.divider(), *reversed(path), functions.process(waker.comm)]


def _sort_functions(table: Sequence[Function]) -> tuple[list[Function], list[int]]:
    """The functions by name, so that the page draws them so, and the new number of each."""
    order = sorted(range(len(table)), key=table.__getitem__)
    numbers = [0] * len(table)
    for number, old in enumerate(order):
        numbers[old] = number
    return [table[old] for old in order], numbers


def _merging(
    rows: Iterable[_Row], numbers: Sequence[int]
) -> Iterable[tuple[bytes, int, int, Sequence[tuple[int, int]]]]:
    """The rows with paths that sort."""
    for path, label, weight, slots in rows:
        yield sorted_paths.sortable(map(numbers.__getitem__, path)), label, weight, slots


def _key(item: tuple[tuple[bytes, int], _Entry]) -> tuple[bytes, int]:
    return item[0]


def _tables(table: Sequence[Function]) -> dict[str, Any]:
    """The functions by column; modules and reasons are repeated, so they have a table too."""
    texts = {"": 0}
    table = [
        function._replace(name=printable(function.name), module=printable(function.module))
        for function in table
    ]
    return {
        "kinds": _KINDS,
        "functions": {
            "name": [function.name for function in table],
            "module": [texts.setdefault(function.module, len(texts)) for function in table],
            "kind": [_KINDS.index(function.kind) for function in table],
            "short": _short_names(table),
            "why": [texts.setdefault(function.why, len(texts)) for function in table],
        },
        "texts": list(texts),
    }


def _short_names(table: Sequence[Function]) -> dict[int, str]:
    """Names as people say them, by number of the function, where they differ."""
    return {
        number: short
        for number, function in enumerate(table)
        if function.kind in _COMPILED and (short := shorten(function.name)) != function.name
    }


def _sources(
    profile: Profile, key: Callable[[Frame | Unknown], Function], table: Sequence[Function]
) -> dict[str, list[str]]:
    """`/src/shop.c:42` of each function, where it is hottest; {} without --lines."""
    places: dict[Function, Counter[tuple[str, int]]] = {}
    for row in profile.rows():
        for entry in (*(row.user or ()), *(row.kernel or ())):
            if isinstance(entry, Frame) and entry.file and entry.line:
                places.setdefault(key(entry), Counter())[entry.file, entry.line] += row.weight
    if not places:
        return {}
    hottest = {name: spots.most_common(1)[0][0] for name, spots in places.items()}
    return {
        "source": [
            printable("{}:{}".format(*hottest[name])) if name in hottest else "" for name in table
        ]
    }


def _arrays(
    entries: Sequence[tuple[tuple[bytes, int], _Entry]], functions: int, *, compare: bool
) -> tuple[bytes, dict[str, int]]:
    """The arrays one after the other, widest items first, and how many items there are."""
    weight, before, slot_weight = array("d"), array("d"), array("d")
    label, slot_row, slot = array("I"), array("I"), array("I")
    keep, more = array("H"), array("H")
    added: list[bytes] = []
    last = b""
    for row, ((path, whose), entry) in enumerate(entries):
        shared = sorted_paths.shared(last, path)
        keep.append(shared)
        more.append(len(path) // sorted_paths.WORD - shared)
        added.append(path[shared * sorted_paths.WORD :])
        label.append(whose)
        weight.append(entry.weight)
        if compare:
            before.append(entry.before)
        for number, part in sorted(entry.slots.items()):
            slot_row.append(row)
            slot.append(number)
            slot_weight.append(part)
        last = path
    wide = sorted_paths.numbers(b"".join(added))
    frames = wide if functions > _NARROW else array("H", wide)
    parts: tuple[array[Any], ...] = (
        *(weight, before, slot_weight, label, slot_row, slot),
        *(frames, keep, more),
    )
    if byteorder == "big":
        for column in parts:
            column.byteswap()
    counts = {"rows": len(entries), "frames": len(frames), "slots": len(slot)}
    return b"".join(part.tobytes() for part in parts), counts
