"""What has a `close()`, and is closed by the end of a `with` block."""

from __future__ import annotations

from types import TracebackType
from typing import Self

__all__ = ["Closing"]


class Closing:
    """A context that closes itself, however it ends."""

    __slots__ = ()

    def close(self) -> None:
        """Give back what it holds; again is harmless."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
