"""Tests if BPF programs can be preempted where they count system calls."""

from __future__ import annotations

import os

from purebpf import objects
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.load.load import load

__all__ = ["syscall_programs_are_preempted"]

_PREEMPTED = 1


def syscall_programs_are_preempted() -> bool:
    """Return True if another task can take the CPU from a program at a tracepoint of system calls.

    The kernel takes it for recursion when that task makes a call as well, and does not run the
    program for it: counts of raw tracepoints and BTF tracepoints are not exact then. A program at
    a plain tracepoint is not concerned: perf switches preemption off around it.

    Found out by a program that looks (bpf_src/preemption.bpf.c). False where the kernel does not
    say, as x86 before Linux 6.15 does (commit 46e8fff6d45f, "x86/preempt: Move preempt count to
    percpu hot section"): those switch preemption off around every program.
    """
    try:
        with load(objects.spec("preemption")) as loaded, loaded.programs["ask"].attach():
            os.getppid()
            return bool(loaded.globals["answer"] == _PREEMPTED)
    except (KernelError, NotSupportedError):  # no such counter to read
        return False
