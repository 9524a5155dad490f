"""A stack as viewers want it: functions instead of addresses, one path from root to leaf."""

from __future__ import annotations

from collections.abc import Callable

from purebpf.results.model.profile import Row
from purebpf.results.model.spelling import MISSED_KERNEL, MISSED_USER, UNKNOWN
from purebpf.results.shape.frame_table import Numbering
from purebpf.symbols.frame import Frame, Unknown
from purebpf.tuples import NamedTuple

__all__ = ["Function", "Functions", "at_line", "function", "in_file"]


class Function(NamedTuple):
    """The key that merges addresses.

    `kind` is "kernel", "user", "inlined", "jit", "python", "unknown" (`why` is the reason), or
    "process" for the comm at the head of a path, "thread" for the one below it, "divider" for the
    line between a stack and its waker's. `file` and `line` are "" and 0 where the lines of a
    function count as one.
    """

    name: str
    module: str
    kind: str
    why: str = ""
    file: str = ""
    line: int = 0


_MISSED_USER = Function(MISSED_USER, "", "unknown", "the user stack was lost")
_MISSED_KERNEL = Function(MISSED_KERNEL, "kernel", "unknown", "the kernel stack was lost")

_WOKEN_BY = Function("-- woken by --", "", "divider")


def function(entry: Frame | Unknown) -> Function:
    """The function an address belongs to."""
    if isinstance(entry, Unknown):
        why = f"{entry.reason} ({entry.detail})" if entry.detail else str(entry.reason)
        return Function(UNKNOWN, entry.module, "unknown", why)
    if entry.kind == "user":
        if entry.name.startswith("py::"):  # what CPython writes into its perf map
            return Function(entry.name, entry.module, "python")
        if entry.module == "[jit]":
            return Function(entry.name, entry.module, "jit")
    return Function(entry.name, entry.module, entry.kind)


def in_file(entry: Frame | Unknown) -> Function:
    """The same, with its source file."""
    unplaced = function(entry)
    return unplaced if isinstance(entry, Unknown) else unplaced._replace(file=entry.file)


def at_line(entry: Frame | Unknown) -> Function:
    """The same, each line for itself."""
    unplaced = function(entry)
    if isinstance(entry, Unknown):
        return unplaced
    return unplaced._replace(file=entry.file, line=entry.line)


class Functions:
    """Paths as numbers of functions, one table for all of them.

    The profile of the rows must live as long as this. `key` is
    `function`, `in_file` or `at_line`.
    """

    def __init__(self, key: Callable[[Frame | Unknown], Function] = function) -> None:
        self._numbers = Numbering(key, int)

    def path(self, row: Row) -> list[int]:
        """User frames, root to leaf, then kernel frames; a stack that was lost is one frame."""
        number = self._numbers.number
        user = [number(_MISSED_USER)] if row.user is None else self._numbers.of(row.user)
        kernel = [number(_MISSED_KERNEL)] if row.kernel is None else self._numbers.of(row.kernel)
        user.reverse()
        kernel.reverse()
        user += kernel
        return user

    def process(self, comm: str) -> int:
        """The number of the frame for a process."""
        return self._numbers.number(Function(comm, "", "process"))

    def thread(self, comm: str, tid: int) -> int:
        """The number of the frame for a thread."""
        return self._numbers.number(Function(f"{comm} ({tid})", "", "thread"))

    def threads(self, name: str, count: int) -> int:
        """The number of the frame for alike threads."""
        return self._numbers.number(Function(f"{name} ({count} threads)", "", "thread"))

    def divider(self) -> int:
        """The number of the frame between a stack and its waker's stack."""
        return self._numbers.number(_WOKEN_BY)

    def __len__(self) -> int:
        """Return the number of functions so far."""
        return len(self._numbers.table)

    @property
    def table(self) -> list[Function]:
        """Every function so far, by number."""
        return list(self._numbers)
