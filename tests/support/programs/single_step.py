"""A program run instruction by instruction (ptrace(2)), with the stack trace that is true at each.

What was called is known by looking: an instruction that leaves the address behind itself on the
stack, and goes elsewhere, is a call; it is over when the stack pointer is above that address.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from collections.abc import Iterator
from typing import NamedTuple

_TRACEME, _KILL, _SINGLESTEP, _GETREGS = 0, 8, 9, 12
_REGISTERS = struct.Struct("27Q")
# struct user_regs_struct: r15 r14 r13 r12 bp bx r11 r10 r9 r8 ax cx dx si di orig_ax ip cs
# flags sp ...; DWARF: ax dx cx bx si di bp sp r8 to r15
_ORDER = (10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0)
_IP, _SP = 16, 19
_LONGEST = 15

STEPPED = r"""
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define STEP __attribute__((noinline))
volatile unsigned long sink;
STEP unsigned long leaf(unsigned long x) { return x * 3 + sink; }
STEP unsigned long recurse(int depth, unsigned long x) {
  return depth ? recurse(depth - 1, x + depth) * 3 + depth : leaf(x);
}
STEP int compare(const void *a, const void *b) {
  sink += recurse(*(unsigned long *)a & 3, 3);
  return *(unsigned long *)a < *(unsigned long *)b ? -1 : 1;
}
STEP unsigned long allocates(unsigned long x) {
  char *p = alloca(64 + (x & 255));
  memset(p, x, 64);
  return leaf(p[3]);
}
STEP double realigned(double x) {
  double v[8] __attribute__((aligned(64)));
  for (int i = 0; i < 8; i++) v[i] = x * i;
  sink += leaf((unsigned long)v);
  return v[3];
}
int main(void) {
  unsigned long v[32];
  char text[99];
  struct timespec now;
  for (int i = 0; i < 32; i++) v[i] = rand();
  qsort(v, 32, sizeof(v[0]), compare);
  sink += allocates(7) + realigned(2.0);
  snprintf(text, sizeof(text), "%d %s %g", 5, "x", 3.5);
  sink += strtoul("123", 0, 10) + clock_gettime(CLOCK_REALTIME, &now);
  free(malloc(100));
  return 0;
}
"""
"""A program with a short life in which each instruction is looked at."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class Step(NamedTuple):
    """The state before an instruction.

    Attributes:
        pid: of the program, which is stopped.
        pc, registers: as an unwinder wants them.
        truth: its address, then the return addresses of the calls that are not over.
    """

    pid: int
    pc: int
    registers: tuple[int, ...]
    truth: list[int]


class Stepper:
    """Runs a program; `stack` reads its memory between two steps."""

    def __init__(self, *command: str) -> None:
        self._pid = os.fork()
        if not self._pid:
            _libc.ptrace(_TRACEME, 0, None, None)
            os.execv(command[0], command)  # noqa: S606
        os.waitpid(self._pid, 0)
        self._memory = os.open(f"/proc/{self._pid}/mem", os.O_RDONLY)
        self._alive = True

    def steps(self, most: int, word: int = 8) -> Iterator[Step]:
        """Each instruction, until the program ends; `word`: bytes of a return address."""
        buffer = ctypes.create_string_buffer(_REGISTERS.size)
        calls: list[tuple[int, int]] = []
        pc = sp = 0
        for _ in range(most):
            _libc.ptrace(_GETREGS, self._pid, None, buffer)
            values = _REGISTERS.unpack(buffer.raw)
            before, pc = pc, values[_IP]
            sp_before, sp = sp, values[_SP]
            while calls and calls[-1][0] < sp:
                calls.pop()
            if sp == sp_before - word:
                address = int.from_bytes(self.stack(sp, word), "little")
                if 2 <= address - before <= 8 and pc != address:
                    calls.append((sp, address))
            truth = [pc, *(address for _, address in reversed(calls))]
            yield Step(self._pid, pc, tuple([values[at] for at in _ORDER]), truth)
            _libc.ptrace(_SINGLESTEP, self._pid, None, None)
            _, status = os.waitpid(self._pid, 0)
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                self._alive = False
                return
            assert os.WSTOPSIG(status) == signal.SIGTRAP, status

    def stack(self, address: int, size: int) -> bytes:
        """The program's memory; fewer bytes where it ends."""
        try:
            return os.pread(self._memory, size, address)
        except OSError:
            return b""

    def close(self) -> None:
        """End the program."""
        os.close(self._memory)
        if self._alive:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
