"""The memory of a process with Ruby, built by hand."""

from __future__ import annotations

import bisect

from purebpf.runtimes.ruby.layout import RubyLayout

__all__ = ["CONTEXT", "SYMBOLS", "FakeRuby"]

CONTEXT, THREAD, SYMBOLS, STACK = 0x1000, 0x1200, 0x1400, 0x8000
STACK_WORDS = 2048
END = 0x20000
CFUNC = 0x55550001
FINISH = 0x20


class FakeRuby:
    """A thread whose frames are put one inside of the other."""

    def __init__(self, layout: RubyLayout) -> None:
        self.layout = layout
        self.raw = bytearray(END)
        self._free = 0x2000
        self.top = STACK + 8 * STACK_WORDS - layout.frame_size
        self.put(CONTEXT + layout.context_thread, THREAD)
        self.put(THREAD + layout.thread_context, CONTEXT)
        self.put(CONTEXT + layout.context_stack, STACK)
        self.put(CONTEXT + layout.context_stack_size, STACK_WORDS)
        self.put(CONTEXT + layout.context_frame, self.top)
        self._names = self.array([self.array([0] * 1024)])
        self.put(SYMBOLS, 500, 4)
        self.put(SYMBOLS + 16, self._names)

    def read(self, at: int, size: int) -> bytes:
        """The process's memory."""
        return bytes(self.raw[at : at + size]) if at >= 0x1000 else b""

    def put(self, at: int, value: int, size: int = 8) -> None:
        """Write a number."""
        self.raw[at : at + size] = value.to_bytes(size, "little")

    def room(self, size: int) -> int:
        """Memory for an object."""
        at = self._free
        self._free += -(-size // 16) * 16
        return at

    def string(self, text: bytes, *, embedded: bool = False) -> int:
        """A string, in the object or elsewhere."""
        at = self.room(40 + len(text))
        place = self.room(len(text) + 1)
        flags, first = 5 | 1 << 13, len(text)
        if embedded:
            flags, place = 5, at + 24
            if not self.layout.embeds_length:
                flags |= len(text) << 14
                place = at + 16
        self.put(at, flags)
        self.put(at + 16, first)
        if not embedded:
            self.put(at + 24, place)
        self.raw[place : place + len(text)] = text
        return at

    def array(self, elements: list[int]) -> int:
        """An array, whose elements are in it if they are few."""
        at = self.room(64)
        if len(elements) <= 3:
            self.put(at, 7 | 1 << 13 | len(elements) << 15)
            place = at + 16
        else:
            self.put(at, 7)
            self.put(at + 16, len(elements))
            place = self.room(8 * len(elements))
            self.put(at + 32, place)
        for number, element in enumerate(elements):
            self.put(place + 8 * number, element)
        return at

    def code(
        self, label: bytes, lines: dict[int, int], size: int = 40, *, real: bool = True
    ) -> int:
        """Code whose instructions from a position on have a line."""
        layout = self.layout
        at, body = self.room(40), self.room(160)
        self.put(at, 0x1A | 7 << 12)
        self.put(at + layout.iseq_body, body)
        self.put(body + layout.body_size, size, 4)
        self.put(body + layout.body_code, self.room(8 * size))
        path = self.string(b"/srv/a.rb", embedded=True)
        self.put(body + layout.body_path, self.array([path, path]) if real else path)
        self.put(body + layout.body_label, self.string(label))
        self.put(body + layout.body_lines_size, len(lines), 4)
        entries = self.room(layout.line_size * len(lines))
        self.put(body + layout.body_lines, entries)
        for number, line in enumerate(lines.values()):
            self.put(entries + number * layout.line_size, line, 4)
        self.put(body + layout.body_line_index, self._index(list(lines), size))
        return at

    def _index(self, positions: list[int], size: int) -> int:
        """The index of lines, as iseq.c of Ruby says it."""
        blocks = max(0, size - 54 + 511) // 512
        at = self.room(48 + 80 * blocks)
        for group in range(6):
            ranks = [bisect.bisect_right(positions, group * 9 + i) for i in range(9)]
            self.put(at + 8 * group, sum(rank << 7 * i for i, rank in enumerate(ranks)))
        for block in range(blocks):
            first, place = 54 + block * 512, at + 48 + 80 * block
            rank = bisect.bisect_left(positions, first)
            self.put(place, rank, 4)
            small = [bisect.bisect_left(positions, first + 64 * i) - rank for i in range(1, 8)]
            self.put(place + 8, sum(count << 9 * i for i, count in enumerate(small)))
            for word in range(8):
                inside = [one - first - 64 * word for one in positions]
                self.put(place + 16 + 8 * word, sum(1 << one for one in inside if 0 <= one < 64))
        return at

    def method(self, name: bytes, number: int, *, shared: bool = False) -> int:
        """The entry of a method written in C."""
        layout = self.layout
        serial = number >> 4 if number > layout.last_operator else number
        names = int.from_bytes(self.read(self._names + 16, 8), "little")
        place = int.from_bytes(self.read(names + 32, 8), "little")
        self.put(place + 16 * serial, self.string(name, embedded=True))
        at, definition = self.room(48), self.room(64)
        self.put(at, 0x1A | 6 << 12)
        self.put(at + layout.entry_definition, definition)
        self.put(definition + layout.definition_id, number)
        if not shared:
            return at
        outer = self.room(40)
        self.put(outer, 0x1A | 2 << 12)
        self.put(outer + 8, at)
        return outer

    def frame(self, code: int, words: int = 1, *, entry: bool = False, method: int = 0) -> int:
        """Put a frame inside of the last one; `words`: of instructions before the next one."""
        layout = self.layout
        self.top -= layout.frame_size
        env = self.room(24) + 16
        self.put(env - 16, method)
        self.put(env, FINISH if entry else 0)
        pc = 0
        if code and words:
            body = int.from_bytes(self.read(code + layout.iseq_body, 8), "little")
            pc = int.from_bytes(self.read(body + layout.body_code, 8), "little") + 8 * words
        self.put(self.top + layout.frame_pc, pc)
        self.put(self.top + layout.frame_iseq, code)
        self.put(self.top + layout.frame_env, env)
        self.put(CONTEXT + layout.context_frame, self.top)
        return self.top
