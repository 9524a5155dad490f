"""`Answers`: the answers of a `Symbolizer` for addresses, for reuse."""

from __future__ import annotations

from collections.abc import Callable

from purebpf.symbols.frame import Frame, Reason, Unknown
from purebpf.symbols.intervals import RangeMap
from purebpf.tuples import NamedTuple

__all__ = ["Answer", "Answers", "Asked", "Code", "UserAnswers"]

Answer = Frame | Unknown

_MAY_CHANGE = frozenset(
    {
        Reason.ANONYMOUS,
        Reason.NOT_IN_PERF_MAP,
        Reason.NOT_IN_JITDUMP,
        Reason.UNTRUSTED_PERF_MAP,
        Reason.STALE_PERF_MAP,
        Reason.OVER_BUDGET,
        Reason.INTERRUPTED,
    }
)
"""Code that is being generated: its name may be written down a moment later. And what naming
stopped at: its account will be full again."""


class Answers(dict[int, Answer]):
    """Answers by address; a missing one is computed when needed."""

    def __init__(self, resolve: Callable[[int, int], Answer], back: int) -> None:
        super().__init__()
        self._resolve = resolve
        self._back = back
        self._earlier: dict[int, Answer] = {}

    @property
    def count(self) -> int:
        """The number of answers."""
        return len(self) + len(self._earlier)

    def rest(self) -> None:
        """Forget those that were not asked for since the last call of this."""
        self._earlier = dict(self)
        self.clear()

    def __missing__(self, address: int) -> Answer:
        answer = self._earlier.pop(address, None)
        if answer is not None:
            self[address] = answer
            return answer
        answer = self._resolve(address, self._back)
        if not isinstance(answer, Unknown) or answer.reason not in _MAY_CHANGE:
            self[address] = answer
        return answer


Code = RangeMap[tuple[int, RangeMap[Frame]]]
"""Code by address: what to take from one for its file's virtual offset, and functions by that."""


class Asked(NamedTuple):
    """A process, the name of the thread (as for `Symbolizer.user`), and the answers about it."""

    pid: int
    comm: str | None
    code: Code


class UserAnswers(NamedTuple):
    """Answers about a process while `AddressSpaces.version` stays the same."""

    version: int
    exact: Answers
    callers: Answers
    code: Code
