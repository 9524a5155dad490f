"""Whole user stacks, as a script uses `purebpf.measure.stacks.linked_stacks.LinkedStacks`.

`measure` lies above this package, so that a command gives the session a function that makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from purebpf.loader.load.object import Object
from purebpf.results.model.loss import Cause
from purebpf.spec import ObjectSpec
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["LinkStacks", "NamedStack", "UserStackNames", "WalkedStacks"]


class NamedStack(Protocol):
    """The frames of a stack, the innermost first, and the reason why it lacks callers, or ""."""

    @property
    def frames(self) -> Sequence[Frame | Unknown]:
        """The frames."""

    @property
    def end(self) -> str:
        """The reason."""


class UserStackNames(Protocol):
    """Knows user stacks by number."""

    def name(self, number: int) -> NamedStack:
        """Name the stack with a number."""


class WalkedStacks(UserStackNames, Protocol):
    """A loaded object whose programs walk user stacks."""

    @property
    def object(self) -> Object:
        """The object."""

    @property
    def call_graph_why(self) -> str:
        """The reason why frame pointers are followed instead of tables, or ""."""

    @property
    def fds(self) -> set[int]:
        """Readable when `drain()` is due."""

    def pause_s(self) -> float:
        """Return after how long `drain()` is due at the latest."""

    def drain(self) -> None:
        """Follow processes, and finish stacks."""

    def stop(self) -> None:
        """Stop walking; walked stacks can still be named."""

    def causes(self) -> Sequence[Cause]:
        """Return the reasons why stacks are missing or cut, zero or not."""

    def close(self) -> None:
        """Detach and unload."""


LinkStacks = Callable[[ObjectSpec], WalkedStacks]
"""Links the walk of user stacks into an object, and loads it."""
