"""The struct member that a lock is, by the call that waits for it and BTF. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Protocol

from purebpf.btf.types.parse import Btf
from purebpf.tools.lock.members import member_at

__all__ = ["CallSites"]


class _Type(Protocol):
    name: str


class _Function(Protocol):
    @property
    def start(self) -> int:
        """Its first address."""


class _Argument(Protocol):
    """The parts of `purebpf.dataflow.kernel_code.Argument` that a name needs."""

    @property
    def function(self) -> _Function:
        """The called function."""

    @property
    def type(self) -> _Type | None:
        """The object."""

    @property
    def offset(self) -> int:
        """The place in it, in bytes."""


class CallSites:
    """Names of locks by the first argument of the function that takes them.

    Args:
        btf: of the kernel.
        argument: returns the first argument of the call that returns to an address.
        takes_locks: returns True for an address in a function that takes locks.
    """

    def __init__(
        self,
        btf: Btf,
        argument: Callable[[int], _Argument | None],
        takes_locks: Callable[[int], bool],
    ) -> None:
        self._btf, self._argument, self._takes_locks = btf, argument, takes_locks
        self.name: Callable[[int, str], str] = cache(self._name)
        """`inode.i_rwsem`, by a return address and a kind of lock; "" unless the types have a
        lock of this kind there."""

    def _name(self, address: int, kind: str) -> str:
        argument = self._argument(address)
        if argument is None or argument.type is None or not argument.type.name:
            return ""
        if argument.offset < 0 or not self._takes_locks(argument.function.start):
            return ""
        return member_at(self._btf, argument.type.name, argument.offset, kind)
