"""`GoroutineWatch`: the goroutines of Go programs that wait, at several looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from purebpf.findings.facts import Goroutines
from purebpf.findings.ownership import is_interpreter
from purebpf.measure.activities import named_frames
from purebpf.observe.runtimes.golang.goroutines_now import find_goroutines, read_goroutines
from purebpf.observe.runtimes.golang.inlined_frames import name_stacks
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.symbols.budget import Budget
from purebpf.syscall.process_memory import reading_others
from purebpf.tools.triage.stack_looks import StackLooks

__all__ = ["GoroutineWatch"]

_FEWEST_THREADS = 3
"""The threads of Go's runtime."""
_MOST_PROCESSES, _MOST_GOROUTINES = 8, 500
"""20 ms a process at most; more goroutines are thinned out."""


class GoroutineWatch:
    """Looks at each `tick`; no goroutine and no thread stops.

    Args:
        exe: the executable of a process.
        budget: of naming.
    """

    def __init__(self, exe: Callable[[int], str], budget: Budget) -> None:
        self._exe = exe
        self._budget = budget
        self._others: set[str] = set()
        self._lists: dict[int, int] | None = None
        self._looks: StackLooks[tuple[int, ...]] = StackLooks()

    @property
    def programs(self) -> frozenset[int]:
        """The processes whose goroutines it looks at."""
        return frozenset(self._lists or ())

    def tick(self, threads: Callable[[], dict[int, int]]) -> None:
        """Look once. `threads` has the number of threads by process; it is asked once."""
        with reading_others():
            if self._lists is None:
                self._lists = dict(self._find(threads()))
            for pid, listed in self._lists.items():
                self._look(pid, listed)

    def _find(self, threads: dict[int, int]) -> Iterable[tuple[int, int]]:
        found = 0
        for pid, many in sorted(threads.items(), key=lambda item: -item[1]):
            exe = self._exe(pid)
            if many < _FEWEST_THREADS or exe in self._others or is_interpreter(exe):
                continue
            listed = find_goroutines(pid)
            if listed is None:
                self._others.add(exe)
                continue
            yield pid, listed
            found += 1
            if found == _MOST_PROCESSES:
                return

    def _look(self, pid: int, listed: int) -> None:
        goroutines, weight = read_goroutines(pid, listed, _MOST_GOROUTINES)
        counts: Counter[tuple[int, ...]] = Counter()
        for one in goroutines:
            counts[one.addresses] += round(weight)
        self._looks.add(pid, counts, ((one, one.addresses) for one in goroutines))

    def finish(self) -> tuple[Goroutines, ...]:
        """Name the stacks; goroutines of the runtime itself are left out."""
        symbolizer = Symbolizer(budget=self._budget)
        return tuple(one for pid in self._looks.pids for one in self._of_process(symbolizer, pid))

    def _of_process(self, symbolizer: Symbolizer, pid: int) -> Iterable[Goroutines]:
        stacks = list(self._looks.of_process(pid))
        named = name_stacks(symbolizer, pid, [addresses for addresses, *_ in stacks])
        for stack, (_, counts, stuck) in zip(named, stacks, strict=True):
            user = named_frames(stack)
            if all(frame.name.startswith("runtime.") for frame in user):
                continue
            yield Goroutines(pid, user, counts, stuck)
