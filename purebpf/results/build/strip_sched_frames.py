"""Leaves out the frames of tracing, and of the scheduler's switch itself."""

from __future__ import annotations

from purebpf.late_pattern import compile_later
from purebpf.results.model.profile import Stack
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["without_switch"]

_TRACING = compile_later(
    r"bpf_prog_|bpf_trampoline|bpf_trace_run|bpf_get_|__bpf_|__traceiter_|__bpf_trace_|perf_trace_"
    r"|trace_call_bpf|trace_event_raw_event|___bpf_prog_run|bpf_dispatcher_|srso_|__x86_indirect_"
)
_SWITCHING = compile_later(
    r"(__schedule|schedule|schedule_preempt_disabled|preempt_schedule\w*|__cond_resched"
    r"|finish_task_switch|__switch_to(_asm)?|context_switch|try_to_wake_up|ttwu_\w+"
    r"|dynamic_preempt_schedule\w*)(\.(isra|constprop|part|cold|llvm)[.\d]*)*$"
)


def without_switch(stack: Stack | None) -> Stack | None:
    """A kernel stack, leaf first, without its leading frames of tracing, switching and waking.

    Frames are recognised by name, since their number differs with the kernel and its build. A stack
    without other frames is unchanged.
    """
    if not stack:
        return stack
    for depth, entry in enumerate(stack):
        if not _is_between(entry):
            return stack[depth:]
    return stack


def _is_between(entry: Frame | Unknown) -> bool:
    if entry.module == "[bpf]" or isinstance(entry, Unknown):
        return entry.module == "[bpf]"
    return bool(_TRACING.match(entry.name) or _SWITCHING.match(entry.name))
