"""A copied stack with its registers, without the rings that some of them come from."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["CopiedStack"]


class CopiedStack(NamedTuple):
    """A sample.

    Attributes:
        time_ns: CLOCK_MONOTONIC.
        cpu, tgid, tid, comm: the place and the task; numbers are from our pid namespace.
        is_compat: a 32-bit task: its registers say nothing about 64-bit code.
        pc: the address that runs next in user space.
        registers: by DWARF's numbers; None: not known.
        stack: the bytes from the stack pointer up; fewer than asked for where the stack ends.
    """

    time_ns: int
    cpu: int
    tgid: int
    tid: int
    comm: str
    is_compat: bool
    pc: int
    registers: tuple[int | None, ...]
    stack: bytes
