"""Python frames among the addresses of a stack: words that no address is.

bpf_src/include/python_layout.h: 11 bits of tag, 1 that the evaluation loop begins there, 28 for the
number of the code object, 24 for the offset of the instruction. They come behind the native frames.
Tasks of asyncio (bpf_src/include/python_tasks.h) may come behind the words of the thread: marks,
each with words for the coroutines of one task, the outermost first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from purebpf.enums import IntEnum
from purebpf.symbols.frame import Frame, Unknown
from purebpf.tuples import NamedTuple

__all__ = [
    "CODE_SHIFT",
    "DEEP_PYTHON_FRAMES",
    "ENTRY",
    "PYTHON_FRAMES",
    "TAG",
    "AwaitingTask",
    "Mark",
    "PythonNames",
    "count_native",
    "is_cut",
    "split_tasks",
]

_TAG, _TAG_SHIFT = 0x2A5, 53
TAG = _TAG << _TAG_SHIFT
ENTRY, CODE_SHIFT = 1 << 52, 24
_CODE_MASK = (1 << 28) - 1
_MARK_CODE, _NO_FRAME = _CODE_MASK - 1, _CODE_MASK - 2
PYTHON_FRAMES, DEEP_PYTHON_FRAMES = 96, 1000
"""Python frames of a stack, at most; and with `--call-graph deep`."""


class Mark(IntEnum):
    """The kind of object that awaits the task before: enum mark of python_tasks.h."""

    TASK = 1
    SEVERAL = 2
    MORE = 3
    UNKNOWN = 4


class AwaitingTask(NamedTuple):
    """The object that awaits the task before.

    Attributes:
        mark: a task, or why there is none here.
        words: its coroutines, innermost first.
    """

    mark: int
    words: Sequence[int]


class PythonNames(Protocol):
    """The interface of tables of Python frames:
    `purebpf.observe.runtimes.cpython.python_tables.PythonTables`.
    """

    def merge(
        self, tgid: int, addresses: Sequence[int], native: Sequence[Frame | Unknown]
    ) -> Sequence[Frame | Unknown]:
        """A user stack with its Python frames: `native` are the names of its native ones."""
        ...


def is_cut(word: int) -> bool:
    """Return True if a word replaces frames that could not be read."""
    return word >> CODE_SHIFT & _CODE_MASK == _NO_FRAME


def count_native(addresses: Sequence[int]) -> int:
    """Return how many of a stack's addresses are native; the others are words for Python frames."""
    count = len(addresses)
    while count and addresses[count - 1] >> _TAG_SHIFT == _TAG:
        count -= 1
    return count


def split_tasks(words: Sequence[int]) -> tuple[Sequence[int], int, list[AwaitingTask]]:
    """The words of a thread's own Python frames, and the tasks that await the one it runs.

    Args:
        words: all that are behind the native frames.

    Returns: the thread's own words; how many of them belong to its task; the awaiting tasks,
        nearest first.
    """
    marks = [at for at, word in enumerate(words) if word >> CODE_SHIFT & _CODE_MASK == _MARK_CODE]
    if not marks:
        return words, len(words), []
    awaiting = [
        AwaitingTask(words[at] >> 8 & 0xFF, words[at + 1 : end][::-1])
        for at, end in zip(marks, [*marks[1:], len(words)], strict=True)
    ]
    return words[: marks[0]], words[marks[0]] & 0xFF, awaiting
