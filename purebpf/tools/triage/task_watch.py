"""`TaskWatch`: asyncio's tasks that wait in Python programs, at several looks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack

from purebpf.closable import Closing
from purebpf.errors import PurebpfError
from purebpf.findings.facts import Goroutines, StackFrame
from purebpf.observe.runtimes.cpython.asyncio_file import find_task_layout
from purebpf.observe.runtimes.cpython.python_process import PythonProcess, find_python
from purebpf.runtimes.cpython.task_layout import TaskLayout
from purebpf.runtimes.cpython.tasks import Task, read_tasks
from purebpf.runtimes.memory import UnreadableError
from purebpf.syscall import proc
from purebpf.syscall.process_memory import reading_others
from purebpf.tools.triage.stack_looks import StackLooks

__all__ = ["TaskWatch"]

_PYTHON = re.compile(r"/(python|uwsgi|gunicorn)[^/]*$")
_ASYNCIO = "/_asyncio."
"""The module of C in the mappings of a process; a static build has none, and is not read."""
_MOST_PROCESSES, _MOST_LOOKED_AT = 8, 60


class TaskWatch(Closing):
    """Looks at each `tick`; no thread stops.

    Args:
        exe: the executable of a process.
    """

    def __init__(self, exe: Callable[[int], str]) -> None:
        self._exe = exe
        self._owned = ExitStack()
        self._processes: dict[int, tuple[PythonProcess, TaskLayout]] | None = None
        self._looks: StackLooks[tuple[StackFrame, ...]] = StackLooks()

    def tick(self, pids: Callable[[], Iterable[int]]) -> None:
        """Look once. `pids` has the processes of the machine; it is asked once."""
        with reading_others():
            if self._processes is None:
                self._processes = dict(self._find(pids()))
            for pid, (python, layout) in self._processes.items():
                self._look(pid, python, layout)

    def _find(self, pids: Iterable[int]) -> Iterable[tuple[int, tuple[PythonProcess, TaskLayout]]]:
        running = (pid for pid in pids if _PYTHON.search(self._exe(pid)))
        found = 0
        for _, pid in zip(range(_MOST_LOOKED_AT), running, strict=False):
            if found == _MOST_PROCESSES:
                return
            if _ASYNCIO not in (proc.maps(pid) or ""):
                continue
            try:
                python = find_python(pid)
                if python is None:
                    continue
                self._owned.enter_context(python)
                layout = find_task_layout(pid, python)
            except PurebpfError:
                continue
            if layout is not None:
                found += 1
                yield pid, (python, layout)

    def _look(self, pid: int, python: PythonProcess, layout: TaskLayout) -> None:
        try:
            look = python.look()
            layouts = (python.layout, layout)
            tasks = read_tasks(python.version, layouts, look.memory, look.codes, look.interpreters)
        except (PurebpfError, UnreadableError):
            tasks = []
        seen = {(task.address, _stack(task)) for task in tasks if task.frames}
        self._looks.add(pid, Counter(stack for _, stack in seen), seen)

    def finish(self) -> tuple[Goroutines, ...]:
        """Return the stacks of tasks that waited, the innermost coroutine first."""
        return tuple(
            Goroutines(pid, stack, counts, stuck)
            for pid in self._looks.pids
            for stack, counts, stuck in self._looks.of_process(pid)
        )

    def close(self) -> None:
        """Release the memory of the processes; again is harmless."""
        self._owned.close()


def _stack(task: Task) -> tuple[StackFrame, ...]:
    return tuple(StackFrame(f.name, f.file, f.line, "python") for f in task.frames)
