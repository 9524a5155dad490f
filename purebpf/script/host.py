"""`Host`: the facts about a machine that a script asks for, and `NoHost`, which knows none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from purebpf.btf.types.parse import Btf

__all__ = ["Host", "NoHost"]


class Host(Protocol):
    """A machine. Compiling needs nothing else of it."""

    cpus: int
    machine: str

    def btf(self) -> Btf | None:
        """Return the types of its kernel."""

    def tracepoints(self) -> Sequence[str]:
        """List its tracepoints as `category:event`."""

    def tracepoint_format(self, category: str, event: str) -> str:
        """Return the text of a format file, "" if there is no such tracepoint."""

    def kernel_functions(self) -> Sequence[str]:
        """List the kernel functions that can be traced."""

    def kernel_symbol(self, name: str) -> int | None:
        """Return the address of a kernel symbol."""

    def user_functions(self, path: str) -> Sequence[str]:
        """List the functions of a program or library."""

    def constant(self, name: str) -> int | None:
        """Return the value of a constant of user space such as AF_INET."""


class NoHost:
    """A machine without kernel types and attach points, for scripts that need none."""

    cpus = 1
    machine = "x86_64"

    def btf(self) -> Btf | None:
        """Return None."""
        return None

    def tracepoints(self) -> Sequence[str]:
        """Return nothing."""
        return ()

    def tracepoint_format(self, category: str, event: str) -> str:
        """Return "": no tracepoint is known."""
        del category, event
        return ""

    def kernel_functions(self) -> Sequence[str]:
        """Return nothing."""
        return ()

    def kernel_symbol(self, name: str) -> int | None:
        """Return None: no symbol is known."""
        del name
        return None

    def user_functions(self, path: str) -> Sequence[str]:
        """Return nothing."""
        del path
        return ()

    def constant(self, name: str) -> int | None:
        """Return None."""
        del name
        return None
