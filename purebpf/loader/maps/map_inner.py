"""The values of a map of maps, which are maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, Self

from purebpf.loader.maps.map_plain_codecs import Handle, Readable
from purebpf.loader.maps.map_traits import FD_SIZE

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf
    from purebpf.spec import MapSpec

__all__ = ["InnerMaps"]


class _Map(Protocol):
    btf: Btf | None

    def retyped(self, spec: MapSpec, btf: Btf) -> Self: ...


class InnerMaps(Handle):
    """A descriptor goes in, an id comes out and is opened.

    Args:
        open_id: opens a map by its id.
        btf: the types of a map without its own.
        inner: the spec of such a map.
    """

    def __init__(
        self, open_id: Callable[[int], _Map], btf: Btf | None, inner: MapSpec | None
    ) -> None:
        super().__init__(FD_SIZE)
        self._open_id = open_id
        self._btf = btf
        self._inner = inner

    def _open(self, map_id: int) -> _Map:
        opened = self._open_id(map_id)
        if opened.btf is None and self._btf is not None and self._inner is not None:
            return opened.retyped(self._inner, self._btf)
        return opened

    def decode(self, buffer: Readable, offset: int = 0, /) -> Any:
        """The map; the caller closes it."""
        return self._open(super().decode(buffer, offset))

    def iter_decode(self, buffer: Readable, /) -> Iterator[Any]:
        """The maps; the caller closes each."""
        return map(self._open, super().iter_decode(buffer))
