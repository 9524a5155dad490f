"""The interfaces through which an unwinder finds the code of a process, and its rules."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

from purebpf.unwind.address_space import CodeMapping
from purebpf.unwind.machine import Machine
from purebpf.unwind.rule import Row

__all__ = ["CodeFile", "FileLookup", "Space"]


class Space(Protocol):
    """The executable mappings of a process: an `AddressSpace` is one."""

    def find(self, address: int) -> CodeMapping | None:
        """The mapping of an address."""


class CodeFile(Protocol):
    """The rules of a file, by its own addresses; a `CfiFile` is one."""

    @property
    def machine(self) -> Machine | None:
        """The machine of its code; None: another one than those that are unwound."""

    def row(self, address: int) -> Row | None:
        """The rules at an address; None where there are none that can be followed."""

    def function(self, address: int) -> tuple[int, int] | None:
        """Return the start and the end of the code with the rules of an address; None: it has
        none.
        """

    def code(self, address: int, size: int) -> bytes:
        """The instructions at an address."""

    def stack_depth(self, address: int) -> int | None:
        """Bytes that the function has taken from the stack at an address without a rule.

        Below 0: `DEPTH_ELSEWHERE`, `DEPTH_OUTERMOST`; above, bits of `DEPTH_BITS` may be added.
        None: the depth is not known.
        """


FileLookup = Callable[[Hashable], "CodeFile | None"]
"""The rules of the file of `CodeMapping.file`; None if the file cannot be read."""
