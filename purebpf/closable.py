"""Owners of resources: closed by `close()` or the end of a `with` block, and never copied."""

from __future__ import annotations

from types import TracebackType
from typing import NoReturn, Self, SupportsIndex

__all__ = ["Closing", "SoleOwner", "refuse_copy"]


def refuse_copy(owner: object, _protocol: SupportsIndex = 0, /) -> NoReturn:
    """Refuse copy.copy(), copy.deepcopy(), pickle and dataclasses.asdict(), which all ask for it.

    A copy would have the same descriptor numbers and mappings, and close them a second time,
    when other files may have those numbers. Files and sockets refuse copies, too.

    Raises:
        TypeError: always.
    """
    name = type(owner).__name__
    advice = "pass the object itself"
    if hasattr(owner, "from_id"):
        advice += f", or open another one with {name}.from_id() or {name}.open()"
    problem = f"cannot copy or pickle {name!r} object: it alone closes the resources that it owns"
    raise TypeError(f"{problem}; {advice}")


class SoleOwner:
    """An object that owns descriptors, mappings or files, and so cannot be copied."""

    __slots__ = ()

    __reduce_ex__ = refuse_copy


class Closing(SoleOwner):
    """A context that closes itself, however it ends."""

    __slots__ = ()

    def close(self) -> None:
        """Release its resources; again is harmless."""
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
