"""The Python frames of a thread, innermost first."""

from __future__ import annotations

from purebpf.runtimes.cpython.code_objects import CodeObjects
from purebpf.runtimes.cpython.layout import NONE, Layout
from purebpf.runtimes.interpreted import MAX_FRAMES, InterpretedFrame, InterpretedStack
from purebpf.runtimes.memory import Memory, UnreadableError

__all__ = ["FrameReader", "read_frames"]

_SHIM = 3
"""FRAME_OWNED_BY_CSTACK of 3.12 and 3.13, FRAME_OWNED_BY_INTERPRETER from 3.14 on: a frame without
code below the first of a call."""
_TAG = 7
"""Bits of a _PyStackRef (3.14) that are not of the address: objects are aligned to 16 bytes."""
_LONGEST_CYCLE = 1 << 14


def read_frames(
    version: tuple[int, int],
    layout: Layout,
    memory: Memory,
    codes: CodeObjects,
    thread: int,
    *,
    most: int = MAX_FRAMES,
) -> InterpretedStack:
    """The frames of the thread state at an address.

    Whatever the memory holds, this ends: after `most` frames, or where a frame is its own caller.
    """
    reader = FrameReader(version, layout, memory, codes)
    try:
        at = reader.first(thread)
    except UnreadableError:
        return InterpretedStack((), "the thread state cannot be read")
    seen: set[int] = set()
    while at and len(reader.frames) < most:
        if at in seen or len(seen) > _LONGEST_CYCLE + most:
            return InterpretedStack(tuple(reader.frames), "the frames are a cycle")
        seen.add(at)
        try:
            at = reader.add(at)
        except UnreadableError:
            return InterpretedStack(tuple(reader.frames), "a frame cannot be read")
    return InterpretedStack(tuple(reader.frames), f"more than {most} frames" if at else "")


class FrameReader:
    """Reads frames one by one into `frames`.

    Args:
        version, layout: of the interpreter.
        memory: the process's.
        codes: its code objects.
    """

    def __init__(
        self, version: tuple[int, int], layout: Layout, memory: Memory, codes: CodeObjects
    ) -> None:
        self.frames: list[InterpretedFrame] = []
        self._version = version
        self._layout = layout
        self._memory = memory
        self._codes = codes

    def first(self, thread: int) -> int:
        """The innermost frame of a thread; 0: it runs no Python."""
        frame = self._memory.number(thread + self._layout.frame)
        if self._layout.current != NONE and frame:
            frame = self._memory.number(frame + self._layout.current)
        return frame

    def read(self, at: int) -> InterpretedFrame:
        """The frame at an address, of a coroutine: without its callers."""
        self.frames.clear()
        self.add(at)
        if not self.frames:
            raise UnreadableError
        return self.frames.pop()

    def add(self, at: int) -> int:
        """Keep a frame; the address of its caller."""
        layout = self._layout
        raw = self._memory.bytes(at, layout.frame_size)
        previous = _word(raw, layout.frame_previous)
        if self._is_shim(raw):
            if self.frames:
                self.frames[-1] = self.frames[-1]._replace(is_entry=True)
            return previous
        address = _word(raw, layout.frame_code) & ~_TAG
        code = self._codes.read(address)
        if code.is_trampoline:
            return previous
        size = 8 if self._version >= (3, 11) else 4
        instruction = int.from_bytes(raw[layout.frame_instruction :][:size], "little")
        line = self._codes.line(code, instruction, self._start(raw, address))
        is_entry = self._is_entry(raw) or not previous
        self.frames.append(InterpretedFrame(code.name, code.file, line, address, is_entry))
        return previous

    def _start(self, raw: bytes, code: int) -> int:
        """The first instruction that the frame's thread has of a code object; 0: all have one."""
        layout = self._layout
        if layout.code_tlbc == NONE or not self._codes.has_lines:
            return 0
        index = int.from_bytes(raw[layout.frame_tlbc :][:4], "little")
        table = self._memory.number(code + layout.code_tlbc)
        return self._memory.number(table + 8 + 8 * index)  # behind its size

    def _is_shim(self, raw: bytes) -> bool:
        return self._version >= (3, 12) and raw[self._layout.frame_owner] >= _SHIM

    def _is_entry(self, raw: bytes) -> bool:
        if self._version >= (3, 12):
            return False
        return self._version < (3, 11) or raw[self._layout.frame_owner] == 1


def _word(raw: bytes, at: int) -> int:
    return int.from_bytes(raw[at : at + 8], "little")
