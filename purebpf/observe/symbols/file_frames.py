"""`FileFrames`: frames of places in ELF files, made once for all processes.

Without addresses, there is one frame for each function. Two bisects find it again, in the known
code of a process and in the known functions of a file. Most addresses of a later window are new
ones in functions that had samples before.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from purebpf.observe.symbols.answers import Answer, Asked
from purebpf.observe.symbols.elf_files import ElfFunctions
from purebpf.observe.symbols.function_starts import FunctionStarts
from purebpf.symbols.address_spaces import AddressSpaces
from purebpf.symbols.demangle import demangle
from purebpf.symbols.elf_image import code_segment, virtual_offset
from purebpf.symbols.frame import (
    Address,
    FileOffset,
    Frame,
    Reason,
    Unknown,
    VirtualOffset,
    unnamed_function,
)
from purebpf.symbols.intervals import RangeMap
from purebpf.symbols.proc_maps import Mapping
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.unwind.cfi_file import Function

__all__ = ["FileFrames"]

_KEEP_PLACES = 1 << 13
"""Of a file."""
_KEEP_PATHS = 16
"""The same."""


class FileFrames:
    """Names code that is mapped from files.

    Args:
        starts: where functions without a symbol start.
        spaces: the mappings.
    """

    def __init__(self, starts: FunctionStarts, spaces: AddressSpaces) -> None:
        self._starts = starts
        self._spaces = spaces

    def at_place(
        self, functions: ElfFunctions, mapping: Mapping, asked: Asked, address: int, back: int
    ) -> Answer:
        """The frame of an address, which is looked up `back` bytes before it.

        Raises:
            FormatError, OSError: the stored table of the file is gone, or damaged.
            OverBudgetError: as `FunctionStarts.find`.
        """
        path, where = mapping.file.path, mapping.file_offset(Address(address))
        frame = functions.table.places.get((where, back, path))
        if frame is None:
            place = _Place.of(functions, mapping, asked.pid, where, back)
            frame = self._frame(place, place.key)
            if frame is None:
                return _nameless(place, address)
        name, offset, build_id = frame.name, frame.offset, functions.build_id
        return Frame(name, offset, path, Address(address), "user", build_id, where)

    def of_function(
        self, functions: ElfFunctions, mapping: Mapping, asked: Asked, address: int, back: int
    ) -> Answer:
        """The frame of its function, which has no address. Raises as `at_place`."""
        where = mapping.file_offset(Address(address))
        place = _Place.of(functions, mapping, asked.pid, where, back)
        frame = None
        if place.at is not None:
            frames = _functions_of(functions, place.path)
            self._note_code(place, asked, address - back, frames)
            frame = frames.find(place.at) or self._find(place, place.at, frames)
        return frame or self._frame(place, place.key) or _nameless(place, address)

    def _note_code(
        self, place: _Place, asked: Asked, address: int, frames: RangeMap[Frame]
    ) -> None:
        """Remember the mapping around an address, as far as it is code of one segment."""
        segment = code_segment(place.functions.segments, place.before)
        span = self._spaces.span(asked.pid, address, asked.comm)
        if segment is None or span is None:
            return
        first = address - (place.before - segment.offset)
        start, end = max(span[0], first), min(span[1], first + segment.file_size)
        asked.code.add(start, end, (first - segment.address, frames))

    def _find(self, place: _Place, at: VirtualOffset, frames: RangeMap[Frame]) -> Frame | None:
        """The frame of a function at a place that was not asked about; it is remembered."""
        table = place.functions.table
        row = table.row(at) if self._symbol(place) else None
        start, end = table.span(at, row)
        key: Hashable = row
        if row is None:
            function = self._unnamed(place)
            if function is None:
                return None
            # what returns to the symbol behind it may have its name: `_without_symbol`
            key, end = function, min(function.end, end - 1)
            if at >= end:
                return None
        frame = self._frame(place, (key, place.path))
        if frame is not None and len(frames) < _KEEP_PLACES:
            frames.add(start, end, frame)
        return frame

    def _frame(self, place: _Place, key: Hashable) -> Frame | None:
        """Return the frame of all processes for a key; None: no name."""
        places = place.functions.table.places
        frame = places.get(key)
        if frame is None:
            at = self._symbol(place)
            named = (demangle(at[0]), at[1] + place.back) if at else self._without_symbol(place)
            if named is None:
                return None
            build_id = place.functions.build_id
            frame = Frame(*named, place.path, Address(0), "user", build_id, place.where)
            if len(places) < _KEEP_PLACES:
                places[key] = frame
        return frame

    def _symbol(self, place: _Place) -> tuple[str, int] | None:
        """Return the symbol of a place, as in the file, and the bytes into it.

        A symbol without a size ends where an entry of the call frame information begins. In
        a stripped file, code between two entries may belong to functions that are not exported:
        there, the symbol has the code that certainly follows from its start.
        """
        found = place.functions.find(place.before)
        table = place.functions.table
        if found is None or place.at is None or place.mapping.file.is_special:
            return found
        row = table.row(place.at)
        if row is None or not table.is_unsized(row):
            return found
        family = self._spaces.family(place.pid)
        start = place.at - found[1]
        entry = self._starts.find(place.mapping, family, place.before)
        if entry is not None:
            return found if entry.start <= start else None
        gap = self._starts.gap(place.mapping, family, place.before)
        if gap is not None and gap.start > start:
            return None
        if not place.functions.is_stripped or not found[1]:
            return found
        first = FileOffset(place.before - found[1])
        return found if self._starts.least_size(place.mapping, family, first) > found[1] else None

    def _without_symbol(self, place: _Place) -> tuple[str, int] | None:
        """Return name and offset of code without a symbol `back` bytes earlier.

        That is a signal handler's way back, which has one at the address itself; or a function
        that only its start tells from others. One that ends with a call is not the one behind it.
        """
        function, at, back = self._unnamed(place), place.at, place.back
        if back and (function is None or at is None or function.end > at + back):
            exact = place.functions.find(place.where)
            if exact is not None:
                return demangle(exact[0]), exact[1]
        if function is None or at is None:
            return None
        name = unnamed_function(place.path, VirtualOffset(function.start))
        return name, at + back - function.start

    def _unnamed(self, place: _Place) -> Function | None:
        """The function without a symbol at a byte of the file."""
        if place.mapping.file.is_special:
            return None
        return self._starts.find(place.mapping, self._spaces.family(place.pid), place.before)


class _Place(NamedTuple):
    """A byte of a mapped file: `back` bytes before the requested one, at `at` if it is loaded."""

    functions: ElfFunctions
    mapping: Mapping
    pid: int
    where: FileOffset
    back: int
    before: FileOffset
    at: VirtualOffset | None

    @classmethod
    def of(
        cls, functions: ElfFunctions, mapping: Mapping, pid: int, where: FileOffset, back: int
    ) -> _Place:
        """Return the requested one, given as `where`."""
        before = FileOffset(where - back)
        at = virtual_offset(functions.segments, before)
        return cls(functions, mapping, pid, where, back, before, at)

    @property
    def path(self) -> str:
        """As the process sees it."""
        return self.mapping.file.path

    @property
    def key(self) -> Hashable:
        """Tells it from others of the file."""
        return self.where, self.back, self.path


def _functions_of(functions: ElfFunctions, path: str) -> RangeMap[Frame]:
    """Return the known functions of a file with a path: frames have it."""
    by_path = functions.table.functions
    frames = by_path.get(path)
    if frames is None:
        if len(by_path) >= _KEEP_PATHS:
            by_path.clear()
        frames = by_path[path] = RangeMap()
    return frames


def _nameless(place: _Place, address: int) -> Unknown:
    functions = place.functions
    reason = Reason.STRIPPED if functions.is_stripped else Reason.NO_FUNCTION
    about = "", functions.build_id, place.where
    return Unknown(reason, place.path, Address(address), "user", *about)
