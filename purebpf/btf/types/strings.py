"""The string section of BTF: offsets to names, and names to offsets, without a table of strings.

Finding a name is a `bytes.find` over the section, 0.4 to 1.4 ms in the 2.3 MB of a vmlinux. It
costs no memory and no set-up, where a dict of all names takes 60 ms and 35 MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

_MAX_NAME = 4096


def essential_name(name: str) -> str:
    """`name` without its flavour: `task_struct___old` is a `task_struct`.

    The flavour starts at the last `___` that has no other underscore next to it (libbpf,
    bpf_core_essential_name_len).
    """
    for split in range(len(name) - 5, -1, -1):
        if name[split + 1 : split + 4] == "___" and "_" not in (name[split], name[split + 4]):
            return name[: split + 1]
    return name


def occurrences(data: bytes, needle: bytes, start: int, end: int) -> Iterator[int]:
    """Every place of `needle` in `data[start:end]`, overlapping ones included."""
    while (start := data.find(needle, start, end)) >= 0:
        yield start
        start += 1


class Strings:
    """Names by offset. With a `base`, offsets below `len(base)` are the base's.

    The section must be empty or end with NUL. Methods raise ValueError for a bad offset.

    Attributes:
        distinct: no string is in the section twice, not even inside another. A search ends with the
            first place then, which for the most frequent strings of kernels is near the start.
    """

    __slots__ = ("_base", "_data", "_end", "_first", "_flavoured", "_start", "distinct")

    def __init__(self, data: bytes, start: int, end: int, base: Strings | None = None) -> None:
        self._data = data
        self._start = start
        self._end = end
        self._base = base
        self._first = len(base) if base else 0
        self._flavoured: dict[str, list[int]] | None = None
        self.distinct = False

    def __len__(self) -> int:
        """The end of the offsets: the base's strings and these, in bytes."""
        return self._first + self._end - self._start

    def get(self, offset: int) -> str:
        """The string at `offset`; bytes that are not UTF-8 become surrogates."""
        if offset < self._first and self._base:
            return self._base.get(offset)
        begin = self._start + offset - self._first
        if not self._start <= begin < self._end:
            raise ValueError(f"string offset {offset} is outside of {len(self)} bytes of strings")
        end = self._data.index(b"\0", begin, self._end)
        return self._data[begin:end].decode("utf-8", "surrogateescape")

    def name(self, offset: int) -> str:
        """Return the string at `offset`. A longer one than 4096 bytes is a ValueError.

        Without that limit a struct of 65,535 members could claim one string of megabytes for each.
        """
        if offset < self._first and self._base:
            return self._base.name(offset)
        begin = self._start + offset - self._first
        if not self._start <= begin < self._end:
            return self.get(offset)
        end = self._data.find(b"\0", begin, min(begin + _MAX_NAME, self._end))
        if end < 0:
            raise ValueError(f"the name at {offset} is longer than {_MAX_NAME} bytes")
        return self._data[begin:end].decode("utf-8", "surrogateescape")

    def names(self, offsets: Sequence[int]) -> list[str]:
        """`name` of each, in less than half the time: a struct has hundreds of members."""
        if not offsets or min(offsets) < self._first or max(offsets) >= len(self):
            return [*map(self.name, offsets)]
        data, shift = self._data, self._start - self._first
        names = []
        for offset in offsets:
            begin = offset + shift
            end = data.find(b"\0", begin, begin + _MAX_NAME)  # the section ends with NUL
            if end < 0:
                return [*map(self.name, offsets)]  # raises
            names.append(data[begin:end].decode("utf-8", "surrogateescape"))
        return names

    def find_among(self, offsets: Sequence[int], name: str) -> Iterator[int]:
        """Return the indexes of the `offsets`, from 0, that hold `name` or the empty string."""
        if self._base is not None:
            yield from (at for at, own in enumerate(map(self.name, offsets)) if own in {name, ""})
            return
        data, shift, end = self._data, self._start, self._end
        wanted = name.encode("utf-8", "surrogateescape") + b"\0"
        starts = data.startswith
        for at, offset in enumerate(offsets):
            begin = offset + shift
            if starts(wanted, begin, end):
                yield at
            elif begin >= end:
                self.get(offset)  # raises
            elif not data[begin]:
                yield at

    def offsets(self, name: str) -> list[int]:
        """Every offset where the whole string `name` starts, the base's first."""
        raw = name.encode("utf-8", "surrogateescape")
        offsets = self._base.offsets(name) if self._base else []
        if not raw or b"\0" in raw:
            return offsets
        shift = self._first - self._start
        if self._data.startswith(raw + b"\0", self._start, self._end):
            offsets.append(self._first)
        places = occurrences(self._data, b"\0" + raw + b"\0", self._start, self._end)
        if self.distinct:
            places = islice(places, 1)
        offsets += (at + 1 + shift for at in places)
        return offsets

    def find_flavours(self, name: str) -> list[int]:
        """Every offset of a string `name___flavour`, the base's first."""
        if self._flavoured is None:
            self._flavoured = self._find_flavoured()
        inherited = self._base.find_flavours(name) if self._base else []
        return inherited + self._flavoured.get(name, [])

    def flavoured(self) -> list[int]:
        """Return the offset of every string of this section with a flavour, for `set_flavoured`."""
        if self._flavoured is None:
            self._flavoured = self._find_flavoured()
        return [offset for offsets in self._flavoured.values() for offset in offsets]

    def set_flavoured(self, offsets: Iterable[int]) -> None:
        """Use the offsets of `flavoured` of the same section, instead of a search (4 ms)."""
        self._flavoured = {}
        for offset in offsets:
            self._flavoured.setdefault(essential_name(self.get(offset)), []).append(offset)

    def _find_flavoured(self) -> dict[str, list[int]]:
        flavours: dict[str, list[int]] = {}
        at = self._start
        while (at := self._data.find(b"___", at, self._end)) >= 0:
            begin = max(self._data.rfind(b"\0", self._start, at) + 1, self._start)
            offset = begin - self._start + self._first
            full = self.get(offset)
            if (name := essential_name(full)) != full:
                flavours.setdefault(name, []).append(offset)
            at = self._data.index(b"\0", at, self._end)
        return flavours

    def share_tails(self, offsets: Sequence[int]) -> bool:
        """Return True if one of `offsets` is inside a longer string; 0 never is.

        Raises:
            IndexError: one of them, before any that is, is beyond the strings.
        """
        base = self._base
        if self.distinct and base is None and max(offsets, default=0) < len(self):
            return False
        before = memoryview(self._data)[self._start - 1 : max(self._end - 1, self._start - 1)]
        if base is None:
            return any(map(before.__getitem__, filter(None, offsets)))
        return any(
            base.share_tails((offset,))
            if offset < self._first
            else before[offset - self._first] != 0 and offset > self._first
            for offset in offsets
        )
