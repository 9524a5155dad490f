"""The parameters of generic classes. Without one, `Map` is `Map[Any, Any]`, as before they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # only type checkers know defaults before Python 3.13

    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

T = TypeVar("T")
K2 = TypeVar("K2")
V2 = TypeVar("V2")

Raw = tuple[Any, ...] | Mapping[str, Any] | bytes | bytearray | memoryview
"""What may be given for a struct, besides a record of it: its fields, or its bytes."""

__all__ = ["K2", "V2", "K", "Raw", "T", "V"]
