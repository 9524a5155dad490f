"""HotSpot's code cache: from an address to the piece of code, the "blob", that holds it.

The cache is 1 to 3 heaps. A heap is divided into segments, and a map has a byte for each: 0xff for
a free one, 0 for the first of a block, else how many segments to go back. Behind the header of a
block is its CodeBlob (src/hotspot/share/memory/heap.cpp, code/codeBlob.hpp). A thread's own blobs
stay while they are on its stack; others may change at any time, so each look-up is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import islice

from purebpf.runtimes.hotspot.layout import ABSENT, Jvm, LayoutError
from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.tuples import NamedTuple

__all__ = ["Blob", "BlobKind", "CodeCache", "CodeHeap"]

_MOST_HEAPS = 16
_MOST_SHIFT = 31
_MOST_HOPS = 12
"""One is usual, and no look-up of a living JVM took more than 3."""
_FREE = 0xFF
_PIECE = 4096
_MOST_BLOCKS = 2048
"""Of a heap, among which there is one of each of its kinds."""
_MOST_SEGMENTS = 1 << 24
_WORD = 8
_MOST_FRAME = 1 << 20
_LARGEST_BLOB = 1 << 28
_LONGEST_NAME = 80
_TAIL = 8
"""The bytes of the widest field."""


class BlobKind(Enum):
    """The kinds of blobs that frames are left by, each in its way."""

    COMPILED = "nmethod"
    NATIVE = "native nmethod"
    INTERPRETER = "Interpreter"
    FRAMELESS = "vtable chunks"
    CONTINUATION = "StubRoutines (continuation stubs)"
    STUB = ""

    @property
    def is_method(self) -> bool:
        """True for the code of one compiled method."""
        return self in (BlobKind.COMPILED, BlobKind.NATIVE)


_KINDS = {kind.value: kind for kind in BlobKind if kind.value}
_CONTINUATION = "continuation"
_FRAMELESS = ("vtable", "itable", "InlineCache")


class CodeHeap(NamedTuple):
    """A part of the code cache.

    Attributes:
        low, high: its addresses, reserved for the life of the process.
        segments: the address of the map of its segments.
        shift: the logarithm of a segment's size.
    """

    low: int
    high: int
    segments: int
    shift: int


class Blob(NamedTuple):
    """A piece of code.

    Attributes:
        at: its address: the header is before the code.
        kind, name: a name is shared by all blobs of a kind.
        begin, end: its code.
        complete: the address from which on a method's frame is made.
        frame_size: bytes, with the return address and the saved frame pointer; 0: it varies.
        compile_id: the number of the compilation; 0: it is no method.
        method: the address of the Method; 0: it is none.
        entry: the address of a method's first instruction.
        orig_pc: bytes from the stack pointer to the true return address of a frame that is to be
            deoptimised; such a frame returns to one of `deopt_handlers`.
        header: its bytes.
    """

    at: int
    kind: BlobKind
    name: str
    begin: int
    end: int
    complete: int
    frame_size: int
    compile_id: int
    method: int
    entry: int
    orig_pc: int
    deopt_handlers: tuple[int, ...]
    header: bytes


class CodeCache:
    """Looks up code.

    Args:
        memory: the process's.
        jvm: its description.

    Attributes:
        heaps: the parts of the cache.
        interpreter: start and end of the interpreter's code.

    Raises:
        LayoutError: there are no heaps yet (the JVM starts), or none that a JVM could have.
    """

    def __init__(self, memory: Memory, jvm: Jvm) -> None:
        self._memory = memory
        self._layout = jvm.layout
        self._header = _header_size(jvm)
        self._names: dict[int, str] = {}
        self._blobs: dict[int, Blob | None] = {}
        try:
            self.heaps = self._read_heaps(jvm)
            queue = memory.number(jvm.addresses.interpreter)
            start = memory.number(queue + self._layout.queue_buffer)
            size = memory.number(queue + self._layout.queue_limit, 4)
        except UnreadableError:
            raise LayoutError(f"HotSpot {jvm.release}: the code cache cannot be read") from None
        self.interpreter = (start, start + size)

    def _read_heaps(self, jvm: Jvm) -> tuple[CodeHeap, ...]:
        number, layout = self._memory.number, self._layout
        array = number(jvm.addresses.heaps)
        if not array:
            raise LayoutError(f"HotSpot {jvm.release}: it starts, and has no code cache yet")
        count = number(array + layout.array_length, 4)
        if not 0 < count <= _MOST_HEAPS:
            raise LayoutError(f"HotSpot {jvm.release}: {count} code heaps")
        items = number(array + layout.array_data)
        heaps = [self._read_heap(number(items + _WORD * at)) for at in range(count)]
        for heap in heaps:
            if not heap.low < heap.high or heap.shift > _MOST_SHIFT:
                raise LayoutError(f"HotSpot {jvm.release}: a code heap of {heap}")
        return tuple(heaps)

    def _read_heap(self, at: int) -> CodeHeap:
        number, layout = self._memory.number, self._layout
        memory = at + layout.heap_memory
        return CodeHeap(
            number(memory + layout.space_low),
            number(memory + layout.space_high),
            number(at + layout.heap_segments + layout.space_low),
            number(at + layout.heap_shift, 4),
        )

    def has(self, address: int) -> bool:
        """Return True if an address is in the code cache."""
        return any(heap.low <= address < heap.high for heap in self.heaps)

    def find(self, address: int) -> Blob | None:
        """The blob with an address in it; None where there is no code now."""
        try:
            at = self._block(address)
        except UnreadableError:
            return None
        if at is None:
            return None
        if at not in self._blobs:
            self._blobs[at] = self._read(at)
        blob = self._blobs[at]
        return blob if blob is not None and blob.begin <= address < blob.end else None

    def names_of_kinds(self) -> dict[BlobKind, int]:
        """The addresses of the names that blobs of a kind share, of as many kinds as have blobs.

        Kinds are compiled and native methods, the interpreter, code without frames, and, if it
        comes before the last of these, code of continuations.
        """
        found: dict[BlobKind, int] = {}
        seen: set[int] = set()
        for heap in self.heaps:
            for at in islice(self._blocks(heap), _MOST_BLOCKS):
                try:
                    name = self._memory.number(at + self._layout.blob_name)
                except UnreadableError:
                    break
                if name in seen:
                    continue
                seen.add(name)
                text = self._name(name)
                kind = _KINDS.get(text)
                if kind is None and _CONTINUATION in text.lower():
                    kind = BlobKind.CONTINUATION
                if kind is not None:
                    found.setdefault(kind, name)
                    if len(found.keys() - {BlobKind.CONTINUATION}) == len(_KINDS) - 1:
                        return found
        return found

    def _blocks(self, heap: CodeHeap) -> Iterator[int]:
        """Yield the addresses of the blobs of a heap, by the map of its segments."""
        count = heap.high - heap.low >> heap.shift
        for first in range(0, min(count, _MOST_SEGMENTS), _PIECE):
            try:
                piece = self._memory.bytes(heap.segments + first, min(_PIECE, count - first))
            except UnreadableError:
                return
            at = piece.find(b"\0")
            while at >= 0:
                yield heap.low + (first + at << heap.shift) + self._layout.block_size
                at = piece.find(b"\0", at + 1)

    def identity(self, memory: Memory, blob: Blob) -> tuple[int, int]:
        """The number and the method of the compilation that is at a blob's address now; -1, -1:
        none can be read.
        """
        try:
            number = memory.number(blob.at + self._layout.nmethod_id, 4)
            return number, memory.number(blob.at + self._layout.nmethod_method)
        except UnreadableError:
            return -1, -1

    def _block(self, address: int) -> int | None:
        heap = next((heap for heap in self.heaps if heap.low <= address < heap.high), None)
        if heap is None:
            return None
        segment = address - heap.low >> heap.shift
        for _ in range(_MOST_HOPS):
            back = self._memory.number(heap.segments + segment, 1)
            if not back:
                break
            segment -= back
            if back == _FREE or segment < 0:
                return None
        else:
            return None
        block = heap.low + (segment << heap.shift)
        is_used = self._memory.number(block + self._layout.block_used, 1)
        return block + self._layout.block_size if is_used else None

    def _read(self, at: int) -> Blob | None:
        try:
            raw = self._memory.bytes(at, self._header)
        except UnreadableError:
            return None
        name = self._name(_u64(raw, self._layout.blob_name))
        kind = _kind(name)
        begin, end, complete = self._code(at, raw)
        words = _i32(raw, self._layout.blob_frame_size)
        frame_size = max(words, 0) * _WORD
        if not at < begin <= end < at + _LARGEST_BLOB or frame_size > _MOST_FRAME:
            return None
        blob = Blob(at, kind, name, begin, end, complete, frame_size, 0, 0, 0, 0, (), raw)
        return self._method(blob, raw) if kind.is_method else blob

    def _code(self, at: int, raw: bytes) -> tuple[int, int, int]:
        layout = self._layout
        if not layout.has_offsets:
            begin, end = _u64(raw, layout.blob_begin), _u64(raw, layout.blob_end)
            return begin, end, begin + _i32(raw, layout.blob_complete)
        begin, end = at + _i32(raw, layout.blob_begin), at + _i32(raw, layout.blob_end)
        return begin, end, begin + _i16(raw, layout.blob_complete)

    def _method(self, blob: Blob, raw: bytes) -> Blob:
        layout = self._layout
        deopts = [at for at in (layout.nmethod_deopt, layout.nmethod_deopt_mh) if at != ABSENT]
        if layout.has_offsets:
            entry = blob.begin + _u16(raw, layout.nmethod_entry)
            handlers = [blob.at + _i32(raw, at) for at in deopts]
        else:
            entry = _u64(raw, layout.nmethod_entry)
            handlers = [_u64(raw, at) for at in deopts]
        return blob._replace(
            compile_id=_i32(raw, layout.nmethod_id) & 0xFFFFFFFF,
            method=_u64(raw, layout.nmethod_method),
            entry=entry,
            orig_pc=_i32(raw, layout.nmethod_orig_pc),
            deopt_handlers=tuple(at for at in handlers if blob.begin <= at < blob.end),
        )

    def _name(self, at: int) -> str:
        """A blob's name, a constant of libjvm.so in most cases."""
        if at not in self._names:
            try:
                raw = self._memory.bytes(at, _LONGEST_NAME)
            except UnreadableError:
                return ""
            self._names[at] = raw.partition(b"\0")[0].decode("ascii", "replace")
        return self._names[at]


def _kind(name: str) -> BlobKind:
    if name in _KINDS:
        return _KINDS[name]
    if name.startswith(_FRAMELESS):
        return BlobKind.FRAMELESS
    return BlobKind.CONTINUATION if _CONTINUATION in name.lower() else BlobKind.STUB


def _header_size(jvm: Jvm) -> int:
    """Return the bytes of a blob that have all its fields."""
    fields = jvm.layout._asdict().items()
    offsets = [int(at) for name, at in fields if name.startswith(("blob_", "nmethod_"))]
    return max(offsets) + _TAIL


def _u64(raw: bytes, at: int) -> int:
    return int.from_bytes(raw[at : at + 8], "little")


def _u16(raw: bytes, at: int) -> int:
    return int.from_bytes(raw[at : at + 2], "little")


def _i16(raw: bytes, at: int) -> int:
    return int.from_bytes(raw[at : at + 2], "little", signed=True)


def _i32(raw: bytes, at: int) -> int:
    return int.from_bytes(raw[at : at + 4], "little", signed=True)
