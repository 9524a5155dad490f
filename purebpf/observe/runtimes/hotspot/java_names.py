"""The names of compilations and interpreted methods, read when BPF meets them first.

Later any of them may be unloaded. A compilation was there all the time if its number is the same
before and after; then all methods that it names were there, too. An interpreted method is told from
one that had its memory before by its ConstMethod, and by its name, which `recheck` compares: memory
of an unloaded class may get an equal class.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from purebpf.observe.runtimes.hotspot.java_process import JavaReading
from purebpf.runtimes.hotspot.frames import UNKNOWN_METHOD, VIRTUAL, JavaFrame
from purebpf.runtimes.hotspot.inlined import Inlined
from purebpf.runtimes.hotspot.methods import JavaMethod
from purebpf.symbols.frame import Address, Frame, Reason, Unknown
from purebpf.symbols.java_words import (
    IN_HEAP,
    MOST_COPIED,
    JavaWord,
    no_method_word,
    user_space_word,
)
from purebpf.tuples import NamedTuple

__all__ = ["JavaCodeNames", "JavaRecord", "read_record"]

_RECORD = struct.Struct("<QQQQQII")
_MOST_CODES = 1 << 17
_MODULE = "[jit]"
_KEPT_FRAMES = 4096
Answer = Frame | Unknown


class JavaRecord(NamedTuple):
    """Code that BPF met first: struct java_code.

    Attributes:
        generation: of the entry of its process.
        address: of the compilation, or of the interpreted method.
        check: the number of the compilation, or the address of the ConstMethod.
        pc: an address in the compilation.
        number: in the words of its frames.
        is_interpreted: as it says.
    """

    generation: int
    address: int
    check: int
    pc: int
    number: int
    is_interpreted: bool


def read_record(raw: bytes) -> JavaRecord:
    """Decode a record of `java_names`."""
    generation, address, check, _, pc, number, is_interpreted = _RECORD.unpack(raw)
    return JavaRecord(generation >> 1, address, check, pc, number, bool(is_interpreted))


class _Code(NamedTuple):
    """The methods at the places of some code, all of which were read at once."""

    offsets: Sequence[int]
    places: Sequence[Sequence[Inlined]]
    methods: Mapping[int, JavaMethod | None]


class JavaCodeNames:
    """Names words.

    Args:
        lines: whether lines are wanted.

    Attributes:
        unread: codes that were gone when they were read, and have no names.
    """

    def __init__(self, *, lines: bool) -> None:
        self._lines = lines
        self._codes: dict[int, _Code] = {}
        self._interpreted: dict[int, JavaRecord] = {}
        self._copied: dict[tuple[JavaFrame, ...], int] = {}
        self._answers: list[Sequence[Answer]] = []
        self.unread = 0

    def add(self, record: JavaRecord, reading: JavaReading | None) -> None:
        """Read the names of some code; None: its process has ended."""
        code = None
        if reading is not None and len(self._codes) < _MOST_CODES:
            code = _read(record, reading)
        if code is None:
            self.unread += 1
        else:
            self._codes[record.number] = code
            if record.is_interpreted:
                self._interpreted[record.number] = record

    def recheck(self, look: Callable[[int], JavaReading | None], most: int = _MOST_CODES) -> None:
        """Give up the names of interpreted methods whose memory has another method by now.

        It is not known which samples were of which, so all of them lose the name.

        Args:
            look: the memory of a generation as it is now; None: its process has ended.
            most: methods to look at; the next call goes on with others.
        """
        readings: dict[int, JavaReading | None] = {}
        for number in list(self._interpreted)[:most]:
            record = self._interpreted.pop(number)
            if record.generation not in readings:
                readings[record.generation] = look(record.generation)
            reading = readings[record.generation]
            if reading is None:
                continue  # and never again
            now = _read(record, reading)
            if now is None or now.methods != self._codes[number].methods:
                del self._codes[number]
                self.unread += 1
            else:
                self._interpreted[number] = record

    def number(self, frames: tuple[JavaFrame, ...]) -> int:
        """Return a word for the functions of a frame that was walked in user space."""
        method_frames = tuple(frame for frame in frames if frame.is_method)
        if not method_frames:
            return no_method_word()
        if method_frames not in self._copied:
            if len(self._answers) >= MOST_COPIED:
                return user_space_word(MOST_COPIED)
            self._copied[method_frames] = len(self._answers)
            self._answers.append([self._named(frame) for frame in method_frames])
        return user_space_word(self._copied[method_frames])

    def frames(self, word: JavaWord) -> Sequence[Answer]:
        """The functions of a frame, innermost first."""
        if word.number < 0:
            return (_frame(VIRTUAL, "", 0),) if word.place == IN_HEAP else ()
        if word.copied is not None:
            at = word.copied
            return self._answers[at] if at < len(self._answers) else (_unknown(),)
        code = self._codes.get(word.number)
        if code is None:
            return (_unknown(),)
        if word.is_interpreted:
            (place,) = code.places[0]
            return (self._frame(code.methods[place.method], word.place),)
        at = min(bisect_left(code.offsets, word.place), len(code.places) - 1)
        return [self._frame(code.methods[each.method], each.bytecode) for each in code.places[at]]

    def _named(self, frame: JavaFrame) -> Answer:
        if frame.name == UNKNOWN_METHOD:
            return _unknown()
        line = frame.line if self._lines else 0
        return _frame(frame.name, frame.file if line else "", line)

    def _frame(self, method: JavaMethod | None, bytecode: int) -> Answer:
        if method is None:
            return _unknown()
        line = method.line(max(bytecode, 0)) if self._lines else 0
        return _frame(f"{method.class_name}.{method.name}", method.file if line else "", line)


@lru_cache(maxsize=_KEPT_FRAMES)
def _frame(name: str, file: str, line: int) -> Answer:
    return Frame(name, 0, _MODULE, Address(0), "user", file=file, line=line)


@lru_cache(maxsize=1)
def _unknown() -> Answer:
    return Unknown(Reason.JAVA_UNNAMED, "", Address(0), "user")


def _read(record: JavaRecord, reading: JavaReading) -> _Code | None:
    """Read some code; None: it is not there any more."""
    if record.is_interpreted:
        method = reading.methods.find(record.address)
        if method is None or reading.constant(record.address) != record.check:
            return None
        places = ((Inlined(record.address, 0),),)
        return _Code((0,), places, {record.address: method})
    blob = reading.cache.find(record.pc) or reading.cache.find(record.pc - 1)
    if blob is None or blob.at != record.address or blob.compile_id != record.check:
        return None
    offsets, chains = reading.inlined.places(blob)
    addresses = {each.method for chain in chains for each in chain}
    methods = {address: reading.methods.find(address) for address in addresses}
    return _Code(offsets, chains, methods) if reading.is_still(blob) else None
