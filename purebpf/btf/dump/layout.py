"""The layout of a C compiler: alignment, packing and padding of dumped C.

BTF has offsets and sizes, but no attributes and no alignment. A struct is packed when its members
could not have their places otherwise; gaps from alignment attributes are filled with unnamed bit
fields. The rules are from the System V ABIs, which x86-64 and BPF share.
"""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.btf.types import kinds
from purebpf.btf.types.parse import MAX_DEPTH, Btf
from purebpf.errors import FormatError
from purebpf.tuples import NamedTuple

__all__ = ["Layouts", "MemberPlace", "padding"]

_UNITS = ((64, "long"), (32, "int"), (16, "short"), (8, "char"))
_UNITS_32 = _UNITS[1:]


class MemberPlace(NamedTuple):
    """A member's place: its first bit and its size in bits; `width` is a bit field's width, or 0.

    `unit` is the size in bits of the type that a bit field was declared with.
    """

    offset: int
    size: int
    width: int
    unit: int


class _Plain(NamedTuple):
    """A type as a member sees it: sizes in bits, `alignment` in bytes.

    An integer of old BTF may be a bit field by itself: `width` bits from bit `shift`.
    """

    size: int
    alignment: int
    shift: int = 0
    width: int = 0


class Layouts:
    """Places, alignment and packing of the types of one Btf.

    Methods raise FormatError for a type that has no size or contains itself.
    """

    def __init__(self, btf: Btf) -> None:
        self._btf = btf
        self._plain: dict[int, _Plain] = {}
        self._packed: dict[int, bool] = {}
        self._open: set[int] = set()

    def place(self, member: kinds.Member) -> MemberPlace:
        """Return a member's place."""
        plain = self._look(member.type_id)
        if member.bit_size:
            return MemberPlace(member.bit_offset, member.bit_size, member.bit_size, plain.size)
        if plain.width:
            return MemberPlace(
                member.bit_offset + plain.shift, plain.width, plain.width, plain.size
            )
        return MemberPlace(member.bit_offset, plain.size, 0, plain.size)

    def alignment(self, type_id: int) -> int:
        """The alignment of a type in bytes, as far as its layout betrays it."""
        return self._look(type_id).alignment

    def is_packed(self, type_id: int) -> bool:
        """Return True if only `__attribute__((packed))` explains the layout of a struct or
        union.
        """
        self._look(type_id)
        return self._packed[type_id]

    def _look(self, type_id: int) -> _Plain:
        known = self._plain.get(type_id)
        if known is None:
            if type_id in self._open or len(self._open) > MAX_DEPTH:
                raise FormatError(self._btf.source, f"type {type_id}", "contains itself")
            self._open.add(type_id)
            known = self._plain[type_id] = self._make(type_id)
            self._open.discard(type_id)
        return known

    def _make(self, type_id: int) -> _Plain:
        resolved = self._btf.resolve(type_id)
        if resolved != type_id:
            return self._look(resolved)
        btf_type = self._btf.type(type_id)
        size = 8 * self._btf.sizeof(type_id)
        match btf_type:
            case kinds.Array():
                return _Plain(size, self._look(btf_type.element).alignment)
            case kinds.Struct() | kinds.Union():
                natural = max(
                    (self._look(member.type_id).alignment for member in btf_type.members), default=1
                )
                packed = self._packed[type_id] = self._must_be_packed(btf_type, natural)
                return _Plain(size, 1 if packed else natural)
            case kinds.Int() if 0 < btf_type.bits < size:
                return _Plain(size, self._scalar(btf_type.size), btf_type.offset, btf_type.bits)
            case _:
                return _Plain(size, self._scalar(size // 8))

    def _scalar(self, size: int) -> int:
        pointer = self._btf.pointer_size
        widest = 16 if pointer == 8 and size == 16 else pointer
        return min(widest, size) if size & size - 1 == 0 else 1

    def _must_be_packed(self, record: kinds.Struct | kinds.Union, natural: int) -> bool:
        if record.size % natural:
            return True
        for member in record.members:
            place = self.place(member)
            if place.width:
                if place.offset % place.unit + place.width > place.unit:
                    return True
            elif place.offset % (8 * self._look(member.type_id).alignment):
                return True
        return False


def natural(at: int, place: MemberPlace, align: int, *, packed: bool) -> int:
    """Return the first bit that a compiler gives a member behind bit `at`; `align` is in bytes."""
    if place.width:
        over = not packed and at % place.unit + place.width > place.unit
        return _up(at, place.unit) if over else at
    return _up(at, 8 if packed else 8 * align)


def padding(
    at: int, place: MemberPlace, align: int, *, packed: bool = False, pointer_size: int = 8
) -> Iterator[str]:
    """The unnamed bit fields (`long: 64`) between bit `at` and where `place` has to be.

    Each is at a multiple of its type's size, where a compiler moves it if it is not there yet, or
    fills a byte up. They do not affect a struct's alignment.
    """
    units = _UNITS if pointer_size == 8 else _UNITS_32
    while at < place.offset and natural(at, place, align, packed=packed) != place.offset:
        fitting = ((bits, name, at if packed else _up(at, bits)) for bits, name in units)
        rest = min(_up(at + 1, 8), place.offset) - at
        bits, name, start = next(
            (fit for fit in fitting if fit[2] + fit[0] <= place.offset), (rest, "char", at)
        )
        yield f"{name}: {bits}"
        at = start + bits


def _up(value: int, to: int) -> int:
    return -(-value // to) * to
