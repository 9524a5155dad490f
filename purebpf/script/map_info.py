"""`MapInfo`: the uses of a map in a script, and where its values are kept."""

from __future__ import annotations

from purebpf.script.types import AGGREGATES, I64, U64, Type, offsets, room
from purebpf.slotted import Slotted

__all__ = ["MapInfo"]


class MapInfo(Slotted):
    """A map of a script.

    Attributes:
        name: with the `@`.
        bpf_name: of the BPF map.
        value: the type of its values, of a kind of `AGGREGATES` for count() and others.
        key: the type of its keys.
        is_scalar: True if it has no key.
        entries: the largest number of keys.
        kind: the declared kind, "hash" without a declaration.
        place: of the value of a plain scalar map in the globals, in bytes.
        set_place: of the word that says that a scalar map has a value.
        is_assigned: True if a statement gives it a value by `=`.
        lost_place: of the count of updates that found no room.
    """

    name: str
    bpf_name: str
    entries: int
    value: Type | None = None
    key: Type | None = None
    is_scalar: bool | None = None
    kind: str = "hash"
    is_assigned: bool = False
    place: int = 0
    set_place: int = 0
    lost_place: int = 0

    @property
    def is_aggregate(self) -> bool:
        """Return True if every CPU has values of its own."""
        return self.value is not None and self.value.kind in AGGREGATES

    @property
    def is_counter(self) -> bool:
        """Return True if statements change its numbers only by `++`, `+=` and the like."""
        return self.value is not None and self.value.kind == "int" and not self.is_assigned

    @property
    def has_buckets(self) -> bool:
        """Return True if a key has an element for each bucket, or each interval of tseries()."""
        return self.value is not None and self.value.kind in ("hist", "lhist", "tseries")

    @property
    def in_globals(self) -> bool:
        """Return True if the value lies in the globals instead of a BPF map."""
        return bool(self.is_scalar) and not self.is_aggregate

    @property
    def words(self) -> int:
        """The 8-byte words of an aggregate's value on each CPU."""
        kind = self.value.kind if self.value else ""
        return {"avg": 2, "stats": 2, "min": 2, "max": 2, "tseries": 3}.get(kind, 1)

    @property
    def value_size(self) -> int:
        """The bytes of a value in the BPF map."""
        if self.is_aggregate:
            return 8 * self.words
        return room(self.value) if self.value else 8

    @property
    def key_size(self) -> int:
        """The bytes of a key in the BPF map."""
        if self.is_scalar or self.key is None:
            return 4
        return room(self.key) + 8 * self.has_buckets

    @property
    def buckets(self) -> int:
        """The number of buckets of a histogram, or of intervals, without a key."""
        assert self.value is not None
        if self.value.kind == "tseries":
            return self.value.numbers[1]
        if self.value.kind == "hist":
            return (65 << self.value.numbers[0]) + 2
        low, high, step = self.value.numbers
        return (high - low + step - 1) // step + 2

    def read_type(self) -> Type:
        """Return the type of the value in an expression."""
        assert self.value is not None
        if self.value.kind == "count":
            return U64
        if self.value.kind in ("sum", "min", "max", "avg"):
            return I64 if self.value.signed else U64
        return self.value

    def item_places(self) -> list[int]:
        """Return the places of the items of a key."""
        assert self.key is not None
        return offsets(self.key.items)[0]
