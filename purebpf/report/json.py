"""A profile as one JSON object.

schema    "purebpf.report/1"; the number grows when a key changes its meaning
title     the sentence of Profile.title
unit      what a weight counts
total     the sum of all weights
about     facts about the run, by name
frames    each distinct address once: kind, address (hex: JSON numbers end at 2^53), module,
          build_id and file_offset where known, and either name and offset or unknown (the
          reason) and detail; with --lines, file and line
stacks    weight, comm, pid, and where they are told apart tid, cpu, cgroup and state; user and
          kernel: indices into frames, leaf first; [] no such stack, null it was lost; slots:
          [slot, weight] pairs, where there is a time line. Of waits also: kind, inflight (true:
          not over), times, runnable (part of the weight), and waker: comm, pid, tid, user, kernel
samples   where there are single waits: the same, in the order of time, each with its end, time_ns
slot_ns   how long a slot is, where there is a time line
cost      run_time_ns and run_cnt: the time spent in the BPF programs, and how often they ran
loss      expected (null: unknown), seen, missed, one number per cause, and unknown: percent
          of the weighted frames, and the weight of each reason and module
tolerance by how much `expected` may be missed in an honest run
advice    for each cause that lost something, what to do about it
hints     where there are any: what would give names to what has none

`document` writes it and `parse` reads it back: this is the form in which a profile is saved.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from json import JSONDecodeError, JSONDecoder, JSONEncoder
from typing import Any

from purebpf.errors import FormatError
from purebpf.report.loss import Cause, Loss
from purebpf.report.numbered import Numbered
from purebpf.report.numbering import Numbering
from purebpf.report.profile import NO_MARKS, Labels, Marks, Profile, Row, Stack, Waker
from purebpf.symbols.frame import Address, FileOffset, Frame, Reason, Unknown

__all__ = ["SCHEMA", "document", "parse"]

SCHEMA = "purebpf.report/1"
_LABELS = ("comm", "pid", "tid", "cpu", "cgroup", "state")
_UNMARKED = {*_LABELS, "weight", "user", "kernel", "slots"}


def document(profile: Profile, **more: object) -> str:
    """The whole object on one line, a newline at its end; `more` keys come last."""
    return JSONEncoder(separators=(",", ":")).encode(_tree(profile) | more) + "\n"


def _tree(profile: Profile) -> dict[str, Any]:
    frames = Numbering(_itself, int)
    rows = profile.rows()
    stacks = [_stack(row, frames) for row in rows if not row.marks.ended_ns]
    single = sorted((row for row in rows if row.marks.ended_ns), key=_ended_ns)
    samples = [_stack(row, frames) for row in single]
    return {
        "schema": SCHEMA,
        "title": profile.title,
        "unit": profile.unit,
        "total": profile.total,
        "about": profile.about,
        "frames": [_frame(entry) for entry in frames],
        **({"slot_ns": profile.slot_ns} if profile.slot_ns else {}),
        "stacks": stacks,
        **({"samples": samples} if samples else {}),
        "cost": profile.cost,
        "loss": _loss(profile),
        "tolerance": profile.loss.tolerance,
        "advice": {cause.name: cause.what for cause in profile.loss.causes if cause.lost},
        **({"hints": profile.hints} if profile.hints else {}),
    }


def _ended_ns(row: Row) -> int:
    return row.marks.ended_ns


def _itself(entry: Frame | Unknown) -> Frame | Unknown:
    return entry


def _stack(row: Row, frames: Numbering[Frame | Unknown, int]) -> dict[str, Any]:
    labels = row.labels
    stack: dict[str, Any] = {"weight": row.weight, "comm": labels.comm, "pid": labels.pid}
    if labels.tid:
        stack["tid"] = labels.tid
    if labels.cpu >= 0:
        stack["cpu"] = labels.cpu
    if labels.cgroup:
        stack["cgroup"] = labels.cgroup
    if labels.state:
        stack["state"] = labels.state
    stack["user"] = None if row.user is None else frames.of(row.user)
    stack["kernel"] = None if row.kernel is None else frames.of(row.kernel)
    if row.slots:
        stack["slots"] = row.slots
    return stack | _marks(row.marks, frames)


def _marks(marks: Marks, frames: Numbering[Frame | Unknown, int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if marks.kind:
        found["kind"] = marks.kind
    if marks.is_open:
        found["inflight"] = True
    if marks.times:
        found["times"] = marks.times
    if marks.runnable >= 0:
        found["runnable"] = marks.runnable
    if marks.ended_ns:
        found["time_ns"] = marks.ended_ns
    if marks.waker:
        comm, pid, tid, user, kernel = marks.waker
        found["waker"] = {
            "comm": comm,
            "pid": pid,
            "tid": tid,
            "user": None if user is None else frames.of(user),
            "kernel": None if kernel is None else frames.of(kernel),
        }
    return found


def _frame(entry: Frame | Unknown) -> dict[str, Any]:
    frame: dict[str, Any] = {"kind": entry.kind, "address": hex(entry.address)}
    if isinstance(entry, Unknown):
        frame["unknown"] = str(entry.reason)
        if entry.detail:
            frame["detail"] = entry.detail
    else:
        frame |= {"name": entry.name, "offset": entry.offset}
        if entry.file or entry.line:
            frame |= {"file": entry.file, "line": entry.line}
    if entry.module:
        frame["module"] = entry.module
    if entry.build_id:
        frame["build_id"] = entry.build_id
    if entry.file_offset >= 0:
        frame["file_offset"] = entry.file_offset
    return frame


def _loss(profile: Profile) -> dict[str, Any]:
    loss = profile.loss
    unnamed = profile.unnamed()
    return {
        "expected": loss.expected,
        "seen": loss.seen,
        "missed": loss.missed,
        **{cause.name: cause.lost for cause in loss.causes},
        "unknown": {
            "percent": round(unnamed.percent, 3),
            "frames": unnamed.frames,
            "reasons": [
                {"reason": why, "module": where, "weight": weight}
                for why, where, weight in unnamed.reasons
            ],
        },
    }


_LOSS_WORDS = {"expected", "seen", "missed", "unknown"}


def parse(text: str, source: str = "profile") -> Profile:
    """The profile that `document` wrote.

    Raises:
        FormatError: this is no such object, or not all of it; `source` is what to call it.
    """
    stacks = _Compactor()
    try:
        tree = JSONDecoder(object_hook=stacks).decode(text)
    except (TypeError, OverflowError) as error:
        raise FormatError(source, "stacks", f"no numbers of frames: {error}") from None
    except JSONDecodeError as error:
        raise FormatError(source, f"character {error.pos}", f"no JSON: {error.msg}") from None
    except RecursionError:
        raise FormatError(source, "JSON", "nested too deeply") from None
    schema = tree.get("schema") if isinstance(tree, dict) else None
    if schema != SCHEMA:
        raise FormatError(source, "schema", f"{schema!r} where {SCHEMA!r} was expected")
    try:
        return _profile(tree, stacks.highest)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise FormatError(source, "profile", problem) from None


class _Compactor:
    """Makes arrays of the stacks while JSON is decoded: their numbers are most of a profile.

    Attributes:
        highest: the highest number of a frame so far.
    """

    def __init__(self) -> None:
        self.highest = -1

    def __call__(self, found: dict[str, Any]) -> dict[str, Any]:
        """The same object; what is no stack or has none is left alone."""
        if "pid" in found:
            for side in ("user", "kernel"):
                numbers = found.get(side)
                if numbers and type(numbers) is list:
                    found[side] = array("I", numbers)
                    self.highest = max(self.highest, *numbers)
        return found


def _profile(tree: Mapping[str, Any], highest: int) -> Profile:
    profile = Profile(str(tree["title"]), unit=str(tree["unit"]), about=tree["about"])
    profile.cost = {str(name): int(value) for name, value in tree["cost"].items()}
    profile.slot_ns = int(tree.get("slot_ns", 0))
    profile.loss = _parsed_loss(tree)
    profile.hints = [str(hint) for hint in tree.get("hints", ())]
    frames = [_parsed_frame(frame) for frame in tree["frames"]]
    if highest >= len(frames):
        raise IndexError(f"frame {highest} of {len(frames)}")
    known: dict[tuple[Any, ...], Labels] = {}
    for stack in (*tree["stacks"], *tree.get("samples", ())):
        whose = tuple(map(stack.get, _LABELS))
        labels = known.get(whose)
        if labels is None:
            labels = known[whose] = _parsed_labels(stack)
        slots, marked = stack.get("slots"), not stack.keys() <= _UNMARKED
        row = Row(
            _parsed_stack(stack["user"], frames),
            _parsed_stack(stack["kernel"], frames),
            int(stack["weight"]),
            labels,
            tuple((int(slot), int(weight)) for slot, weight in slots) if slots else (),
            _parsed_marks(stack, frames) if marked else NO_MARKS,
        )
        profile.add_row(row)
    return profile


def _parsed_labels(stack: Mapping[str, Any]) -> Labels:
    return Labels(
        str(stack["comm"]),
        int(stack["pid"]),
        int(stack.get("tid", 0)),
        int(stack.get("cpu", -1)),
        str(stack.get("cgroup", "")),
        str(stack.get("state", "")),
    )


def _parsed_marks(stack: Mapping[str, Any], frames: list[Frame | Unknown]) -> Marks:
    waker = None
    if found := stack.get("waker"):
        user, kernel = (_parsed_stack(found[side], frames) for side in ("user", "kernel"))
        waker = Waker(str(found["comm"]), int(found["pid"]), int(found["tid"]), user, kernel)
    return Marks(
        str(stack.get("kind", "")),
        bool(stack.get("inflight", False)),
        waker,
        int(stack.get("times", 0)),
        int(stack.get("runnable", -1)),
        int(stack.get("time_ns", 0)),
    )


def _parsed_stack(numbers: array[int] | None, frames: list[Frame | Unknown]) -> Stack | None:
    return None if numbers is None else Numbered(frames, numbers) if numbers else ()


def _parsed_frame(frame: Mapping[str, Any]) -> Frame | Unknown:
    address = Address(int(frame["address"], 16))
    module, kind = str(frame.get("module", "")), str(frame["kind"])
    build_id = str(frame.get("build_id", ""))
    file_offset = FileOffset(int(frame.get("file_offset", -1)))
    if "unknown" in frame:
        reason = Reason(frame["unknown"])
        detail = str(frame.get("detail", ""))
        return Unknown(reason, module, address, kind, detail, build_id, file_offset)
    name, offset = str(frame["name"]), int(frame["offset"])
    file, line = str(frame.get("file", "")), int(frame.get("line", 0))
    return Frame(name, offset, module, address, kind, build_id, file_offset, file, line)


def _parsed_loss(tree: Mapping[str, Any]) -> Loss:
    found, advice = tree["loss"], tree.get("advice", {})
    causes = tuple(
        Cause(name, int(lost), str(advice.get(name, "")))
        for name, lost in found.items()
        if name not in _LOSS_WORDS
    )
    return Loss(found["expected"], int(found["seen"]), int(tree.get("tolerance", 0)), causes)
