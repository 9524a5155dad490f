"""The threads of the machine that are off their CPUs, looked at again and again.

Needs iterators over tasks (Linux 5.8). Registers: bpf_task_pt_regs() (Linux 5.15, commit
dd6e10fbd9fb). Which threads have not run since the last look, the program keeps with each task
(task storage, Linux 5.11, commit 4cf1bc1f1045); before that, every thread is listed whole.
See bpf_src/sleepers.bpf.c. Nothing is stopped, and no program runs between two looks.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import ExitStack

from purebpf import objects
from purebpf.closable import Closing
from purebpf.loader.attach import iterator
from purebpf.loader.load.load import load
from purebpf.observe.instruments import sched_compat
from purebpf.observe.instruments.thread_registers import state_letter
from purebpf.observe.unwind.native_machine import native_code_bits, native_machine
from purebpf.tuples import NamedTuple
from purebpf.unwind.sent_registers import NAMES, SentRegisters, read_registers

__all__ = ["Sleeper", "SleeperList", "Whereabouts"]

_HEAD = struct.Struct("<2Q6I")
_REST = struct.Struct(f"<{len(NAMES)}Q2Q16s")
_CALL, _ARGUMENT = NAMES.index("orig_ax"), NAMES.index("di")
_CALLS = 1 << 31


class Whereabouts(NamedTuple):
    """The place of a thread.

    Attributes:
        comm: its name.
        kernel: addresses of its kernel stack, innermost first; empty if there is none.
        registers: where it is in user space; None: not known.
        pthread: its thread pointer; 0: not known.
        call, argument: the system call that it is in, and its first argument; -1: not known.
    """

    comm: str
    kernel: tuple[int, ...]
    registers: SentRegisters | None
    pthread: int
    call: int = -1
    argument: int = 0


class Sleeper(NamedTuple):
    """A thread that is off its CPU.

    Attributes:
        pid, tid: its process and itself, in our PID namespace.
        started_ns: when it began: tells it from others of its number.
        state: "R" waits for a CPU, "S" sleeps, "D" sleeps uninterruptibly...: ps(1).
        is_here: whether its CPU is the one that we run on.
        where: None: where it was when it was listed last.
    """

    pid: int
    tid: int
    started_ns: int
    state: str
    is_here: bool
    where: Whereabouts | None


class SleeperList(Closing):
    """Lists them.

    Args:
        namespace: ours, as (device, inode) of `PidNamespace`; (0, 0): the initial one.

    Raises:
        KernelError: the kernel refused the program.
    """

    def __init__(self, namespace: tuple[int, int] = (0, 0)) -> None:
        self._machine = native_machine()
        spec = objects.spec("sleepers").set(
            own_tgid=os.getpid(),
            arm64_code_bits=native_code_bits(),
            pid_namespace_dev=namespace[0],
            pid_namespace_ino=namespace[1],
        )
        with ExitStack() as undo:
            self._loaded = undo.enter_context(load(sched_compat.adapt(spec)))
            program = self._loaded.programs["list_sleepers"]
            self._link = undo.enter_context(iterator.attach(program))
            self._closing = undo.pop_all()

    def forget(self) -> None:
        """List every thread whole the next time."""
        self._loaded.globals["generation"] += 1

    def read(self, pid: int = 0) -> Iterator[Sleeper]:
        """Return the sleepers of this moment, except for our own threads.

        Args:
            pid: list this process alone; 0: all.

        Raises:
            KernelError, OSError: the iterator could not be read.
        """
        data = self._listed(only_tgid=pid)
        at = 0
        while at < len(data):
            started, _, tgid, tid, state, here, whole, depth = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            where = None
            if whole:
                where = self._where(data, at, depth)
                at += _REST.size + 8 * depth
            yield Sleeper(tgid, tid, started, state_letter(state), bool(here), where)

    def resting(self, pid: int = 0) -> set[int]:
        """Return threads that have not run since `read` listed them, and do not run now.

        Args, raises: as `read`.
        """
        data = self._listed(only_tgid=pid, asks=True)
        return {tid for *_, tid, _, _, has_run, _ in _HEAD.iter_unpack(data) if not has_run}

    def _listed(self, **wanted: int) -> bytes:
        """Read the iterator, with the program's globals set to values other than 0 meanwhile."""
        changed = {name: value for name, value in wanted.items() if value}
        try:
            for name, value in changed.items():
                self._loaded.globals[name] = value
            return self._link.read()
        finally:
            for name in changed:
                self._loaded.globals[name] = 0

    def _where(self, data: bytes, at: int, depth: int) -> Whereabouts:
        *words, pthread, has_registers, comm = _REST.unpack_from(data, at)
        return Whereabouts(
            comm.partition(b"\0")[0].decode(errors="backslashreplace"),
            struct.unpack_from(f"<{depth}Q", data, at + _REST.size),
            read_registers(self._machine, words) if has_registers else None,
            pthread,
            words[_CALL] if has_registers and words[_CALL] < _CALLS else -1,
            words[_ARGUMENT],
        )

    def close(self) -> None:
        """Unload; again is harmless."""
        self._closing.close()
