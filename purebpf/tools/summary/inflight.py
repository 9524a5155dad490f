"""Calls that are open, of every task: from the states, and by a BPF iterator where there is one."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from purebpf.loader.attach import iterator
from purebpf.loader.load.object import Object
from purebpf.loader.programs.program import Program
from purebpf.syscall import proc
from purebpf.tools.summary.loading import ITERATOR
from purebpf.tuples import NamedTuple

__all__ = ["ADOPTED", "UNDECIDED", "WANTED", "Open", "open_calls"]

UNDECIDED, ADOPTED, WANTED, UNWANTED, AWAITED = range(5)
"""enum verdict of bpf_src/summary.bpf.c."""

_RECORD = struct.Struct("=QIIIBB2x16s")  # struct open_call


class Open(NamedTuple):
    """A call that has not returned; `start_ns` 0 for one that was open when the run began.

    Times are nanoseconds of CLOCK_MONOTONIC.
    """

    start_ns: int
    pid: int
    tid: int
    nr: int
    abi: int
    verdict: int
    comm: str


def open_calls(loaded: Object) -> list[Open]:
    """Every open call of the machine, whether it is wanted or not.

    Raises:
        KernelError: the iterator or a map could not be read.
    """
    maps = loaded.maps
    states = [*maps["running"][0], *maps["tasks_by_address"].values()]
    calls = {state.tid: state for state in _states(states)}
    program = loaded.programs.get(ITERATOR)
    if program is not None:
        calls |= {state.tid: state for state in _iterate_tasks(program)}
    return list(calls.values())


def _states(states: Iterable[Any]) -> Iterator[Open]:
    """Yield the calls in states of tasks (struct task_state)."""
    for state in states:
        if state.start_ns:
            comm = proc.comm(state.tid) or ""
            yield Open(
                state.start_ns, state.tgid, state.tid, state.nr, state.abi, state.verdict, comm
            )


def _iterate_tasks(program: Program) -> Iterator[Open]:
    """Yield the calls of tasks that sleep, or wait for a CPU (Linux 5.8, commit 15d83c4d7cef)."""
    with iterator.attach(program) as link:
        data = link.read()
    for start_ns, pid, tid, nr, abi, verdict, comm in _RECORD.iter_unpack(data):
        name = comm.partition(b"\0")[0].decode(errors="surrogateescape")
        yield Open(start_ns, pid, tid, nr, abi, verdict, name)
