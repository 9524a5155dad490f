"""Aggregates: count(), hist(), tseries() and the other functions that are assigned to a map."""

from __future__ import annotations

from purebpf.asm import R0, R1, R2, R3
from purebpf.script import tree
from purebpf.script.lowering.frame import Place
from purebpf.script.lowering.layout import WALL
from purebpf.script.lowering.map_access import MapAccess
from purebpf.script.map_info import MapInfo

__all__ = ["Aggregates"]

_TRIES = 4


class Aggregates(MapAccess):
    """Adds values to the aggregates of a CPU."""

    def aggregate(self, info: MapInfo, key: tree.Expression | None, call: tree.Call) -> None:
        """Add a value to an aggregate of this CPU."""
        assert info.value is not None
        code, kind, done = self.code, info.value.kind, self.code.label()
        amount = self.take(8)
        if kind == "tseries":
            self._add_to_series(info, key, call.arguments[0])
            return
        if kind != "count":
            self.scalar(call.arguments[0])
            if info.has_buckets:
                self._find_bucket(info, call.arguments[0])
            code.store(amount.base, amount.offset, R0, 8)
        self.note_value(info)
        place = self.key(info, key)
        if info.has_buckets:
            code.load(R0, *amount, 8)
            bucket = place if info.is_scalar else place.add(info.key_size - 8)
            code.store(bucket.base, bucket.offset, R0, 8)
        self.find_or_insert(info, place, done)
        if kind in ("min", "max"):
            self._take_extreme(info, amount)
        else:
            code.move(R1, 1)
            if kind == "sum":
                code.load(R1, *amount, 8)
            code.atomic_add(R0, 0, R1, 8)
            if kind in ("avg", "stats"):
                code.load(R1, *amount, 8)
                code.atomic_add(R0, 8, R1, 8)
        code.place(done)

    def _take_extreme(self, info: MapInfo, amount: Place) -> None:
        """Store the amount if it is smaller or larger; another program may change it meanwhile."""
        assert info.value is not None
        code, done = self.code, self.code.label()
        operator = ("s" if info.value.signed else "") + (">=" if info.value.kind == "min" else "<=")
        code.copy(R3, R0)
        code.load(R1, *amount, 8)
        code.move(R2, 1)
        code.exchange(R3, 8, R2, 8)
        better = code.label()
        code.jump("==", R2, 0, better)
        for _ in range(_TRIES):
            code.load(R0, R3, 0, 8)
            code.jump_register(operator, R1, R0, done)
            code.copy(R2, R0)
            code.compare_exchange(R3, 0, R1, 8)
            code.jump_register("==", R0, R2, done)
        code.place(better)
        code.store(R3, 0, R1, 8)
        code.place(done)

    def _find_bucket(self, info: MapInfo, node: tree.Expression) -> None:
        """R0 = the number of the bucket for the value R0."""
        assert info.value is not None
        if info.value.kind == "hist":
            self._find_power(info.value.numbers[0], is_signed=node.type.signed)
            return
        low, high, step = info.value.numbers
        code = self.code
        below, above, done = code.label(), code.label(), code.label()
        code.jump("s<", R0, low, below)
        code.jump("s>=", R0, high, above)
        code.alu("-=", R0, low)
        code.alu("/=", R0, step)
        code.alu("+=", R0, 1)
        code.go(done)
        code.place(below)
        code.move(R0, 0)
        code.go(done)
        code.place(above)
        code.move(R0, info.buckets - 1)
        code.place(done)

    def _find_power(self, bits: int, *, is_signed: bool) -> None:
        """R0 = 0 below zero; else the number of leading bits, and `bits` bits that follow."""
        code = self.code
        negative, small, done = code.label(), code.label(), code.label()
        if is_signed:
            code.jump("s<", R0, 0, negative)
        code.jump("<", R0, 2 << bits, small)
        if bits:
            code.copy(R1, R0)
        code.move(R3, 0 if bits else 1)
        for shift in (32, 16, 8, 4, 2, 1):
            following = code.label()
            code.jump("<", R0, 1 << shift, following)
            code.alu(">>=", R0, shift)
            code.alu("+=", R3, shift)
            code.place(following)
        code.copy(R0, R3)
        if bits:
            code.alu("-=", R0, bits)
            code.alu_register(">>=", R1, R0)
            code.alu("&=", R1, (1 << bits) - 1)
            code.alu("+=", R0, 1)
            code.alu("<<=", R0, bits)
            code.alu_register("+=", R0, R1)
        code.place(small)
        code.alu("+=", R0, 1)
        if is_signed:
            code.go(done)
            code.place(negative)
            code.move(R0, 0)
        code.place(done)

    # tseries(): an element of three words for each interval: value, second word, interval

    def _add_to_series(
        self, info: MapInfo, key: tree.Expression | None, value: tree.Expression
    ) -> None:
        """Store a value, or add it to the values of the interval that runs now."""
        assert info.value is not None
        code, done, same = self.code, self.code.label(), self.code.label()
        amount, now, interval = self.take(8), self.take(8), self.take(8)
        self.scalar(value)
        code.store(amount.base, amount.offset, R0, 8)
        self._find_interval(info, now, interval)
        self.note_value(info)
        place = self.key(info, key)
        code.load(R0, *interval, 8)
        code.alu("%=", R0, info.value.numbers[1])
        bucket = place if info.is_scalar else place.add(info.key_size - 8)
        code.store(bucket.base, bucket.offset, R0, 8)
        self.find_or_insert(info, place, done)
        code.load(R1, *interval, 8)
        code.load(R2, R0, 16, 8)
        code.jump_register("==", R1, R2, same)
        code.store(R0, 16, R1, 8)
        code.store_constant(R0, 0, 0, 8)
        code.store_constant(R0, 8, 0, 8)
        code.place(same)
        self._combine(info, amount, now)
        code.place(done)

    def _find_interval(self, info: MapInfo, now: Place, interval: Place) -> None:
        """Store the time of day in ns since 1970, and the number of its interval."""
        assert info.value is not None
        code = self.code
        clock = self.context.maps.get(self.context.settings.environment.get("dummy_ts_map", ""))
        if clock is not None and clock.in_globals:
            self.load_value(clock, None)
        else:
            code.call_helper("ktime_get_boot_ns")
            code.map_value(R1, "globals", WALL)
            code.load(R1, R1, 0, 8)
            code.alu_register("+=", R0, R1)
        code.store(now.base, now.offset, R0, 8)
        code.move(R1, info.value.numbers[0])
        code.alu_register("/=", R0, R1)
        code.store(interval.base, interval.offset, R0, 8)

    def _combine(self, info: MapInfo, amount: Place, now: Place) -> None:
        """Change the value and the second word at R0: a time, a count, or 1."""
        assert info.value is not None
        code, done = self.code, self.code.label()
        code.load(R1, *amount, 8)
        match info.value.text:
            case "":
                code.store(R0, 0, R1, 8)
                code.load(R1, *now, 8)
                code.store(R0, 8, R1, 8)
            case "sum" | "avg":
                code.atomic_add(R0, 0, R1, 8)
                code.move(R1, 1)
                code.atomic_add(R0, 8, R1, 8)
            case text:
                better = code.label()
                operator = ("s" if info.value.signed else "") + (">=" if text == "min" else "<=")
                code.load(R2, R0, 8, 8)
                code.jump("==", R2, 0, better)
                code.load(R2, R0, 0, 8)
                code.jump_register(operator, R1, R2, done)
                code.place(better)
                code.store(R0, 0, R1, 8)
                code.store_constant(R0, 8, 1, 8)
        code.place(done)
