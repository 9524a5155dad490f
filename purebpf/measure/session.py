"""What a measurement of stacks offers while it runs."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from purebpf.measure.stop import HasFileno

if TYPE_CHECKING:
    from purebpf.results import Profile
    from purebpf.symbols.budget import Budget

__all__ = ["Session"]


class Session(Protocol):
    """A measurement: it runs within its context, and can be read while it runs."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    @property
    def budget(self) -> Budget:
        """What pays for the names."""

    def wait(self, *ends: HasFileno, at_most_s: float | None = None) -> bool:
        """Sleep until the duration is over or one of `ends` is readable; whether it is so."""

    def take(self) -> None:
        """Take in what was measured since the last time."""

    def last(self) -> Profile:
        """What was measured since this was last called."""

    def so_far(self) -> Profile:
        """What was measured since the beginning."""
