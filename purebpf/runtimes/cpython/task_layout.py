"""The offsets of asyncio's tasks and of a suspended coroutine's target, for one version."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["TaskLayout"]


class TaskLayout(NamedTuple):
    """Offsets in bytes; `NONE` where a version does not have it.

    Attributes:
        modules: in an interpreter, the dict of its modules.
        type_base: in a type, its base.
        coroutine_frame: in a coroutine, generator or asynchronous generator: its frame; before
            3.11 a pointer to it.
        coroutine_state: whether it runs: in the coroutine, in 3.10 in its frame.
        frame_values: in a frame, where its values begin; before 3.11 a pointer to them.
        frame_top: in a frame, how many values it has; before 3.10 and from 3.14 on a pointer
            behind the last one.
        task_coroutine, task_name, task_waiter: in a task; the last is the future it waits for.
        future_dict: in a future of a class written in Python, its attributes: a dict, or the
            values themselves (3.13).
        thread_tasks, interpreter_tasks: in a thread state, and in an interpreter, a list of tasks
            (3.14).
        task_node: in a task, its place in such a list (3.14).
        awaited_by, awaited_by_is_set, is_task: in a task or future (3.14).
        running_task: in a thread state (3.14).
    """

    modules: int
    type_base: int
    coroutine_frame: int
    coroutine_state: int
    frame_values: int
    frame_top: int
    task_coroutine: int
    task_name: int
    task_waiter: int
    future_dict: int
    thread_tasks: int = -1
    interpreter_tasks: int = -1
    task_node: int = -1
    awaited_by: int = -1
    awaited_by_is_set: int = -1
    is_task: int = -1
    running_task: int = -1
