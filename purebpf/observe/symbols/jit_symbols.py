"""Names of code that processes generate while they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from purebpf.loader.host.backoff import Retries
from purebpf.observe.symbols.jit_dumps import JitDumps
from purebpf.observe.symbols.jit_maps import JitMaps
from purebpf.symbols.budget import Budget
from purebpf.symbols.frame import Reason
from purebpf.symbols.proc_maps import Mapping

__all__ = ["GeneratedCode"]


class GeneratedCode:
    """The names that just-in-time compilers write to perf maps and jitdumps, which grow all the
    time.

    Both are looked at again when an address is not in them, after ever more misses.

    Args:
        mappings: of a process.
        lives: returns True if /proc may be read for a process.
        budget: charged for reading.
    """

    def __init__(
        self,
        mappings: Callable[[int], Iterable[Mapping]],
        lives: Callable[[int], bool],
        budget: Budget | None = None,
    ) -> None:
        self._mappings = mappings
        self._lives = lives
        self._maps = JitMaps(budget)
        self._dumps = JitDumps(budget)
        self._retries = Retries()

    def find(self, family: tuple[int, ...], address: int) -> tuple[str, int] | Reason:
        """The function at an address, and the bytes into it, or why it has no name.

        Args:
            family: the process, then its ancestors, which may share its mount namespace.
            address: in its address space.
        """
        pid = family[0]
        symbol = self._known(pid, address)
        if symbol is None and self._retries.due(pid):
            self.read(family)
            symbol = self._known(pid, address)
            if symbol is not None:
                self._retries.reset(pid)
        return symbol or self._why_not(pid)

    def read(self, family: tuple[int, ...]) -> bool:
        """Look again at a process's files; return True if there is anything."""
        pid = family[0]
        lives = self._lives(pid)
        table = self._maps.read(pid, lives=lives)
        self._dumps.read(self._mappings(pid), family, lives=lives)
        return bool(table) or self._dumps.has(pid)

    def _known(self, pid: int, address: int) -> tuple[str, int] | None:
        table = self._maps.known(pid)
        return (table.find(address) if table else None) or self._dumps.find(pid, address)

    def _why_not(self, pid: int) -> Reason:
        if self._maps.known(pid):
            return Reason.NOT_IN_PERF_MAP
        if self._dumps.has(pid):
            return Reason.NOT_IN_JITDUMP
        return self._maps.refused.get(pid, Reason.ANONYMOUS)
