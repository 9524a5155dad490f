"""The interface of a measurement for the pipeline that runs it (`purebpf.measure.run`)."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from purebpf.measure.stop import HasFileno

if TYPE_CHECKING:
    from purebpf.results import Profile
    from purebpf.symbols.budget import Budget

__all__ = ["RunningProfile", "Session", "StackSession"]

Result_co = TypeVar("Result_co", covariant=True)


class Session(Protocol[Result_co]):
    """A measurement: it runs from when its context is entered until it is stopped."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def wait(self, *ends: HasFileno) -> bool:
        """Sleep until it is over, or one of `ends` is readable: True. False: a tick is due."""

    def stop(self) -> Result_co:
        """End it, read its result, and close it."""


class RunningProfile(Protocol):
    """A profile that can be read while it grows."""

    def last(self) -> Profile:
        """Return the counts since the last call."""

    def so_far(self) -> Profile:
        """Return the counts since the beginning."""


class StackSession(Session[Result_co], RunningProfile, Protocol[Result_co]):
    """A measurement of stacks, which can be read while it runs."""

    @property
    def budget(self) -> Budget:
        """The budget of naming."""

    def wait(self, *ends: HasFileno, at_most_s: float | None = None) -> bool:
        """The same; a tick is due after `at_most_s` seconds."""
