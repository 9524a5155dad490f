"""Reading speedscope's own JSON: https://www.speedscope.app/file-format-schema.json."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from json import JSONDecodeError, JSONDecoder
from math import isfinite
from typing import Any

from purebpf.damage import describe
from purebpf.errors import FormatError
from purebpf.results.formats.fractions import Fractions
from purebpf.results.formats.speedscope import EXPORTER, SCHEMA
from purebpf.results.model.interned_stack import Numbered
from purebpf.results.model.loss import Loss, count_cause
from purebpf.results.model.profile import Labels, Profile
from purebpf.results.model.spelling import UNKNOWN
from purebpf.symbols.frame import Address, Frame, Reason, Unknown

__all__ = ["looks_like", "parse"]

_UNITS = {
    "nanoseconds": (1.0, "ns"),
    "microseconds": (1e3, "ns"),
    "milliseconds": (1e6, "ns"),
    "seconds": (1e9, "ns"),
    "bytes": (1.0, "bytes"),
    "none": (1.0, "samples"),
}
"""What to multiply with, and our unit."""
_HEAD = 1 << 12
_LARGEST_TEXT = 1 << 28
_LARGEST = float(1 << 62)
_MOST_FRAMES = 1 << 25
"""Frames of all samples together: each takes 4 bytes of memory, and 2 in the file."""


def looks_like(text: str) -> bool:
    """Return True if a JSON text is speedscope's: some writers have the schema at the end."""
    return SCHEMA in text[:_HEAD] or SCHEMA in text[-_HEAD:]


def parse(text: str, source: str = "speedscope") -> Profile:
    """Return the profiles in the text that have the first one's unit, as one.

    Time is in ns. The times in an evented profile are dropped. Weights are rounded, once those of
    the same stack are added up. The losses `other_units` and `below_a_half` count the profiles and
    the stacks that are left out.

    Raises:
        FormatError: it is not such a file, or not all of it; `source` is its name in errors.
    """
    if len(text) > _LARGEST_TEXT:
        raise FormatError(source, "size", f"more than {_LARGEST_TEXT >> 20} MB")
    try:
        tree = JSONDecoder().decode(text)
    except JSONDecodeError as error:
        raise FormatError(source, f"character {error.pos}", f"not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise FormatError(source, "JSON", describe(error)) from None
    try:
        return _profile(tree, source)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        problem = f"not a speedscope file: {describe(error)}"
        raise FormatError(source, "profile", problem) from None


def _profile(tree: Mapping[str, Any], source: str) -> Profile:
    table = [_frame(frame) for frame in tree["shared"]["frames"]]
    parts = tree["profiles"]
    if not parts:
        raise FormatError(source, "profiles", "the file has none")
    scale, unit = _unit(parts[0])
    profile = Profile(str(tree.get("name") or f"speedscope of {source}"), unit=unit)
    is_ours = tree.get("exporter") == EXPORTER
    left = _MOST_FRAMES
    fractions: Fractions[tuple[str, bytes]] = Fractions()
    others = 0
    for part in parts:
        scale, own_unit = _unit(part)
        if own_unit != unit:
            others += 1
            continue
        name = str(part.get("name") or "")[:64]
        for path, weight in _stacks(part, len(table)):
            left -= len(path)
            if left < 0:
                raise ValueError(f"more than {_MOST_FRAMES} frames")
            value = scale * weight
            if not isfinite(value) or not 0 <= value < _LARGEST:
                raise ValueError(f"a sample with the weight {weight}")
            comm = name
            if is_ours and path:  # it heads each stack with its process
                comm, path = _name(table[path[0]]), path[1:]
            numbers = array("I", reversed(path))
            whole = fractions.take((comm, numbers.tobytes()), value)
            if whole:
                profile.add(Numbered(table, numbers), (), whole, Labels(comm))
    for comm, stack in fractions.rounded():
        profile.add(Numbered(table, array("I", stack)), (), 1, Labels(comm))
    causes = fractions.causes()
    if others:
        what = f"profiles of the file were left out: their unit is not {parts[0]['unit']}"
        causes = (*causes, count_cause("other_units", others, what))
    if causes:
        profile.loss = Loss(None, profile.total, 0, causes)
    return profile


def _stacks(part: Mapping[str, Any], frames: int) -> Iterator[tuple[Sequence[int], float]]:
    """Frames, root first, and weight of each sample, or of the time between two events."""
    if part["type"] == "sampled":
        for path, weight in zip(part["samples"], part["weights"], strict=True):
            for frame in path:
                _check_frame(frame, frames)
            yield path, weight
    elif part["type"] == "evented":
        yield from _evented(part, frames)
    else:
        raise ValueError(f"a profile of the type {part['type']!r}")


def _evented(part: Mapping[str, Any], frames: int) -> Iterator[tuple[Sequence[int], float]]:
    """The stacks between events, as speedscope reads them: in order, and all closed at the end."""
    stack: list[int] = []
    before = _number(part["startValue"])
    for number, event in enumerate(part["events"]):
        at, frame, type_ = _number(event["at"]), event["frame"], event["type"]
        where = f"event {number} of profile {str(part.get('name', ''))[:64]!r}"
        if at < before:
            raise ValueError(f"{where} is at {at}, and the one before it at {before}")
        if stack and at > before:
            yield tuple(stack), at - before
        before = at
        _check_frame(frame, frames)
        if type_ == "O":
            stack.append(frame)
        elif type_ != "C":
            raise ValueError(f"{where} has the type {type_!r}")
        elif not stack:
            raise ValueError(f"{where} closes frame {frame}, and no frame is open")
        elif stack.pop() != frame:
            raise ValueError(f"{where} closes frame {frame}, and another was opened last")
    if stack:
        name = str(part.get("name", ""))[:64]
        raise ValueError(f"profile {name!r} ends with {len(stack)} open frames: it is cut short")


def _unit(part: Mapping[str, Any]) -> tuple[float, str]:
    name = part["unit"]
    if not isinstance(name, str) or name not in _UNITS:
        raise ValueError(f"a profile in the unit {str(name)[:64]!r}")
    return _UNITS[name]


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"a time of {value!r}")
    return value


def _check_frame(frame: Any, frames: int) -> None:
    if type(frame) is not int or not 0 <= frame < frames:
        raise ValueError(f"frame {frame!r} of {frames}")


def _frame(frame: Mapping[str, Any]) -> Frame | Unknown:
    name, file = str(frame["name"] or ""), str(frame.get("file") or "")
    if name == UNKNOWN:
        return Unknown(Reason.NOT_FOUND, file, Address(0), "user")
    line = frame.get("line") or 0
    if not isinstance(line, int) or not 0 <= line < 1 << 32:
        raise ValueError(f"line {line}")
    if line:
        return Frame(name, 0, "", Address(0), "user", file=file, line=line)
    return Frame(name, 0, file, Address(0), "user")


def _name(entry: Frame | Unknown) -> str:
    return entry.name if isinstance(entry, Frame) else UNKNOWN
