"""A profile as one JSON object.

schema    "purebpf.report/1"; the number grows when a key changes its meaning
title     the sentence of Profile.title
unit      what a weight counts
total     the sum of all weights
about     facts about the run, by name
frames    each distinct address once: kind, address (hex: JSON numbers end at 2^53), module,
          build_id and file_offset where known, and either name and offset or unknown (the
          reason) and detail; with --lines, file and line
stacks    weight, comm, pid, and where they differ tid, cpu, cgroup, state and process (its
          leader's name, where comm is a thread's); user and kernel: indices into frames, leaf
          first; [] no such stack, null it was lost; slots:
          [slot, weight] pairs, where there is a time line. Of waits also: kind, inflight (true:
          not over), idle (true: for something to do; of offcpu and wall), times, runnable (part
          of the weight), and waker: comm, pid, tid, user, kernel.
          cut: why the user stack lacks its roots, where a frame of kind "cut" is; guessed:
          its frames that followed frame pointers for lack of unwind information
samples   where there are single waits: the same, in the order of time, each with its end, time_ns
slot_ns   how long a slot is, where there is a time line
cost      run_time_ns and run_cnt: the time spent in the BPF programs, and how often they ran
loss      expected (null: unknown), seen, missed, one number per cause, and unknown: percent
          of the weighted frames, and the weight of each reason and module
tolerance by how much `expected` may be missed in an honest run
advice    for each cause that lost something, what to do about it
notes     where there are any: causes that leave the result complete
hints     where there are any: what would give names to what has none

`document` writes it and `parse` reads it back: this is the form of a saved profile.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from json import JSONDecodeError, JSONDecoder, JSONEncoder
from math import isfinite
from typing import Any

from purebpf.damage import describe
from purebpf.errors import FormatError
from purebpf.results.model.interned_stack import Numbered
from purebpf.results.model.loss import Cause, Loss
from purebpf.results.model.profile import NO_MARKS, Labels, Marks, Profile, Row, Slots, Stack, Waker
from purebpf.results.model.stack_end import CUT, StackEnd, is_cut
from purebpf.results.shape.frame_table import Numbering
from purebpf.symbols.frame import Address, FileOffset, Frame, Reason, Unknown

__all__ = ["SCHEMA", "document", "parse"]

SCHEMA = "purebpf.report/1"
_LABELS = ("comm", "pid", "tid", "cpu", "cgroup", "state", "process")
_KINDS = ("user", "kernel", "inlined", "python", CUT)
_TIME_KINDS = ("", "on-CPU", "off-CPU", "run-queue")
_LAST_SLOT = (1 << 32) - 1
_LATEST_NS = 1 << 62
"""No time is later, so that the sum of two has room in 64 bits with a sign."""
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
    notes = [cause.name for cause in profile.loss.causes if cause.is_note]
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
        **({"notes": notes} if notes else {}),
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
    if labels.process:
        stack["process"] = labels.process
    stack["user"] = None if row.user is None else frames.of(row.user)
    stack["kernel"] = None if row.kernel is None else frames.of(row.kernel)
    if row.slots:
        stack["slots"] = row.slots
    return stack | _marks(row.marks, frames)


def _marks(marks: Marks, frames: Numbering[Frame | Unknown, int]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    if marks.kind:
        tree["kind"] = marks.kind
    if marks.is_open:
        tree["inflight"] = True
    if marks.is_idle:
        tree["idle"] = True
    if marks.times:
        tree["times"] = marks.times
    if marks.runnable >= 0:
        tree["runnable"] = marks.runnable
    if marks.ended_ns:
        tree["time_ns"] = marks.ended_ns
    if marks.end.cut:
        tree["cut"] = marks.end.cut
    if marks.end.guessed:
        tree["guessed"] = marks.end.guessed
    if marks.waker:
        comm, pid, tid, user, kernel = marks.waker
        tree["waker"] = {
            "comm": comm,
            "pid": pid,
            "tid": tid,
            "user": None if user is None else frames.of(user),
            "kernel": None if kernel is None else frames.of(kernel),
        }
    return tree


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
            "unnamed_functions": unnamed.functions,
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
        FormatError: this is not such an object, or not all of it; `source` is its name in errors.
    """
    stacks = _Compactor()
    try:
        tree = JSONDecoder(object_hook=stacks, parse_float=_finite, parse_constant=_finite).decode(
            text
        )
    except (TypeError, OverflowError):
        raise FormatError(source, "stacks", "not lists of numbers of frames") from None
    except JSONDecodeError as error:
        raise FormatError(source, f"character {error.pos}", f"not JSON: {error.msg}") from None
    except ValueError as error:  # a number with thousands of digits, or none
        raise FormatError(source, "JSON", str(error)) from None
    except RecursionError:
        raise FormatError(source, "JSON", "nested too deeply") from None
    schema = tree.get("schema") if isinstance(tree, dict) else None
    if schema != SCHEMA:
        raise FormatError(source, "schema", f"got {schema!r}, expected {SCHEMA!r}")
    try:
        return _profile(tree, stacks.highest)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise FormatError(source, "profile", describe(error)) from None


class _Compactor:
    """Makes arrays of the stacks while JSON is decoded: their numbers are most of a profile.

    Attributes:
        highest: the highest number of a frame so far.
    """

    def __init__(self) -> None:
        self.highest = -1

    def __call__(self, item: dict[str, Any]) -> dict[str, Any]:
        """Pack the lists of a stack's object; other objects stay as they are."""
        if "pid" in item:
            for side in ("user", "kernel"):
                numbers = item.get(side)
                if numbers and type(numbers) is list:
                    item[side] = array("I", numbers)
                    self.highest = max(self.highest, *numbers)
        return item


def _profile(tree: Mapping[str, Any], highest: int) -> Profile:
    profile = Profile(
        str(tree["title"]), unit=str(tree["unit"]), about=_parsed_about(tree["about"])
    )
    profile.cost = {str(name): _whole(value) for name, value in tree["cost"].items()}
    profile.slot_ns = _whole(tree.get("slot_ns", 0))
    profile.loss = _parse_loss(tree)
    profile.hints = [str(hint) for hint in tree.get("hints", ())]
    frames = [_parse_frame(frame) for frame in tree["frames"]]
    if highest >= len(frames):
        raise ValueError(f"frame {highest} of {len(frames)}")
    known: dict[tuple[Any, ...], Labels] = {}
    for stack in (*tree["stacks"], *tree.get("samples", ())):
        whose = tuple(map(stack.get, _LABELS))
        labels = known.get(whose)
        if labels is None:
            labels = known[whose] = _parse_labels(stack)
        marked = not stack.keys() <= _UNMARKED
        row = Row(
            _parse_stack(stack["user"], frames),
            _parse_stack(stack["kernel"], frames),
            _whole(stack["weight"]),
            labels,
            _parse_slots(stack["slots"], profile.slot_ns) if "slots" in stack else (),
            _parse_marks(stack, frames) if marked else NO_MARKS,
        )
        profile.add_row(row)
    return profile


def _parse_labels(stack: Mapping[str, Any]) -> Labels:
    return Labels(
        str(stack["comm"]),
        _whole(stack["pid"]),
        _whole(stack.get("tid", 0)),
        _whole(stack.get("cpu", -1), -1),
        str(stack.get("cgroup", "")),
        str(stack.get("state", "")),
        str(stack.get("process", "")),
    )


def _parse_marks(stack: Mapping[str, Any], frames: list[Frame | Unknown]) -> Marks:
    waker = None
    if waker_tree := stack.get("waker"):
        user, kernel = (_parse_stack(waker_tree[side], frames) for side in ("user", "kernel"))
        waker = Waker(
            str(waker_tree["comm"]),
            _whole(waker_tree["pid"]),
            _whole(waker_tree["tid"]),
            user,
            kernel,
        )
    return Marks(
        _one_of(_TIME_KINDS, stack.get("kind", "")),
        bool(stack.get("inflight", False)),
        waker,
        _whole(stack.get("times", 0)),
        _whole(stack.get("runnable", -1), -1),
        _whole(stack.get("time_ns", 0)),
        _parse_end(stack),
        is_idle=bool(stack.get("idle", False)),
    )


def _parse_slots(slot_trees: Any, slot_ns: int) -> Slots:
    slots = tuple([(_whole(slot), _whole(weight)) for slot, weight in slot_trees])
    if slots and max(slots)[0] > _LAST_SLOT:
        raise ValueError(f"slot {max(slots)[0]}")
    if slots and max(slots)[0] * slot_ns >= _LATEST_NS:
        raise ValueError(f"slot {max(slots)[0]} of {slot_ns} ns each")
    return slots


def _parse_end(stack: Mapping[str, Any]) -> StackEnd:
    cut = str(stack.get("cut", ""))
    if cut and not is_cut(cut):
        raise ValueError(f"{cut!r} is not how a stack ends")
    return StackEnd(cut, _whole(stack.get("guessed", 0)))


def _parse_stack(numbers: Any, frames: list[Frame | Unknown]) -> Stack | None:
    if numbers is None:
        return None
    if type(numbers) is array:  # what _Compactor has made of a list
        return Numbered(frames, numbers)
    if numbers != []:
        raise ValueError(f"a stack must be a list or null, not {numbers!r}")
    return ()


def _parse_frame(frame: Mapping[str, Any]) -> Frame | Unknown:
    address = Address(_whole(int(frame["address"], 16), end=1 << 64))
    module, kind = str(frame.get("module", "")), _one_of(_KINDS, frame["kind"])
    build_id = str(frame.get("build_id", ""))
    file_offset = FileOffset(_whole(frame.get("file_offset", -1), -1))
    if "unknown" in frame:
        reason = Reason(frame["unknown"])
        detail = str(frame.get("detail", ""))
        return Unknown(reason, module, address, kind, detail, build_id, file_offset)
    name, offset = str(frame["name"]), _whole(frame["offset"])
    file, line = str(frame.get("file", "")), _whole(frame.get("line", 0))
    return Frame(name, offset, module, address, kind, build_id, file_offset, file, line)


def _parse_loss(tree: Mapping[str, Any]) -> Loss:
    counts, advice, notes = tree["loss"], tree.get("advice", {}), tree.get("notes", ())
    causes = tuple(
        Cause(name, _whole(lost), str(advice.get(name, "")), name in notes)
        for name, lost in counts.items()
        if name not in _LOSS_WORDS
    )
    expected = None if counts["expected"] is None else _whole(counts["expected"])
    return Loss(expected, _whole(counts["seen"]), _whole(tree.get("tolerance", 0)), causes)


def _parsed_about(about: Any) -> dict[str, object]:
    """Return the facts; numbers among them fit every format."""
    if not isinstance(about, dict):
        raise ValueError(f"about is an object, not {about!r}")  # noqa: TRY004 - a sentence
    for name, value in about.items():
        if isinstance(value, int | float) and abs(value) >= _LATEST_NS:
            raise ValueError(f"about.{name} is too high")
    return about


def _finite(text: str) -> float:
    number = float(text)
    if isfinite(number):
        return number
    raise ValueError(f"{text} is not a finite number")


def _whole(value: Any, low: int = 0, end: int = 1 << 63) -> int:
    """A number that every format has room for."""
    number = int(value)
    if low <= number < end:
        return number
    raise ValueError(f"{value!r} is below {low} or too high")


def _one_of(known: Collection[str], value: object) -> str:
    if isinstance(value, str) and value in known:
        return value
    raise ValueError(f"{value!r} is not one of {', '.join(known)}")
