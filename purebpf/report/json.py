"""A profile as one JSON object.

schema    "purebpf.report/1"; the number grows when a key changes its meaning
title     the sentence of Profile.title
unit      what a weight counts
total     the sum of all weights
about     facts about the run, by name
frames    each distinct address once: kind, address (hex: JSON numbers end at 2^53), module,
          build_id and file_offset where known, and either name and offset or unknown (the
          reason) and detail
stacks    weight, comm, pid, tid (where threads are told apart), and user and kernel: indices
          into frames, leaf first; [] no such stack, null it was lost
cost      run_time_ns and run_cnt: the time spent in the BPF programs, and how often they ran
loss      expected (null: unknown), seen, missed, one number per cause, and unknown: percent
          of the weighted frames, and the weight of each reason and module
"""

from __future__ import annotations

from json import JSONEncoder
from typing import Any

from purebpf.report.profile import Profile, Row, Stack
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["SCHEMA", "document"]

SCHEMA = "purebpf.report/1"


def document(profile: Profile) -> str:
    """The whole object on one line, a newline at its end."""
    return JSONEncoder(separators=(",", ":")).encode(_tree(profile)) + "\n"


def _tree(profile: Profile) -> dict[str, Any]:
    table: dict[Frame | Unknown, int] = {}
    stacks = [_stack(row, table) for row in profile.rows()]
    return {
        "schema": SCHEMA,
        "title": profile.title,
        "unit": profile.unit,
        "total": profile.total,
        "about": profile.about,
        "frames": [_frame(entry) for entry in table],
        "stacks": stacks,
        "cost": profile.cost,
        "loss": _loss(profile),
    }


def _stack(row: Row, table: dict[Frame | Unknown, int]) -> dict[str, Any]:
    comm, pid, tid = row.labels
    stack: dict[str, Any] = {"weight": row.weight, "comm": comm, "pid": pid}
    if tid:
        stack["tid"] = tid
    stack["user"] = _indices(row.user, table)
    stack["kernel"] = _indices(row.kernel, table)
    return stack


def _indices(stack: Stack | None, table: dict[Frame | Unknown, int]) -> list[int] | None:
    if stack is None:
        return None
    return [table.setdefault(entry, len(table)) for entry in stack]


def _frame(entry: Frame | Unknown) -> dict[str, Any]:
    frame: dict[str, Any] = {"kind": entry.kind, "address": hex(entry.address)}
    if isinstance(entry, Unknown):
        frame["unknown"] = str(entry.reason)
        if entry.detail:
            frame["detail"] = entry.detail
    else:
        frame |= {"name": entry.name, "offset": entry.offset}
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
