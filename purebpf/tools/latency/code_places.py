"""The places of programs to probe, by the use that bpf_src/latency.bpf.c has for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from purebpf.errors import PurebpfError
from purebpf.loader.attach._common.probe_place import ProbePlaces, find_places
from purebpf.tools.latency.functions import User

__all__ = ["MOMENTS", "CodePlaces", "exit_places"]

MOMENTS = {
    "returns": ("user_return", "user_returns"),
    "leaving": ("user_leaving", "user_leavings"),
    "jumps": ("user_jump", "user_jumps"),
    "entries": ("user_entry", "user_entries"),
}
"""By the attribute of `CodePlaces`: the programs for one place and for many. Calls end before they
begin, so that every call that is seen to begin is seen to end."""
_ENTRY_ONLY = 1 << 31
_PASSED_THROUGH = 0x7FFFFFFF
"""Cookies, as in bpf_src/latency.bpf.c."""
_C_LIBRARY = "libc.so.6"


class CodePlaces:
    """The places in one file, by offset, with the cookies of their probes.

    Attributes:
        entries: starts of functions; the cookie is the number of a wanted function.
        returns: instructions that return.
        jumps: jumps to other functions that continue the call; the cookie is the condition.
        leaving: jumps that calls end with; the cookie is the condition.
    """

    def __init__(self) -> None:
        self.entries: dict[int, int] = {}
        self.returns: dict[int, int] = {}
        self.jumps: dict[int, int] = {}
        self.leaving: dict[int, int] = {}

    def add(self, function: User, number: int, *, returns: bool) -> None:
        """Add the places of a function; without `returns` its start alone."""
        exits = function.exits
        if exits is None:
            self.entries[function.offset] = number | (_ENTRY_ONLY if returns else 0)
            return
        self.entries[function.offset] = number
        for offset in exits.entered:
            self.entries.setdefault(offset, _PASSED_THROUGH)
        self.returns |= dict.fromkeys(exits.returns, 0)
        self.jumps |= dict(exits.jumps)
        self.leaving |= dict(exits.leaving)


def exit_places(paths: Iterable[str], pid: int) -> Iterator[ProbePlaces]:
    """Yield the starts of exit(3): in programs that bring their own, and in the C library.

    `pid` as for `probe_place.find_file`.
    """
    for path in (*paths, _C_LIBRARY):
        try:
            yield find_places(f"{path}:exit", "exit", pid)
        except (PurebpfError, OSError, ValueError):
            continue
