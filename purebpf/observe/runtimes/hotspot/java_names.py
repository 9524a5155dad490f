"""The names of compilations and interpreted methods, read when BPF meets them first.

Later any of them may be unloaded, and its memory may get another one. BPF has read the identity of
a method while a thread ran it, and how many classes the JVM had unloaded: names are used only if
both are the same after they were read. A compilation also has a number. Methods whose identity BPF
could not read, because a page was missing, are looked at again by `recheck`.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from purebpf.observe.runtimes.hotspot.java_process import UNKNOWN, JavaReading
from purebpf.observe.runtimes.v8.v8_code import V8Code, read_v8_code
from purebpf.observe.runtimes.v8.v8_process import V8Reading
from purebpf.runtimes.hotspot.code_cache import Blob
from purebpf.runtimes.hotspot.frames import UNKNOWN_METHOD, VIRTUAL, JavaFrame
from purebpf.runtimes.hotspot.inlined import Inlined
from purebpf.runtimes.hotspot.methods import JavaMethod
from purebpf.runtimes.v8.javascript_frame import UNKNOWN_FUNCTION, JavaScriptFrame
from purebpf.symbols.frame import Address, Frame, Reason, Unknown
from purebpf.symbols.java_words import (
    IN_HEAP,
    MOST_COPIED,
    JavaWord,
    no_method_word,
    user_space_word,
)
from purebpf.tuples import NamedTuple

__all__ = ["JavaCodeNames", "JavaRecord", "Reading", "is_outdated", "read_record"]

_RECORD = struct.Struct("<QQQQQQQII")
_GENERATION = 0xFFFFFFFF
_MOST_CODES = 1 << 17
_MODULE = "[jit]"
_KEPT_FRAMES = 4096
_FILE = "file://"
Answer = Frame | Unknown
NamedFrame = JavaFrame | JavaScriptFrame
Reading = JavaReading | V8Reading


class JavaRecord(NamedTuple):
    """Code that BPF met first: struct java_code.

    Attributes:
        generation: of the entry of its process.
        address: of the compilation, or of the interpreted method.
        check: the number of the compilation, or the address of the ConstMethod (xor its identity).
        method: the address of the Method; of a function of V8 its SharedFunctionInfo.
        pc: an address in the compilation.
        identity: of the method, see `method_identity`; 0: it could not be read.
        unloaded: how many classes the JVM had unloaded; `UNKNOWN`: it does not say.
        number: in the words of its frames.
        is_interpreted: as it says.
    """

    generation: int
    address: int
    check: int
    method: int
    pc: int
    identity: int
    unloaded: int
    number: int
    is_interpreted: bool


def read_record(raw: bytes) -> JavaRecord:
    """Decode a record of `java_names`."""
    generation, *numbers, is_interpreted = _RECORD.unpack(raw)
    own = (generation & _GENERATION) >> 1  # above it, V8's thread
    return JavaRecord._make((own, *numbers, bool(is_interpreted)))


class _Code(NamedTuple):
    """The methods at places of JIT-compiled code; all places were read at once."""

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
        self._codes: dict[int, _Code | V8Code] = {}
        self._rechecked: dict[int, JavaRecord] = {}
        self._copied: dict[tuple[NamedFrame, ...], int] = {}
        self._answers: list[Sequence[Answer]] = []
        self.unread = 0

    def add(self, record: JavaRecord, reading: Reading | None) -> bool:
        """Read the names of some code; None: its process has ended. False: it has none."""
        code = None
        if reading is not None and len(self._codes) < _MOST_CODES:
            code = _read(record, reading)
        if code is None:
            self.unread += 1
            return False
        self._codes[record.number] = code
        if record.is_interpreted is not isinstance(code, V8Code) and not record.identity:
            self._rechecked[record.number] = record
        return True

    def recheck(self, look: Callable[[int], Reading | None], most: int = _MOST_CODES) -> None:
        """Give up the names of interpreted methods whose memory has another method by now, and the
        inlined functions of V8's code where other code of the same function is.

        It is not known which samples were of which, so all of them lose the name.

        Args:
            look: the memory of a generation as it is now; None: its process has ended.
            most: methods to look at; the next call goes on with others.
        """
        readings: dict[int, Reading | None] = {}
        for number in list(self._rechecked)[:most]:
            record = self._rechecked.pop(number)
            if record.generation not in readings:
                readings[record.generation] = look(record.generation)
            reading = readings[record.generation]
            if reading is None:
                continue  # and never again
            before, now = self._codes[number], _read(record, reading)
            if isinstance(before, V8Code):
                if isinstance(now, V8Code) and before.is_other(now):
                    self._codes[number] = before.root()
                    self.unread += 1
                else:
                    self._rechecked[number] = record
            elif not isinstance(now, _Code) or now.methods != before.methods:
                del self._codes[number]
                self.unread += 1
            else:
                self._rechecked[number] = record

    def number(self, frames: tuple[NamedFrame, ...]) -> int:
        """Return a word for the functions of a frame that was walked in user space."""
        method_frames = tuple(frame for frame in frames if _is_function(frame))
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
        if isinstance(code, V8Code):
            return [self._named(frame) for frame in code.frames(word.place)]
        if word.is_interpreted:
            (place,) = code.places[0]
            return (self._frame(code.methods[place.method], word.place),)
        at = min(bisect_left(code.offsets, word.place), len(code.places) - 1)
        return [self._frame(code.methods[each.method], each.bytecode) for each in code.places[at]]

    def _named(self, frame: NamedFrame) -> Answer:
        if frame.name in (UNKNOWN_METHOD, UNKNOWN_FUNCTION):
            return _unknown()
        line = frame.line if self._lines else 0
        if isinstance(frame, JavaScriptFrame):
            return _script_frame(frame.name, frame.file, line)
        return _frame(frame.name, frame.file if line else "", line)

    def _frame(self, method: JavaMethod | None, bytecode: int) -> Answer:
        if method is None:
            return _unknown()
        line = method.line(max(bytecode, 0)) if self._lines else 0
        return _frame(f"{method.class_name}.{method.name}", method.file if line else "", line)


@lru_cache(maxsize=_KEPT_FRAMES)
def _frame(name: str, file: str, line: int) -> Answer:
    return Frame(name, 0, _MODULE, Address(0), "user", file=file, line=line)


@lru_cache(maxsize=_KEPT_FRAMES)
def _script_frame(name: str, file: str, line: int) -> Answer:
    path = file.removeprefix(_FILE)
    return Frame(name, 0, path or _MODULE, Address(0), "user", file=path if line else "", line=line)


def _is_function(frame: NamedFrame) -> bool:
    return frame.is_method if isinstance(frame, JavaFrame) else frame.is_function


@lru_cache(maxsize=1)
def _unknown() -> Answer:
    return Unknown(Reason.JAVA_UNNAMED, "", Address(0), "user")


def _read(record: JavaRecord, reading: Reading) -> _Code | V8Code | None:
    """Read some code; None: it is not there any more."""
    if isinstance(reading, V8Reading):
        return read_v8_code(record, reading)
    if record.is_interpreted:
        method = reading.methods.find(record.address)
        if method is None or reading.constant(record.address) != record.check ^ record.identity:
            return None
        places = ((Inlined(record.address, 0),),)
        code = _Code((0,), places, {record.address: method})
        return code if _is_same(record, reading) else None
    blob = _blob(record, reading)
    if blob is None:
        return None
    offsets, chains = reading.inlined.places(blob)
    addresses = {each.method for chain in chains for each in chain}
    methods = {address: reading.methods.find(address) for address in addresses}
    code = _Code(offsets, chains, methods)
    return code if reading.is_still(blob) and _is_same(record, reading) else None


def is_outdated(record: JavaRecord, reading: Reading) -> bool:
    """Return True if a JVM's memory was read before it had some code."""
    if isinstance(reading, V8Reading):
        return False
    if not record.is_interpreted and _blob(record, reading) is None:
        return True
    if record.unloaded not in (UNKNOWN, reading.unloaded):
        return True
    return bool(record.identity) and reading.identity(record.method) != record.identity


def _blob(record: JavaRecord, reading: JavaReading) -> Blob | None:
    blob = reading.cache.find(record.pc) or reading.cache.find(record.pc - 1)
    if blob is None or blob.at != record.address or blob.compile_id != record.check:
        return None
    return blob if blob.method == record.method else None


def _is_same(record: JavaRecord, reading: JavaReading) -> bool:
    """Return True if names that were read are of the classes that BPF saw: the method had its
    identity before and has it still, and no class was unloaded since.
    """
    if record.identity:
        before, now = reading.identity(record.method), reading.identity_now(record.method)
        if not before == now == record.identity:
            return False
    return record.unloaded in (UNKNOWN, reading.unloaded_now())
