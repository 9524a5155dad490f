"""asyncio's tasks in a process, for `--async`."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping

from purebpf.errors import NotSupportedError
from purebpf.observe.runtimes.cpython.asyncio_file import find_task_layout
from purebpf.observe.runtimes.cpython.python_process import PythonProcess
from purebpf.runtimes.cpython.task_layout import TaskLayout
from purebpf.runtimes.cpython.tasks import MAX_TASKS, Task, read_tasks
from purebpf.tools.dump.model import DumpedFrame, DumpedTask

__all__ = ["dump_tasks"]

_ROUNDS = 5
_PAUSE_S = 0.005
_NUMBERS = re.compile(r"(\d+)")


def dump_tasks(
    pid: int, python: PythonProcess | None, notes: list[str]
) -> tuple[DumpedTask, ...] | None:
    """The tasks that have not ended, by name; None: they cannot be read, and `notes` says why."""
    if python is None:
        notes.append("--async: the process does not run an interpreter that purebpf can read")
        return None
    try:
        layout = find_task_layout(pid, python)
    except NotSupportedError as error:
        notes.append(str(error))
        return None
    if layout is None:
        return ()
    tasks = _read(python, layout, ())
    for _ in range(_ROUNDS - 1):
        time.sleep(_PAUSE_S)
        before, tasks = tasks, _read(python, layout, tasks)
        if before == tasks:
            break
    if len(tasks) >= MAX_TASKS:
        notes.append(f"only {MAX_TASKS} tasks were read")
    return _describe(tasks, {task.address: task for task in before})


def _read(python: PythonProcess, layout: TaskLayout, before: Iterable[Task]) -> list[Task]:
    look = python.look()
    layouts = (python.layout, layout)
    return read_tasks(
        python.version, layouts, look.memory, look.codes, look.interpreters, before=before
    )


def _describe(tasks: list[Task], before: Mapping[int, Task]) -> tuple[DumpedTask, ...]:
    """Return the tasks; some may have changed since they were read before."""
    names = {task.address: task.name for task in tasks}
    awaited_by = defaultdict(list)
    for task in tasks:
        for address in task.waits_for:
            awaited_by[address].append(task.name)
    dumped = [
        _dumped(task, names, awaited_by[task.address], has_changed=before.get(task.address) != task)
        for task in tasks
    ]
    return tuple(sorted(dumped, key=_by_name))


def _dumped(
    task: Task, names: dict[int, str], awaited_by: list[str], *, has_changed: bool
) -> DumpedTask:
    waits_for = sorted(names[address] for address in task.waits_for if address in names)
    frames = [DumpedFrame("python", f.name, f.file, f.line) for f in task.frames]
    problems = [task.problem] if task.problem else []
    if has_changed:
        problems.append("it changed while it was read: this may be of different moments")
    state = "runs" if task.is_running else "waits" if waits_for or task.waits_on else "ready"
    return DumpedTask(
        name=task.name,
        state=state,
        waits_for=tuple(waits_for),
        waits_on=task.waits_on,
        awaited_by=tuple(sorted(awaited_by)),
        frames=tuple(frames),
        problems=tuple(problems),
    )


def _by_name(task: DumpedTask) -> list[tuple[int, str]]:
    """Task-2 before Task-10."""
    parts = _NUMBERS.split(task.name)
    return [(int(part), "") if at % 2 else (-1, part) for at, part in enumerate(parts)]
