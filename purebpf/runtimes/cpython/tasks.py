"""asyncio's tasks: their names, where each waits, and which tasks wait for it.

Up to 3.13 the module asyncio.tasks has sets of them, `_all_tasks` or `_scheduled_tasks` and
`_eager_tasks`; from 3.14 on, threads and interpreters have linked lists (Modules/_asynciomodule.c).
Up to 3.13 a task stores the object that it waits for; from 3.14 on, each task and future names its
awaiters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from purebpf.runtimes.cpython.code_objects import CodeObjects
from purebpf.runtimes.cpython.coroutines import read_chain
from purebpf.runtimes.cpython.frames import FrameReader
from purebpf.runtimes.cpython.layout import NONE, Layout
from purebpf.runtimes.cpython.objects import Objects
from purebpf.runtimes.cpython.task_layout import TaskLayout
from purebpf.runtimes.cpython.threads import Interpreter
from purebpf.runtimes.interpreted import InterpretedFrame
from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.tuples import NamedTuple

__all__ = ["MAX_TASKS", "Task", "read_tasks"]

MAX_TASKS = 10_000
_TASK = "_asyncio.Task"
_MOST_AWAITERS = 8
"""How many futures may lie between two tasks: gather() in gather()."""
_MOST_WAITS = 100_000
"""Of all tasks for each other: a process may say that each waits for all."""


class Task(NamedTuple):
    """A task that has not ended.

    Attributes:
        address: of the object.
        name: "Task-1", or the one that the program gave it.
        frames: its coroutine and those that it awaits, innermost first; () of one that runs.
        is_running: whether a thread executes it now.
        waits_for: the tasks that it waits for, by their addresses.
        waits_on: the type of another object that it waits for, "Future"; "" for none.
        problem: why this is not all; "" if it is.
    """

    address: int
    name: str
    frames: tuple[InterpretedFrame, ...]
    is_running: bool
    waits_for: tuple[int, ...]
    waits_on: str
    problem: str


def read_tasks(
    version: tuple[int, int],
    layouts: tuple[Layout, TaskLayout],
    memory: Memory,
    codes: CodeObjects,
    interpreters: Sequence[Interpreter],
    *,
    before: Iterable[Task] = (),
) -> list[Task]:
    """The tasks of a process, in no order; at most `MAX_TASKS`.

    A list that changes while it is read may lack any of its tasks. Of those in `before`, which
    another reading had, the ones that have not ended are there all the same.
    """
    reader = _Reader(version, layouts, memory, codes)
    addresses: list[int] = []
    for interpreter in interpreters:
        addresses += reader.addresses(interpreter)
    listed: dict[int, str | None] = dict.fromkeys(addresses)
    names = listed | {task.address: task.name for task in before if task.address not in listed}
    unique = islice(names, MAX_TASKS)
    tasks = [task for task in map(reader.task, unique) if task is not None]
    tasks = [task for task in tasks if names[task.address] in (None, task.name)]
    return reader.with_awaiters(tasks) if layouts[1].awaited_by != NONE else tasks


class _Reader:
    def __init__(
        self,
        version: tuple[int, int],
        layouts: tuple[Layout, TaskLayout],
        memory: Memory,
        codes: CodeObjects,
    ) -> None:
        self._version = version
        layout, self._layout = layouts
        self._objects = Objects(version, layout, memory, self._layout.type_base)
        self._frames = FrameReader(version, layout, memory, codes)

    def addresses(self, interpreter: Interpreter) -> Iterator[int]:
        """Yield the tasks of an interpreter; some may have ended."""
        try:
            if self._layout.thread_tasks == NONE:
                yield from self._of_module(interpreter)
                return
        except UnreadableError:
            return
        heads = [thread.address + self._layout.thread_tasks for thread in interpreter.threads]
        for head in [*heads, interpreter.address + self._layout.interpreter_tasks]:
            yield from self._linked(head)

    def _of_module(self, interpreter: Interpreter) -> Iterator[int]:
        objects = self._objects
        modules = objects.word(interpreter.address + self._layout.modules)
        module = objects.lookup(modules, "asyncio.tasks")
        if not module:
            return
        names = objects.module_dict(module)
        for name in ("_all_tasks", "_scheduled_tasks"):
            if weak_set := objects.lookup(names, name):
                yield from self._of_weak_set(weak_set)
        if eager := objects.lookup(names, "_eager_tasks"):
            yield from objects.set_items(eager)

    def _of_weak_set(self, address: int) -> Iterator[int]:
        """Return the members of a weakref.WeakSet: its first attribute that is a set, `data`."""
        objects = self._objects
        for value in objects.attribute_values(address, dict_at=0):
            if self._is_a(value, "set"):
                yield from filter(None, map(objects.referent, objects.set_items(value)))
                return

    def _linked(self, head: int) -> Iterator[int]:
        """The tasks of a list of struct llist_node: its first word is the next one."""
        seen = {head}
        try:
            at = self._objects.word(head)
            while at and at not in seen and len(seen) <= MAX_TASKS:
                seen.add(at)
                yield at - self._layout.task_node
                at = self._objects.word(at)
        except UnreadableError:
            return

    def task(self, address: int) -> Task | None:
        """A task; None: it has ended, or there is none."""
        objects, layout = self._objects, self._layout
        try:
            if not objects.derives_from(address, _TASK):
                return self._of_python(address)
            coroutine = objects.word(address + layout.task_coroutine)
            name = self._name(objects.word(address + layout.task_name))
            chain = read_chain(self._version, layout, objects, self._frames, coroutine)
            if chain.has_ended and not chain.frames:
                return None
            waits_for, waits_on = self._awaited(self._waiter(address, chain.awaits))
        except UnreadableError:
            return None
        frames = () if chain.is_running else chain.frames
        return Task(address, name, frames, chain.is_running, waits_for, waits_on, chain.problem)

    def _of_python(self, address: int) -> Task | None:
        """One of a class that does not derive from C's: its attributes are not read."""
        kind = self._objects.type_name(address)
        if "Task" not in kind:
            return None
        return Task(address, kind, (), False, (), "", f"a {kind} that is written in Python")

    def _waiter(self, address: int, awaits: int) -> int:
        at = self._layout.task_waiter
        return awaits if at == NONE else self._objects.word(address + at)

    def _name(self, address: int) -> str:
        if self._objects.type_name(address) == "int":
            return f"Task-{self._objects.number(address)}"
        return self._objects.string(address)

    def _awaited(self, future: int) -> tuple[tuple[int, ...], str]:
        """The tasks behind a future, or its type."""
        objects = self._objects
        if not future:
            return (), ""
        if objects.derives_from(future, _TASK):
            return (future,), ""
        kind = objects.type_name(future).rpartition(".")[2]
        if self._layout.awaited_by != NONE or kind != "_GatheringFuture":
            return (), kind
        return tuple(self._gathered(future)), kind

    def _gathered(self, future: int) -> Iterator[int]:
        """The tasks of asyncio.gather(): an attribute that is a list of them."""
        objects = self._objects
        for value in objects.attribute_values(future, dict_at=self._layout.future_dict):
            if self._is_a(value, "list"):
                for item in objects.list_items(value):
                    if objects.derives_from(item, _TASK):
                        yield item

    def _is_a(self, address: int, kind: str) -> bool:
        """Return True if an attribute has a type; behind the last attribute lies arbitrary
        memory.
        """
        try:
            return self._objects.type_name(address) == kind
        except UnreadableError:
            return False

    def with_awaiters(self, tasks: list[Task]) -> list[Task]:
        """Return the tasks with their targets, from the objects that name their awaiters."""
        known = {task.address for task in tasks}
        waits = {task.address: dict.fromkeys(task.waits_for) for task in tasks}
        left = _MOST_WAITS
        for task in tasks:
            for awaiter in islice(self._awaiters([task.address], known), left):
                waits[awaiter][task.address] = None
                left -= 1
        return [task._replace(waits_for=tuple(waits[task.address])) for task in tasks]

    def _awaiters(self, addresses: Iterable[int], known: set[int]) -> set[int]:
        """The tasks that wait for an object, directly or through futures."""
        found_tasks: set[int] = set()
        turn, seen = set(addresses), set(addresses)
        for _ in range(_MOST_AWAITERS):
            awaiters = (awaiter for address in turn for awaiter in self._awaited_by(address))
            turn = set(islice(awaiters, MAX_TASKS)) - seen
            seen |= turn
            found_tasks |= turn & known
            turn -= known
        return found_tasks

    def _awaited_by(self, address: int) -> list[int]:
        layout, objects = self._layout, self._objects
        try:
            awaiter = objects.word(address + layout.awaited_by)
            is_set = objects.memory.number(address + layout.awaited_by_is_set, 1)
            if not awaiter:
                return []
            return objects.set_items(awaiter) if is_set else [awaiter]
        except UnreadableError:
            return []
