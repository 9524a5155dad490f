"""Dumped threads as activities, which say what is work and what is idle. Pure."""

from __future__ import annotations

from purebpf.findings.facts import Activity, StackFrame
from purebpf.tools.dump.model import MONITOR, DumpedThread

__all__ = ["activity_of_thread"]


def activity_of_thread(pid: int, thread: DumpedThread) -> Activity:
    """The present wait or work of a thread, as if it had lasted a second."""
    frames = [frame for frame in thread.frames if frame.kind != "kernel"]
    kernel = tuple(frame.name for frame in thread.frames if frame.kind == "kernel")
    user = tuple(StackFrame(frame.name, frame.file, frame.line, frame.kind) for frame in frames)
    if not kernel and thread.waits_for:  # kernel frames were left out, or could not be read
        call = thread.waits_for.partition("(")[0]
        is_lock = call == "futex" or call.startswith(MONITOR)
        kernel = ("futex_wait" if is_lock else f"__x64_sys_{call}",)
    kind = {"runs": "cpu", "ready": "queue"}.get(thread.state, "wait")
    state = "gil" if thread.waits_for.startswith("the GIL") else "S"
    if thread.waits_for.startswith(MONITOR):
        state = "monitor"
    return Activity(pid, thread.tid, thread.name, kind, state, 1.0, kernel, user, is_open=True)
