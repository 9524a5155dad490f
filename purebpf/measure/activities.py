"""From rows of a profile to activities of threads, as the rules about idle and work read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.findings.facts import Activity, StackFrame
from purebpf.results.model.stack_end import CUT
from purebpf.symbols.frame import Frame

if TYPE_CHECKING:
    from purebpf.results.model.profile import Row, Stack

__all__ = ["activity_of", "named_frames"]

_MOST_FRAMES = 100


def activity_of(row: Row, kind: str, seconds: float) -> Activity:
    """Return the time of a row with the names of its frames; `kind` is as in `Activity`."""
    labels = row.labels
    kernel = tuple(entry.name for entry in row.kernel or () if isinstance(entry, Frame))
    user = named_frames(row.user)
    return Activity(labels.pid, labels.tid, labels.comm, kind, labels.state, seconds, kernel, user)


def named_frames(stack: Stack | None) -> tuple[StackFrame, ...]:
    """Return the functions of a stack, innermost first; "" names an unknown one."""
    frames = []
    for entry in (stack or ())[:_MOST_FRAMES]:
        if isinstance(entry, Frame):
            if entry.kind != CUT:
                frames.append(StackFrame(entry.name, entry.module, entry.line, entry.kind))
        else:
            frames.append(StackFrame("", entry.module, 0, entry.kind))
    return tuple(frames)
