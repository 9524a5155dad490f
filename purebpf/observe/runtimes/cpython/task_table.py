"""`TaskTable`: where processes keep asyncio's tasks, for bpf_src/include/python_tasks.h."""

from __future__ import annotations

import errno
import struct
from collections.abc import Collection
from contextlib import suppress

from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.rings.record_types import RecordMap
from purebpf.observe.runtimes.cpython.asyncio_file import find_task_layout
from purebpf.observe.runtimes.cpython.python_process import PythonProcess
from purebpf.runtimes.cpython.task_layout import TaskLayout
from purebpf.syscall import bpf

__all__ = ["TaskTable"]

_TASKS = struct.Struct("<Q10H3Bx")
_KEPT_SINCE = (3, 14)
_MOST_NOTES = 4096
_TYPE_FLAGS = 168
"""In a type object, of 3.14 and 3.15."""

_STATES = {(3, 14): (254, 2, 1), (3, 15): (1, 3, 2)}
"""Of struct python_tasks, from `suspended` on: enum _framestate (pycore_frame.h), and how many of a
suspended frame's last words may be what it awaits."""


class TaskTable:
    """Publishes where an interpreter of CPython 3.14 or later has the task that a thread runs.

    Args:
        tasks: the map `python_tasks`; it must stay open.
    """

    def __init__(self, tasks: RecordMap) -> None:
        self._table = tasks
        self._known: dict[int, int] = {}
        self._waiting: set[int] = set()
        self._unsupported: dict[int, str] = {}

    def publish(self, tgid: int, process: int, generation: int, python: PythonProcess) -> None:
        """Say where a process has its tasks, if it has any yet.

        Args:
            tgid: in our PID namespace.
            process: the same in the initial one.
            generation: the number of its entry in `InterpreterTable`.
            python: its interpreter.

        Raises:
            KernelError: the kernel refused an element.
        """
        self._waiting.discard(generation)
        version = ".".join(map(str, python.version))
        if python.version < _KEPT_SINCE:
            why = f"CPython {version} does not keep what awaits the task that runs, as 3.14 does"
            self._note(tgid, why)
            return
        try:
            layout = find_task_layout(tgid, python)
            if layout is None:  # it has not imported asyncio
                self._waiting.add(generation)
                return
            packed = _pack(python.version, layout, generation)
        except NotSupportedError as error:
            self._note(tgid, str(error))
            return
        try:
            bpf.map_update_elem(self._table.fileno(), process.to_bytes(4, "little"), packed)
        except KernelError as error:
            if error.errno != errno.E2BIG:
                raise
            return  # `pythons` has no room, either
        self._known[generation] = process
        self._unsupported.pop(tgid, None)

    def _note(self, tgid: int, why: str) -> None:
        """Keep why a process has none, after its end as well."""
        if len(self._unsupported) >= _MOST_NOTES:
            self._unsupported.clear()
        self._unsupported[tgid] = why

    def is_waiting(self, generation: int) -> bool:
        """Return True if a process had not imported asyncio yet when it was published."""
        return generation in self._waiting

    def hints(self, pids: Collection[int] | None) -> list[str]:
        """Return the reasons why some of the processes have no tasks in their stacks, each once."""
        skipped = self._unsupported.items()
        reasons = {why: pid for pid, why in skipped if pids is None or pid in pids}
        return [
            f"stacks of process {pid} are as without --async: {why}" for why, pid in reasons.items()
        ]

    def forget(self, generation: int) -> None:
        """Forget a program that has ended."""
        self._waiting.discard(generation)
        process = self._known.pop(generation, None)
        if process is not None and process not in self._known.values():
            with suppress(KernelError):  # ENOENT
                bpf.map_delete_elem(self._table.fileno(), process.to_bytes(4, "little"))


def _pack(version: tuple[int, int], layout: TaskLayout, generation: int) -> bytes:
    """The struct python_tasks."""
    offsets = (
        *(layout.running_task, layout.task_coroutine),
        *(layout.awaited_by, layout.is_task, layout.awaited_by_is_set),
        *(layout.type_base, _TYPE_FLAGS),
        *(layout.coroutine_frame, layout.coroutine_state, layout.frame_top),
    )
    if version not in _STATES or max(offsets) >= 1 << 16:
        raise NotSupportedError("--async", "the tasks of this CPython lie elsewhere")
    return _TASKS.pack(generation, *offsets, *_STATES[version])
