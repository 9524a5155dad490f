"""Words for Python frames, and for tasks of asyncio behind them."""

from __future__ import annotations

from purebpf import objects
from purebpf.observe.runtimes.cpython import task_table
from purebpf.symbols.python_words import (
    CODE_SHIFT,
    ENTRY,
    TAG,
    AwaitingTask,
    Mark,
    count_native,
    split_tasks,
)

LARGEST = (1 << 28) - 4
"""The number of the last code object that BPF names."""


def word(number: int) -> int:
    return TAG | number << CODE_SHIFT | 7


def mark(kind: Mark, of_task: int) -> int:
    return TAG | 0xFFFFFFE << CODE_SHIFT | kind << 8 | of_task


def test_a_stack_without_tasks_is_all_the_threads_own() -> None:
    words = [word(2), word(LARGEST), word((1 << 28) - 1) | ENTRY]
    assert split_tasks(words) == (words, 3, [])
    assert split_tasks([]) == ([], 0, [])


def test_coroutines_of_each_task_come_innermost_first() -> None:
    own = [word(2), word(4) | ENTRY, word(6) | ENTRY]
    words = [
        *own,
        *(mark(Mark.TASK, 2), word(8), word(10), word(12)),
        *(mark(Mark.TASK, 2), word(14)),
        mark(Mark.SEVERAL, 2),
    ]
    assert split_tasks(words) == (
        own,
        2,
        [
            AwaitingTask(Mark.TASK, [word(12), word(10), word(8)]),
            AwaitingTask(Mark.TASK, [word(14)]),
            AwaitingTask(Mark.SEVERAL, []),
        ],
    )
    assert count_native([0x1000, 0x2000, *words]) == 2


def test_what_is_published_has_the_size_of_its_struct() -> None:
    for name in ("profile", "offcpu"):
        assert objects.spec(name).maps["python_tasks"].value_size == task_table._TASKS.size
