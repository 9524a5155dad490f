"""Memory with frames of PHP, made by hand."""

from __future__ import annotations

import struct

from purebpf.runtimes.php.layout import PhpLayout

__all__ = ["EXECUTOR", "FakePhp"]

EXECUTOR = 0x1000
_STRING, _OBJECT, _TOP = 6, 8, 1 << 17


class FakePhp:
    """Words at addresses, and a reader of them."""

    def __init__(self, layout: PhpLayout) -> None:
        self._layout = layout
        self._bytes = bytearray(1 << 20)
        self._end = 0x4000
        self.current(0)

    def read(self, address: int, size: int) -> bytes:
        """Read as /proc/PID/mem does."""
        return bytes(self._bytes[address : address + size]) if address >= EXECUTOR else b""

    def put(self, address: int, value: int, size: int = 8) -> None:
        """Put a number there."""
        self._bytes[address : address + size] = value.to_bytes(size, "little")

    def room(self, size: int) -> int:
        """Take memory that nothing has."""
        at, self._end = self._end, self._end + (size + 15 & -16)
        return at

    def current(self, frame: int) -> None:
        """Let a frame be the innermost one."""
        self.put(EXECUTOR + self._layout.current, frame)

    def string(self, text: bytes) -> int:
        """Make a string."""
        at = self.room(32 + len(text))
        self._bytes[at : at + 24] = struct.pack("<IIQQ", 1, _STRING | 0x40, 7, len(text))
        self._bytes[at + 24 : at + 24 + len(text)] = text
        return at

    def function(
        self, name: bytes, of: bytes = b"", lines: tuple[int, ...] = (), kind: int = 2
    ) -> int:
        """Make a function of /srv/a.php, with an instruction for each line."""
        layout, at = self._layout, self.room(256)
        self.put(at, kind, 1)
        self.put(at + layout.function_name, self.string(name) if name else 0)
        if of:
            scope = self.room(64)
            self.put(scope + layout.class_name, self.string(of))
            self.put(at + layout.function_scope, scope)
        if kind != 1:
            opcodes = self.room(layout.opline_size * len(lines))
            for number, line in enumerate(lines):
                self.put(opcodes + number * layout.opline_size + layout.opline_line, line, 4)
            self.put(at + layout.function_file, self.string(b"/srv/a.php"))
            self.put(at + layout.function_opcodes, opcodes)
            self.put(at + layout.function_last, len(lines), 4)
        return at

    def opline(self, function: int, number: int) -> int:
        """The address of an instruction of a function."""
        opcodes = self._bytes[function + self._layout.function_opcodes :][:8]
        return int.from_bytes(opcodes, "little") + number * self._layout.opline_size

    def frame(
        self, function: int, previous: int, number: int = 0, top: bool = False, this: int = 0
    ) -> int:
        """Make a frame that executes an instruction."""
        layout, at = self._layout, self.room(96)
        self.put(at + layout.frame_function, function)
        self.put(at + layout.frame_previous, previous)
        self.put(at + layout.frame_opline, self.opline(function, number) if function else 0)
        self.put(at + layout.frame_info, (_TOP if top else 0) | (_OBJECT if this else 0), 4)
        self.put(at + layout.frame_object, this)
        return at
