"""The time of each CPU, by tasks, softirqs, interrupt handlers and idle; the time of each task."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from typing import Any

from purebpf import objects
from purebpf.closable import Closing
from purebpf.loader.host import cpus as cpu_numbers
from purebpf.loader.load.load import load
from purebpf.observe.instruments.task_filter import cpu_words
from purebpf.syscall import host_clock
from purebpf.tuples import NamedTuple

__all__ = ["CpuShare", "CpuShares", "Shares", "TaskShare"]


class CpuShare(NamedTuple):
    """The time of a CPU in an interval, in nanoseconds; the four parts add up to the interval.

    `irq_ns`: in handlers of device interrupts. `softirq_ns`: in softirqs, without these.
    `tasks_ns`: in all tasks, without both; interrupts of the CPU's own timer count there.
    """

    cpu: int
    tasks_ns: int = 0
    softirq_ns: int = 0
    irq_ns: int = 0
    idle_ns: int = 0


class TaskShare(NamedTuple):
    """The time of a task on all measured CPUs in an interval, in nanoseconds."""

    tid: int
    pid: int
    comm: str
    time_ns: int


class Shares(NamedTuple):
    """The CPUs, and the tasks that ran, most time first."""

    cpus: tuple[CpuShare, ...]
    tasks: tuple[TaskShare, ...]


class CpuShares(Closing):
    """Measures from when its context is entered; `take()` reads, `detach()` ends it.

    Args:
        cpus: these CPUs only; (): all that are online.

    Raises:
        KernelError: the kernel refused something; nothing stays open.
        NotSupportedError: the kernel does not show its types (CONFIG_DEBUG_INFO_BTF).
    """

    def __init__(self, cpus: Collection[int] = ()) -> None:
        self._cpus = tuple(cpus) or cpu_numbers.online()
        spec = objects.spec("cpu_shares")
        if cpus:
            spec = spec.set(has_cpus=True, cpus=cpu_words(cpus))
        self._cpus_before: dict[int, CpuShare] = {}
        self._tasks_before: dict[int, int] = {}
        self._ended_ns = 0
        with ExitStack() as stack:
            self._object = stack.enter_context(load(spec))
            self._links = stack.enter_context(ExitStack())
            for program in self._object.programs.values():
                self._links.enter_context(program.attach())
            self._started_ns = host_clock.monotonic_ns()
            self._object.globals["started_ns"] = self._started_ns
            self._owned = stack.pop_all()

    def detach(self) -> None:
        """End the measurement; `take()` still reads it."""
        self._ended_ns = host_clock.monotonic_ns()
        self._links.close()

    def count_full(self) -> int:
        """Return the nanoseconds of tasks that found no room in the table of 10,240."""
        return sum(state.tasks_full for state in self._object.maps["cpu_times"][0])

    def take(self) -> Shares:
        """Return the times since the start, or since the last call.

        Raises:
            KernelError: a map could not be read.
        """
        tasks = self._read_tasks()  # before the CPUs, whose tasks it may add
        now_ns = self._ended_ns or host_clock.monotonic_ns()
        states: Any = self._object.maps["cpu_times"][0]
        totals = {cpu: self._read_cpu(cpu, states[cpu], now_ns, tasks) for cpu in self._cpus}
        shares = Shares(
            tuple(_subtract(total, self._cpus_before.get(cpu)) for cpu, total in totals.items()),
            tuple(sorted(self._new(tasks), key=lambda task: (-task.time_ns, task.tid))),
        )
        self._cpus_before = totals
        self._tasks_before = {tid: task.time_ns for tid, task in tasks.items()}
        return shares

    def _read_tasks(self) -> dict[int, TaskShare]:
        tasks = {}
        for tid, per_cpu in self._object.maps["tasks"].items():
            latest = max(per_cpu, key=lambda part: part.ns)
            total = sum(part.ns for part in per_cpu)
            tasks[tid] = TaskShare(tid, latest.tgid, latest.comm, total)
        return tasks

    def _read_cpu(self, cpu: int, state: Any, now_ns: int, tasks: dict[int, TaskShare]) -> CpuShare:
        """Return the times of a CPU, and add the task that runs there to `tasks`.

        A CPU without any event since the start was idle.
        """
        left_ns = max(0, now_ns - (state.last_ns or self._started_ns))
        total = CpuShare(cpu, state.tasks_ns, state.softirq_ns, state.irq_ns, state.idle_ns)
        if state.irqs:
            total = total._replace(irq_ns=total.irq_ns + left_ns)
        elif state.softirqs:
            total = total._replace(softirq_ns=total.softirq_ns + left_ns)
        elif not state.tid:
            total = total._replace(idle_ns=total.idle_ns + left_ns)
        else:
            total = total._replace(tasks_ns=total.tasks_ns + left_ns)
            share = tasks.get(state.tid, TaskShare(state.tid, state.tgid, state.comm, 0))
            more_ns = left_ns + state.current_ns
            tasks[state.tid] = share._replace(time_ns=share.time_ns + more_ns)
        return total

    def _new(self, tasks: dict[int, TaskShare]) -> list[TaskShare]:
        """Return the tasks that ran since the last call, with that time."""
        since = [
            task._replace(time_ns=task.time_ns - self._tasks_before.get(tid, 0))
            for tid, task in tasks.items()
        ]
        return [task for task in since if task.time_ns > 0]

    def close(self) -> None:
        """Detach and unload; again is harmless."""
        self._owned.close()


def _subtract(now: CpuShare, before: CpuShare | None) -> CpuShare:
    if before is None:
        return now
    parts = (max(0, one - other) for one, other in zip(now[1:], before[1:], strict=True))
    return CpuShare(now.cpu, *parts)
