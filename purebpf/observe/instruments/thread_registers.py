"""The threads of a process as the kernel has them: state, and registers of those that sleep.

Needs iterators over tasks (Linux 5.8) and bpf_task_pt_regs() (Linux 5.15, commit dd6e10fbd9fb), on
x86_64 and arm64. See bpf_src/task_registers.bpf.c. Nothing is stopped.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from purebpf import objects
from purebpf.closable import Closing
from purebpf.loader.attach.iterator import attach
from purebpf.loader.load.load import load
from purebpf.observe.unwind.native_machine import native_code_bits, native_machine
from purebpf.tuples import NamedTuple
from purebpf.unwind.sent_registers import NAMES, read_registers

if TYPE_CHECKING:
    from purebpf.unwind.machine import Machine

__all__ = ["ThreadNow", "ThreadRegisters", "state_letter"]

_STATES = (
    *((0x1, "S"), (0x2, "D"), (0x4, "T"), (0x8, "t"), (0x10, "X"), (0x20, "Z"), (0x40, "P")),
    *((0x1000, "D"), (0x8000, "D")),  # TASK_RTLOCK_WAIT, and TASK_FROZEN since Linux 6.1
)
"""TASK_* bits of include/linux/sched.h, and the letters of ps(1)."""


@lru_cache(64)
def state_letter(bits: int) -> str:
    """The letter of a task's state; "R" runs, or waits for a CPU."""
    return next((letter for bit, letter in _STATES if bits & bit), "R")


class ThreadNow(NamedTuple):
    """A thread.

    Attributes:
        tid, comm: its number in our PID namespace, and its name.
        state: "R" runs or waits for a CPU, "S" sleeps, "D" sleeps uninterruptibly, "T" is
            stopped...: the letters of ps(1).
        is_on_cpu: whether it runs.
        switches: how often it left a CPU: unchanged, it has not run since.
        pthread: its thread pointer: the value of the register fs, pthread_self() of glibc and musl;
            TPIDR_EL0 of arm64.
        call, argument: the system call that it is in, and the first argument; -1: none.
        pc, registers: where it goes on in user space; by DWARF's numbers, None where one is not
            sent. None: it has no 64-bit user registers.
    """

    tid: int
    comm: str
    state: str
    is_on_cpu: bool
    switches: int
    pthread: int
    call: int
    argument: int
    pc: int
    registers: tuple[int | None, ...] | None

    @property
    def is_asleep(self) -> bool:
        """True if its registers and stack do not change until it is woken."""
        return self.state != "R" and not self.is_on_cpu and self.registers is not None


class ThreadRegisters(Closing):
    """Lists the threads of a process.

    Args:
        pid: the process, in our PID namespace.
        namespace: that, as (device, inode) of `PidNamespace`; (0, 0): the initial one.

    Raises:
        NotSupportedError: another machine than x86_64 and arm64.
        KernelError: the kernel refused the program.
    """

    def __init__(self, pid: int, namespace: tuple[int, int] = (0, 0)) -> None:
        self._machine = native_machine("registers of threads")
        spec = objects.spec("task_registers").set(
            wanted_tgid=pid, arm64_code_bits=native_code_bits()
        )
        if namespace[1]:
            spec = spec.set(pid_namespace_dev=namespace[0], pid_namespace_ino=namespace[1])
        with ExitStack() as undo:
            loaded = undo.enter_context(load(spec))
            self._list = undo.enter_context(attach(loaded.programs["list_threads"]))
            self._closing = undo.pop_all()

    def list(self) -> dict[int, ThreadNow]:
        """The threads now, by number.

        Raises:
            KernelError, OSError: the iterator could not be read.
        """
        threads = self._list.records("thread_registers")
        return {thread.tid: _thread(self._machine, thread) for thread in threads}

    def close(self) -> None:
        """Unload; again is harmless."""
        self._closing.close()


def _thread(machine: Machine, record: Any) -> ThreadNow:  # noqa: ANN401 - a value of its BTF type
    sent = read_registers(machine, [getattr(record.registers, name) for name in NAMES])
    is_native = bool(record.has_registers) and not sent.is_compat
    return ThreadNow(
        tid=record.tid,
        comm=record.comm,
        state=state_letter(record.state),
        is_on_cpu=bool(record.on_cpu),
        switches=record.switches,
        pthread=record.pthread,
        call=max(record.call, -1) if is_native else -1,
        argument=record.argument,
        pc=sent.pc,
        registers=sent.values if is_native else None,
    )
