"""A thread of a running program, stepped by instructions, with the stack that BPF walks at each.

Each step ends in a signal to the thread itself, SIGTRAP, and the tracepoint of signals runs in the
thread: the walk sees registers and memory as they are between two instructions.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import purebpf.build
import purebpf.stacks
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["SteppedStack", "SteppedThread", "stepped"]

_SEIZE, _INTERRUPT, _STEP, _GETREGS, _CONTINUE, _DETACH = 0x4206, 0x4207, 9, 12, 7, 17
_STOPPED = 128
"""The event of a thread that was interrupted: PTRACE_EVENT_STOP."""
_ALL_THREADS = 0x40000000
_TRAP = 5
_REGISTERS = struct.Struct("27Q")
_IP = 16
_PROGRAM = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <purebpf/stacks.h>

struct event { __u64 number; purebpf_stack stack; };
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 18); __type(value, struct event);
} events SEC(".maps");
struct signal { __u64 common; int number; };
const volatile int target;
__u64 count;

SEC("tracepoint/signal/signal_generate") int on_step(struct signal *signal)
{
	struct event event = {};

	if ((__u32)bpf_get_current_pid_tgid() != target || signal->number != 5)
		return 0;
	event.number = count++;
	event.stack = user_stack(signal);
	bpf_ringbuf_output(&events, &event, sizeof(event), 0);
	return 0;
}
char LICENSE[] SEC("license") = "GPL";
"""
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class SteppedStack(NamedTuple):
    """The stack before an instruction.

    Attributes:
        pc: the address of the instruction.
        frames: innermost first.
        end: why callers are missing; "".
    """

    pc: int
    frames: tuple[Frame | Unknown, ...]
    end: str


class SteppedThread:
    """See `stepped`."""

    def __init__(self, traced: purebpf.stacks.StackObject, tid: int) -> None:
        self._traced = traced
        self._tid = tid
        self._buffer = ctypes.create_string_buffer(_REGISTERS.size)
        self._pcs: dict[int, int] = {}
        self._taken = 0

    def _ptrace(self, request: int, data: int = 0, address: int = 0) -> None:
        if _libc.ptrace(request, self._tid, address, data) < 0:
            raise OSError(ctypes.get_errno(), f"ptrace {request}")

    def burst(self, count: int) -> None:
        """Stop the thread, let it take so many steps, and let it go."""
        self._ptrace(_SEIZE)
        self._ptrace(_INTERRUPT)
        while True:
            _, status = os.waitpid(self._tid, _ALL_THREADS)
            if status >> 16 == _STOPPED:
                break
            self._ptrace(_CONTINUE, os.WSTOPSIG(status))
        signal = 0
        for _ in range(count):
            self._ptrace(_STEP, signal)
            _, status = os.waitpid(self._tid, _ALL_THREADS)
            assert os.WIFSTOPPED(status), status
            signal = os.WSTOPSIG(status)
            if signal != _TRAP:  # a page that the program protects, to stop its threads
                continue
            signal = 0
            self._ptrace(_GETREGS, ctypes.addressof(self._buffer))
            self._pcs[self._taken] = _REGISTERS.unpack(self._buffer.raw)[_IP]
            self._taken += 1
        self._ptrace(_DETACH, signal)

    def wait(self, seconds: float) -> None:
        """Let the program run, and the walk get its tables; forget the stacks before."""
        self._traced.wait(seconds)
        for _ in self._traced.read("events", timeout=0.1):
            pass
        self._pcs.clear()

    def stacks(self) -> Iterator[SteppedStack]:
        """Yield the stacks of the steps since the last look."""
        for event in self._traced.read("events", timeout=0.05):
            named = self._traced._stacks.name(int(event.stack))
            yield SteppedStack(self._pcs.pop(event.number), tuple(named.frames), named.end)


@contextmanager
def stepped(pid: int, tid: int) -> Iterator[SteppedThread]:
    """Walk the stack of a thread at each of its steps until the block is left."""
    spec = purebpf.read_object(purebpf.build.compile(_PROGRAM)).set(target=tid)
    with purebpf.stacks.load(spec, pids=[pid], capacity=1 << 16) as traced:
        traced.attach()
        yield SteppedThread(traced, tid)
