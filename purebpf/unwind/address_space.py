"""The mappings of a process, as far as unwinding needs them. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable

from purebpf.tuples import NamedTuple

__all__ = ["AddressSpace", "CodeMapping"]


class CodeMapping(NamedTuple):
    """Executable addresses `start` up to `end`.

    Attributes:
        bias: subtract it from an address to get the file's own address.
        file: a key for the file; None for memory that is none: generated code.
    """

    start: int
    end: int
    bias: int
    file: Hashable


class AddressSpace:
    """The executable mappings of a process, which do not overlap."""

    def __init__(self, mappings: Iterable[CodeMapping]) -> None:
        self.mappings = sorted(mappings, key=lambda mapping: mapping.start)
        self._starts = [mapping.start for mapping in self.mappings]

    def find(self, address: int) -> CodeMapping | None:
        """The mapping of an address."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        mapping = self.mappings[at]
        return mapping if address < mapping.end else None

    def overlaid(self, newer: Iterable[CodeMapping]) -> AddressSpace:
        """Return this address space with newer mappings laid over the older ones."""
        mappings = list(self.mappings)
        for new in newer:
            mappings = [part for old in mappings for part in _beside(old, new)]
            mappings.append(new)
        return AddressSpace(mappings)


def _beside(old: CodeMapping, new: CodeMapping) -> Iterable[CodeMapping]:
    """Yield the parts of an older mapping beside a newer one."""
    if old.end <= new.start or new.end <= old.start:
        return (old,)
    parts = old._replace(end=new.start), old._replace(start=new.end)
    return [part for part in parts if part.start < part.end]
