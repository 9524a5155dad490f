"""The entries of `.eh_frame` and `.debug_frame`: CIEs, which are shared, and FDEs, one a function.

Layout: DWARF 5, section 6.4.1; for .eh_frame the Linux Standard Base, Core Generic, "Exception
Frames". They differ in how an entry names its CIE, and .eh_frame has augmentations:

    z  sizes follow     R  encoding of addresses    P  personality routine    L  language's data
    S  signal frame     B  return address signed with key B (arm64)    G  tagged stack (arm64)
    eh  a pointer of GCC 2 follows the string
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from purebpf.late_pattern import compile_later
from purebpf.tuples import NamedTuple
from purebpf.unwind.budget import Budget
from purebpf.unwind.encoded import (
    NO_BASES,
    OMIT,
    Bases,
    EncodingError,
    pointer,
    pointer_size,
    sleb,
    uleb,
)

__all__ = ["LONGEST_CODE", "Cie", "EntryError", "Fde", "FrameSection"]

_HEAD = struct.Struct("<IIiI")
_LENGTH = struct.Struct("<I")
_LONG = struct.Struct("<Q")
_WORDS = struct.Struct("<QQ")
_NOT_ZERO = compile_later(rb"[^\0]")
_DWARF64 = 0xFFFFFFFF
_UDATA4, _PCREL_SDATA4 = 0x03, 0x1B
_LONGEST_AUGMENTATION = 32
LONGEST_CODE = 1 << 17
"""Bytes of instructions of one entry. The largest of Debian 12 has less than a third of it."""
_MOST_CIES = 1 << 14
_AHEAD = 512
_WORD = (1 << 64) - 1


class EntryError(Exception):
    """An entry that cannot be read."""


class Cie:
    """The part that many FDEs share. Compared and hashed by identity.

    Attributes:
        code_factor, data_factor: the factors of advances and offsets.
        ra: the register, or column, of the return address.
        encoding: how FDEs spell addresses.
        has_sizes: FDEs have augmentation data.
        is_signal: the frames are those that the kernel builds for a signal handler.
        code: the initial instructions.
        initial: the rules after them; the interpreter fills it once.
    """

    __slots__ = (
        "code",
        "code_factor",
        "data_factor",
        "encoding",
        "has_sizes",
        "initial",
        "is_signal",
        "ra",
    )

    def __init__(self) -> None:
        self.code_factor = self.data_factor = 1
        self.ra = self.encoding = 0
        self.has_sizes = self.is_signal = False
        self.code = b""
        self.initial: object = None


class Fde(NamedTuple):
    """The instructions for addresses `start` up to `end`. `code_address` is their own address."""

    start: int
    end: int
    cie: Cie
    code: bytes
    code_address: int


class FrameSection:
    """One section of entries.

    Args:
        read: (offset in the section, size) -> bytes, fewer at its end.
        size: of the section, in bytes.
        address: where it is loaded.
        is_debug: .debug_frame.
        is_terminated: the size is not known exactly: a length of 0 ends the section.
        word: bytes of an address in the file.
        bases: the bases of encoded pointers.
    """

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        size: int,
        address: int,
        *,
        is_debug: bool = False,
        is_terminated: bool = False,
        word: int = 8,
        bases: Bases = NO_BASES,
    ) -> None:
        self._read = read
        self.size = size
        self.address = address
        self.is_debug = is_debug
        self._is_terminated = is_terminated
        self._bases = bases
        self._word = word
        self._cies: dict[int, Cie | None] = {}
        self.broken = 0

    def fde(self, at: int, budget: Budget) -> tuple[Fde, int]:
        """The FDE at an offset, and where it ends.

        Raises:
            EntryError: there is none.
            OverBudgetError: its CIE takes too many steps.
        """
        data = self._read(at, _AHEAD)
        entry = _entry(data, 0, self.is_debug)
        if entry is None or entry.id == entry.cie_id:
            raise EntryError
        if entry.end > len(data):
            data = self._read(at, min(entry.end, entry.body + LONGEST_CODE))
        if entry.end > len(data):
            raise EntryError
        return self._fde(data, entry, at, budget), at + entry.end

    def scan(self, budget: Budget) -> Iterator[tuple[int, int, int, Cie, bytes, int]]:
        """The offset and the fields of each FDE, in the order of the section; counts broken ones.

        Reads the whole section at once. Zeros between entries are skipped as readelf does: linkers
        leave terminators in the middle.

        Raises:
            OverBudgetError: the section takes more steps than any real one of its size.
        """
        data = self._read(0, self.size) + bytes(_HEAD.size)
        budget.spend(len(data) >> 4)
        self.broken = 0
        size = len(data) - _HEAD.size
        at = 0
        cies = self._cies
        address = self.address
        quick = not self.is_debug
        unpack = _HEAD.unpack_from
        while at < size:
            length, cie_at, delta, span = unpack(data, at)
            end = at + 4 + length
            cie = cies.get(at + 4 - cie_at) if quick and cie_at else None
            if (
                cie is not None
                and cie.encoding == _PCREL_SDATA4
                and 12 < length <= LONGEST_CODE
                and end <= size
            ):
                code = at + 16
                if cie.has_sizes:
                    extra = data[code]
                    code += 1 + extra
                    if extra > 127 or code > end:
                        self.broken += 1
                        at = end
                        continue
                start = address + at + 8 + delta & _WORD
                yield at, start, start + span, cie, data[code:end], address + code
                at = end
                continue
            if not length:
                if self._is_terminated:
                    return
                following = _NOT_ZERO.search(data, at)
                if following is None:
                    return
                at += (following.start() - at) & -4
                budget.spend(1)
                continue
            entry = _entry(data, at, self.is_debug)
            budget.spend(1)
            if entry is None or entry.end > size:
                self.broken += 1
                return
            if entry.id != entry.cie_id:
                try:
                    yield at, *self._fde(data, entry, 0, budget)
                except EntryError:
                    self.broken += 1
            at = entry.end

    def _fde(self, data: bytes, entry: _Entry, origin: int, budget: Budget) -> Fde:
        """The FDE in `data`, which starts at offset `origin` of the section."""
        cie = self._cie(entry.id if self.is_debug else origin + entry.id_at - entry.id, budget)
        if cie is None or entry.end - entry.body > LONGEST_CODE:
            raise EntryError
        address = self.address + origin
        try:
            start, at = pointer(data, entry.body, cie.encoding, address + entry.body, self._bases)
            span, at = pointer(data, at, cie.encoding & 0x07, 0)  # a size has no sign
            if cie.has_sizes:
                extra, at = uleb(data, at)
                at += extra
        except EncodingError:
            raise EntryError from None
        if at > entry.end:
            raise EntryError
        return Fde(start, start + span, cie, data[at : entry.end], address + at)

    def _cie(self, at: int, budget: Budget) -> Cie | None:
        """The CIE at an offset; None if it cannot be read. Each is read once."""
        if at in self._cies:
            return self._cies[at]
        if not 0 <= at < self.size or len(self._cies) >= _MOST_CIES:
            return None
        data = self._read(at, _AHEAD)
        cie = None
        entry = _entry(data, 0, self.is_debug)
        if entry is not None and entry.id == entry.cie_id:
            budget.spend(16)
            if entry.end > len(data) and entry.end - entry.body <= LONGEST_CODE:
                data = self._read(at, entry.end)
            try:
                is_whole = entry.end <= len(data)
                cie = _parse_cie(data, entry, self.is_debug, self._word) if is_whole else None
            except (EncodingError, IndexError):
                cie = None
        self._cies[at] = cie
        return cie


class _Entry(NamedTuple):
    """An entry's frame: the place of its id, the start of its content, and its end."""

    id: int
    cie_id: int
    id_at: int
    body: int
    end: int


def _entry(data: bytes, at: int, is_debug: bool) -> _Entry | None:
    if at + 8 > len(data):
        return None
    (length,) = _LENGTH.unpack_from(data, at)
    at += 4
    wide = length == _DWARF64
    if wide:
        if at + 16 > len(data):
            return None
        (length,) = _LONG.unpack_from(data, at)
        at += 8
    end = at + length
    if length < 4 or length > 1 << 32:
        return None
    if is_debug and wide:
        return _Entry(_LONG.unpack_from(data, at)[0], _WORD, at, at + 8, end)
    (number,) = _LENGTH.unpack_from(data, at)
    return _Entry(number, 0xFFFFFFFF if is_debug else 0, at, at + 4, end)


def _parse_cie(data: bytes, entry: _Entry, is_debug: bool, word: int) -> Cie:
    """Raises EncodingError or IndexError for one that is not understood."""
    cie = Cie()
    data = data[: entry.end]
    version = data[entry.body]
    at = entry.body + 1
    stop = data.find(b"\0", at, at + _LONGEST_AUGMENTATION)
    if stop < 0 or version not in (1, 3, 4):
        raise EncodingError
    augmentation = data[at:stop]
    at = stop + 1
    if augmentation == b"eh":
        at += word
    if version == 4:
        if data[at] != word or data[at + 1]:  # sizes of an address and of a segment selector
            raise EncodingError
        at += 2
    cie.code_factor, at = uleb(data, at)
    cie.data_factor, at = sleb(data, at)
    if version == 1:
        cie.ra = data[at]
        at += 1
    else:
        cie.ra, at = uleb(data, at)
    if augmentation.startswith(b"z"):
        size, at = uleb(data, at)
        if at + size > len(data):
            raise EncodingError
        _augment(cie, augmentation[1:], data[: at + size], at, word)
        cie.has_sizes = True
        at += size
    elif augmentation not in (b"", b"eh"):
        raise EncodingError
    if is_debug and cie.encoding:
        raise EncodingError
    cie.encoding = _of_word(cie.encoding, word)
    cie.code = data[at:]
    return cie


def _augment(cie: Cie, letters: bytes, data: bytes, at: int, word: int) -> None:
    for letter in letters.decode("latin-1"):
        if letter == "R":
            cie.encoding = data[at]
            at += 1
        elif letter == "L":
            at += 1
        elif letter == "P":
            at = _skip_pointer(data, at + 1, _of_word(data[at], word))
        elif letter == "S":
            cie.is_signal = True
        elif letter not in "BG":
            break  # what follows an unknown letter cannot be read; its size is known
    if cie.encoding == OMIT:
        raise EncodingError


def _of_word(encoding: int, word: int) -> int:
    """Return the encoding of pointers with their size, where that is the size of a word."""
    return encoding | _UDATA4 if word == 4 and not encoding & 0x0F else encoding


def _skip_pointer(data: bytes, at: int, encoding: int) -> int:
    if encoding == OMIT:
        return at
    if encoding & 0x70 == 0x50:
        raise EncodingError  # aligned to an address that only the running program has
    size = pointer_size(encoding)
    return at + size if size else uleb(data, at)[1]
