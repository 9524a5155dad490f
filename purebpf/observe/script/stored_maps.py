"""`StoredMaps`: reads and clears the maps of a running script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from purebpf.loader.maps.map import Map
from purebpf.script.map_info import MapInfo
from purebpf.script.output.decode import Decoder
from purebpf.script.output.map_rows import rows_of
from purebpf.script.types import room

__all__ = ["StoredMaps"]


class StoredMaps:
    """The maps of a script by name.

    Args:
        infos: the maps as the script uses them.
        maps: the BPF maps.
        words: the globals.
        decoder: decodes keys and values.
    """

    def __init__(
        self,
        infos: Mapping[str, MapInfo],
        maps: Mapping[str, Map[Any, Any]],
        words: memoryview[int],
        decoder: Decoder,
    ) -> None:
        self.infos, self._maps, self._words, self._decoder = infos, maps, words, decoder

    def rows(self, name: str) -> list[tuple[Any, Any]]:
        """Return keys and values in the order of printing."""
        info = self.infos[name]
        if info.value is None or (info.is_scalar and not self._words[info.set_place // 8]):
            return []
        if info.in_globals:
            first = info.place // 8
            data = bytes(self._words[first : first + room(info.value) // 8])
            return rows_of(info, [(b"", data)], self._decoder)
        items = list(self._maps[info.bpf_name].items())
        if info.is_scalar:
            items = [(key.to_bytes(4, "little"), value) for key, value in items]
        return rows_of(info, items, self._decoder)

    def is_zeroed(self, name: str) -> bool:
        """Return True for a histogram without a key that has been set, and is empty now."""
        info = self.infos[name]
        is_set = info.is_scalar and self._words[info.set_place // 8] != 0
        return bool(is_set and info.has_buckets)

    def empty_rows(self, name: str) -> list[tuple[Any, Any]]:
        """Return the row of a map without a key that has no value yet: zeros."""
        info = self.infos[name]
        if info.value is None:
            return []
        if info.is_aggregate:
            return rows_of(info, [(bytes(4), (bytes(info.value_size),))], self._decoder)
        return rows_of(info, [(b"", bytes(room(info.value)))], self._decoder)

    def clear(self, name: str) -> None:
        """Remove all keys of a map."""
        info = self.infos[name]
        self._words[info.set_place // 8] = 0
        if info.in_globals or info.is_scalar:
            self._zero_scalar(info)
        else:
            self._maps[info.bpf_name].clear()

    def zero(self, name: str) -> None:
        """Set all values of a map to zero."""
        info = self.infos[name]
        if info.is_scalar:
            self._zero_scalar(info)
            return
        stored = self._maps[info.bpf_name]
        for key, value in list(stored.items()):
            stored[key] = _zeros(value)

    def _zero_scalar(self, info: MapInfo) -> None:
        if info.in_globals:
            assert info.value is not None
            for word in range(info.place // 8, (info.place + room(info.value)) // 8):
                self._words[word] = 0
            return
        stored = self._maps[info.bpf_name]
        for key, value in list(stored.items()):
            stored[key] = _zeros(value)


def _zeros(value: Any) -> Any:
    return tuple(map(_zeros, value)) if isinstance(value, tuple) else bytes(len(value))
