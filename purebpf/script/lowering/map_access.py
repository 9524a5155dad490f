"""Maps: keys, lookups, and updates that lose nothing."""

from __future__ import annotations

from collections.abc import Callable

from purebpf.abi.assembler import Label
from purebpf.asm import R0, R1, R2, R3, R4
from purebpf.script import tree
from purebpf.script.lowering.frame import Place
from purebpf.script.lowering.known_values import KnownValue, is_same_key
from purebpf.script.lowering.layout import ZEROS
from purebpf.script.lowering.memory import Memory
from purebpf.script.map_info import MapInfo
from purebpf.script.types import room

__all__ = ["MapAccess"]

_NO_EXIST = 1
_LOOKUP_PERCPU = 195
_MOST_CPUS = 1024  # of a machine that is not known; the verifier follows 8,192 branches at most


class MapAccess(Memory):
    """Reads and changes the maps of a script.

    Attributes:
        known: a value that need not be looked up.
    """

    known: KnownValue | None = None

    def map_info(self, node: tree.Map) -> MapInfo:
        """Return the map that a node names."""
        return self.context.maps[node.name]

    def key(self, info: MapInfo, key: tree.Expression | None) -> Place:
        """Build a key in memory; a histogram's has room for the bucket."""
        if info.is_scalar or key is None or info.key is None:
            place = self.take(8)
            self.code.store_constant(*place, 0, 8)
            return place
        place = self.take(info.key_size)
        self.store(key, place, info.key)
        return place

    def lookup(self, info: MapInfo, key: Place) -> None:
        """R0 = the address of a value, or 0."""
        self.address(R2, key)
        self.code.map(R1, info.bpf_name)
        self.code.call_helper("map_lookup_elem", R1, R2)

    def find_or_insert(self, info: MapInfo, key: Place, full: Label) -> None:
        """R0 = the address of a value, a new one is zero; or go to `full` and count the loss."""
        code, found, lost = self.code, self.code.label(), self.code.label()
        self.lookup(info, key)
        code.jump("!=", R0, 0, found)
        if info.is_scalar:
            code.go(full)
        else:
            self.context.zeros_size = max(self.context.zeros_size, info.value_size)
            self.address(R2, key)
            code.map(R1, info.bpf_name)
            code.map_value(R3, ZEROS)
            code.move(R4, _NO_EXIST)
            code.call_helper("map_update_elem", R1, R2, R3, R4)
            self.lookup(info, key)
            code.jump("!=", R0, 0, found)
            code.place(lost)
            self.add_to_global(info.lost_place, 1)
            code.go(full)
        code.place(found)

    def note_value(self, info: MapInfo) -> None:
        """Note that a map without a key has a value.

        The word is written once: CPUs that write to the same memory wait for each other.
        """
        if info.is_scalar:
            code, is_noted = self.code, self.code.label()
            code.map_value(R1, "globals", info.set_place)
            code.load(R2, R1, 0, 8)
            code.jump("!=", R2, 0, is_noted)
            code.store_constant(R1, 0, 1, 8)
            code.place(is_noted)

    def assign(self, info: MapInfo, key: tree.Expression | None, value: tree.Expression) -> None:
        """Store a value."""
        assert info.value is not None
        code = self.code
        if info.is_scalar:
            if info.value.is_scalar:
                self.scalar(value)
                code.map_value(R1, "globals", info.place)
                code.store(R1, 0, R0, 8)
            else:
                place = self.take(room(info.value))
                self.store(value, place, info.value)
                self._copy_to_globals(info, place)
            self.note_value(info)
            return
        value_place = self.take(info.value_size)
        self.store(value, value_place, info.value)
        key_place = self.key(info, key)
        self.update(info, key_place, value_place)

    def _copy_to_globals(self, info: MapInfo, place: Place) -> None:
        assert info.value is not None
        for offset in range(0, room(info.value), 8):
            self.code.load(R0, place.base, place.offset + offset, 8)
            self.code.map_value(R1, "globals", info.place + offset)
            self.code.store(R1, 0, R0, 8)

    def update(self, info: MapInfo, key: Place, value: Place) -> None:
        """Store a value below a key, and count the loss if the map is full."""
        code, done = self.code, self.code.label()
        self.address(R2, key)
        self.address(R3, value)
        code.map(R1, info.bpf_name)
        code.move(R4, 0)
        code.call_helper("map_update_elem", R1, R2, R3, R4)
        code.jump("==", R0, 0, done)
        self.add_to_global(info.lost_place, 1)
        code.place(done)

    def add(self, info: MapInfo, key: tree.Expression | None, amount: Place | int) -> None:
        """Add to a number of a map in one step; R0 = the number before."""
        code, done = self.code, self.code.label()
        if info.is_scalar:
            self.note_value(info)
            code.map_value(R1, "globals", info.place)
            self._load_amount(amount)
            code.fetch_add(R1, 0, R0, 8)
            return
        key_place = self.key(info, key)
        missing = code.label()
        self.find_or_insert(info, key_place, missing)
        code.copy(R1, R0)
        self._load_amount(amount)
        code.fetch_add(R1, 0, R0, 8)
        code.go(done)
        code.place(missing)
        code.move(R0, 0)
        code.place(done)

    def _load_amount(self, amount: Place | int) -> None:
        if isinstance(amount, Place):
            self.code.load(R0, *amount, 8)
        else:
            self.code.move(R0, amount)

    def load_value(self, info: MapInfo, key: tree.Expression | None) -> None:
        """R0 = a number of a map, 0 if the key is not there."""
        code = self.code
        if info.is_aggregate:
            self.sum_cpus(info, self.key(info, key))
            return
        if info.is_scalar:
            code.map_value(R1, "globals", info.place)
            code.load(R0, R1, 0, 8)
            return
        known = self.known
        if known and key and known.name == info.name and is_same_key(known.key, key):
            code.load(R0, *self.outer_place(known.place), 8)
            return
        self.lookup(info, self.key(info, key))
        missing = code.label()
        code.jump("==", R0, 0, missing)
        code.load(R0, R0, 0, 8)
        code.place(missing)

    def copy_value(self, info: MapInfo, key: tree.Expression | None, place: Place) -> None:
        """Copy a value of a map to a place; zeros if the key is not there."""
        assert info.value is not None
        code, size = self.code, room(info.value)
        if info.is_scalar:
            code.map_value(R1, "globals", info.place)
            source = self.take(8)
            code.store(source.base, source.offset, R1, 8)
            code.load(R2, *source, 8)
            self._copy_from(place, R2, size)
            return
        self.lookup(info, self.key(info, key))
        missing, done = code.label(), code.label()
        code.jump("==", R0, 0, missing)
        code.copy(R2, R0)
        self._copy_from(place, R2, size)
        code.go(done)
        code.place(missing)
        self.zero(place, size)
        code.place(done)

    def _copy_from(self, place: Place, register: int, size: int) -> None:
        if size <= 128:
            self.copy_memory(place, Place(register, 0), size)
            return
        self.code.copy(R3, register)
        self.address(R1, place)
        self.code.move(R2, size)
        self.code.call_helper("probe_read_kernel", R1, R2, R3)

    def delete(self, info: MapInfo, key: tree.Expression | None) -> None:
        """Remove a key; R0 = 1 if it was there."""
        code = self.code
        if info.is_scalar:
            self._delete_scalar(info)
            return
        key_place = self.key(info, key)
        self.address(R2, key_place)
        code.map(R1, info.bpf_name)
        code.call_helper("map_delete_elem", R1, R2)
        self._is_zero()

    def _delete_scalar(self, info: MapInfo) -> None:
        code = self.code
        if not info.is_aggregate and info.value is not None:
            for offset in range(0, room(info.value), 8):
                code.map_value(R1, "globals", info.place + offset)
                code.store_constant(R1, 0, 0, 8)
        elif info.is_aggregate:
            key = self.take(8)
            code.store_constant(*key, 0, 8)
            self._visit_cpus(info, key, lambda _: self._zero_cpu(info))
        code.move(R0, 0)
        code.map_value(R1, "globals", info.set_place)
        code.exchange(R1, 0, R0, 8)

    def _zero_cpu(self, info: MapInfo) -> None:
        for offset in range(0, 8 * info.words, 8):
            self.code.store_constant(R0, offset, 0, 8)

    def _is_zero(self) -> None:
        code, zero, done = self.code, self.code.label(), self.code.label()
        code.jump("==", R0, 0, zero)
        code.move(R0, 0)
        code.go(done)
        code.place(zero)
        code.move(R0, 1)
        code.place(done)

    def has_key(self, info: MapInfo, key: tree.Expression | None) -> None:
        """R0 = 1 if a key is in the map."""
        code = self.code
        if info.is_scalar:
            code.map_value(R1, "globals", info.set_place)
            code.load(R0, R1, 0, 8)
            return
        place = self.key(info, key)
        if info.has_buckets:
            self.code.store_constant(*place.add(info.key_size - 8), 0, 8)
        self.lookup(info, place)
        missing = code.label()
        code.jump("==", R0, 0, missing)
        code.move(R0, 1)
        code.place(missing)

    def sum_cpus(self, info: MapInfo, key: Place) -> None:
        """R0 = the value of count() and others over all CPUs (Linux 5.19)."""
        assert info.value is not None
        code, kind = self.code, info.value.kind
        total, number = self.take(8), self.take(8)
        for place in (total, number):
            code.store_constant(*place, 0, 8)
        self._visit_cpus(
            info, key, lambda following: self._take_cpu(info, total, number, following)
        )
        code.load(R0, *total, 8)
        if kind in ("avg", "stats"):
            code.load(R1, *number, 8)
            self.divide("/", info.value.signed)

    def _visit_cpus(self, info: MapInfo, key: Place, visit: Callable[[Label], None]) -> None:
        """Generate code for the value of each CPU: R0 is its address (Linux 5.19)."""
        code, index = self.code, self.take(8)
        code.store_constant(*index, 0, 8)
        top, following, done = code.label(), code.label(), code.label()
        code.place(top)
        code.load(R3, *index, 8)
        code.jump(">=", R3, self.context.host.cpus or _MOST_CPUS, done)
        self.address(R2, key)
        code.map(R1, info.bpf_name)
        code.call(_LOOKUP_PERCPU)
        code.jump("==", R0, 0, done)  # the kernel has no such CPU, or the map no such key
        visit(following)
        code.place(following)
        code.load(R3, *index, 8)
        code.alu("+=", R3, 1)
        code.store(index.base, index.offset, R3, 8)
        code.go(top)
        code.place(done)

    def _take_cpu(self, info: MapInfo, total: Place, number: Place, following: Label) -> None:
        assert info.value is not None
        code, kind = self.code, info.value.kind
        if kind in ("min", "max"):
            first = code.label()
            code.load(R2, R0, 8, 8)
            code.jump("==", R2, 0, following)
            code.load(R1, R0, 0, 8)
            code.load(R2, *number, 8)
            code.jump("==", R2, 0, first)
            code.load(R2, *total, 8)
            operator = ("s" if info.value.signed else "") + (">=" if kind == "min" else "<=")
            code.jump_register(operator, R1, R2, following)
            code.place(first)
            code.store(total.base, total.offset, R1, 8)
            code.store_constant(*number, 1, 8)
            return
        places = [(0, number), (8, total)] if kind in ("avg", "stats") else [(0, total)]
        for offset, place in places:
            code.load(R1, R0, offset, 8)
            code.load(R2, *place, 8)
            code.alu_register("+=", R2, R1)
            code.store(place.base, place.offset, R2, 8)

    def divide(self, operator: str, signed: bool) -> None:
        """R0 = R0 / R1 or R0 % R1; by zero, the quotient is 0 and the rest is R0."""
        raise NotImplementedError
