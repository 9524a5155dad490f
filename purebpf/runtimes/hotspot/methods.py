"""The names, files and lines of Java methods.

A Method leads to its ConstMethod, that to the ConstantPool of its class. Names are Symbols there.
Behind the bytecodes lies the table of lines, as packed pairs (src/hotspot/share/oops/method.hpp,
code/compressedStream.hpp).
"""

from __future__ import annotations

import re
from bisect import bisect_right

from purebpf.runtimes.hotspot.layout import ABSENT, Layout
from purebpf.runtimes.hotspot.unsigned5 import read_unsigned5, signed
from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.tuples import NamedTuple

__all__ = ["JavaMethod", "Methods", "method_identity", "symbol_mask"]

_WORD = 8
_LONGEST_SYMBOL = 1024
_MOST_LINES = 1 << 16
_PIECE = 256
_PAGE = 4096
_PAIR = 12
"""The bytes of the longest entry, and more."""
_WHOLE_PAIR = 0xFF
_HIDDEN = re.compile(r"[+/]0x[0-9a-f]+$")
_LAMBDA = re.compile(r"(\$\$Lambda)\$\d+")


_IDENTITY_FIRST = 0x9E3779B97F4A7C15
_IDENTITY_SECOND = 0xC2B2AE3D27D4EB4F
_IDENTITY_NAME = 0x165667B19E3779F9
_IDENTITY_LINES = 0x27D4EB2F165667C5
_WORD_MASK = (1 << 64) - 1


class JavaMethod(NamedTuple):
    """A method.

    Attributes:
        class_name: "com.acme.Api"; hidden classes are without their number and address, which
            differ from run to run.
        name: "handle".
        signature: "(Ljava/lang/String;)V".
        file: "Api.java"; "" if the class does not say.
        code: the address of its bytecodes.
        code_size: their bytes; 0 for a native method.
        lines: the first bytecode and the line of each entry, in order of bytecodes.
    """

    class_name: str
    name: str
    signature: str
    file: str
    code: int
    code_size: int
    lines: tuple[tuple[int, int], ...]

    def line(self, bytecode: int) -> int:
        """The line of a bytecode, of the last entry at or before it; 0 if there is none."""
        at = bisect_right(self.lines, (bytecode, 1 << 32)) - 1
        return self.lines[at][1] if at >= 0 else 0


class Methods:
    """Reads methods, each once.

    Args:
        memory: the process's.
        layout: of its JVM.
    """

    def __init__(self, memory: Memory, layout: Layout) -> None:
        self._memory = memory
        self._layout = layout
        self._known: dict[int, JavaMethod | None] = {}
        self._symbols: dict[int, str] = {}

    def find(self, at: int) -> JavaMethod | None:
        """The method at an address; None: there is none that can be read."""
        if at not in self._known:
            try:
                self._known[at] = self._read(at)
            except UnreadableError:
                self._known[at] = None
        return self._known[at]

    def bytecode_index(self, method: int, bytecode: int) -> int | None:
        """The index of a bytecode in a method; None: its address is not in the method's code.

        A native method has no bytecodes, and its frames have the address 0.
        """
        number, layout = self._memory.number, self._layout
        try:
            constant = number(method + layout.method_constant)
            size = number(constant + layout.constant_code_size, 2)
        except UnreadableError:
            return None
        start = constant + layout.constant_size
        if not size:
            return 0 if bytecode in (0, start) else None
        return bytecode - start if start <= bytecode < start + size else None

    def _read(self, at: int) -> JavaMethod:
        number, layout = self._memory.number, self._layout
        constant = number(at + layout.method_constant)
        pool = number(constant + layout.constant_pool)
        holder = number(pool + layout.pool_class)
        code = constant + layout.constant_size
        size = number(constant + layout.constant_code_size, 2)
        name = self._entry(pool, number(constant + layout.constant_name, 2))
        class_name = self._symbol(number(holder + layout.class_name))
        if not name.isprintable() or not class_name.isprintable() or not name or not class_name:
            raise UnreadableError  # the memory of a class that was unloaded
        has_lines = number(constant + layout.constant_flags, 2) & layout.line_flag
        return JavaMethod(
            _readable(class_name),
            name,
            self._entry(pool, number(constant + layout.constant_signature, 2)),
            self._entry(pool, self._file_index(pool, holder)),
            code,
            size,
            self._lines(code + size) if has_lines else (),
        )

    def _file_index(self, pool: int, holder: int) -> int:
        layout = self._layout
        if layout.pool_file != ABSENT:
            return self._memory.number(pool + layout.pool_file, 2)
        return self._memory.number(holder + layout.class_file, 2)

    def _entry(self, pool: int, index: int) -> str:
        """A string of a constant pool; "" for the index 0."""
        if not index:
            return ""
        return self._symbol(self._memory.number(pool + self._layout.pool_size + _WORD * index) & ~1)

    def _symbol(self, at: int) -> str:
        if at not in self._symbols:
            length = self._memory.number(at + self._layout.symbol_length, 2)
            body = at + self._layout.symbol_body
            raw = self._memory.bytes(body, min(length, _LONGEST_SYMBOL))
            self._symbols[at] = raw.decode("utf-8", "replace")
        return self._symbols[at]

    def _lines(self, at: int) -> tuple[tuple[int, int], ...]:
        """Decode a table of lines; its end is a byte 0. () if it is not all there."""
        data, where = b"", 0
        bytecode = line = 0
        found: list[tuple[int, int]] = []
        while len(found) < _MOST_LINES:
            while len(data) < where + _PAIR and (piece := self._piece(at + len(data))):
                data += piece  # of which one ends at a page, and may be short
            if where >= len(data):
                return ()
            if not data[where]:
                break
            first, where = data[where], where + 1
            if first == _WHOLE_PAIR:
                try:
                    change, where = read_unsigned5(data, where, self._layout.least_byte)
                    lines, where = read_unsigned5(data, where, self._layout.least_byte)
                except ValueError:
                    return ()
                bytecode, line = bytecode + signed(change), line + signed(lines)
            else:
                bytecode, line = bytecode + (first >> 3), line + (first & 7)
            found.append((bytecode, line))
        return tuple(sorted(found))

    def _piece(self, at: int) -> bytes:
        """The bytes at an address, at most to the end of its page; b"" where there are none."""
        try:
            return self._memory.bytes(at, min(_PIECE, _PAGE - (at & _PAGE - 1)))
        except UnreadableError:
            return b""


def method_identity(memory: Memory, layout: Layout, method: int) -> int:
    """Return what BPF calls method_identity (bpf_src/include/java_steps.h); 0: it cannot be read.

    Two methods that have the same memory one after the other differ in it, if their names, those of
    their classes, or their first lines do.
    """
    number = memory.number
    try:
        constant = number(method + layout.method_constant)
        pool = number(constant + layout.constant_pool)
        index = number(constant + layout.constant_name, 2)
        name = number(pool + layout.pool_size + _WORD * index) & ~1
        class_name = number(number(pool + layout.pool_class) + layout.class_name)
        first = number(class_name) & symbol_mask(layout)
        second = number(class_name + _WORD)
        lines = constant + layout.constant_size + number(constant + layout.constant_code_size, 2)
        mixed_lines = number(lines) ^ number(lines + _WORD) * _IDENTITY_FIRST & _WORD_MASK
    except UnreadableError:
        return 0
    mixed = class_name ^ first * _IDENTITY_FIRST ^ second * _IDENTITY_SECOND
    return (mixed ^ name * _IDENTITY_NAME ^ mixed_lines * _IDENTITY_LINES) & _WORD_MASK


def symbol_mask(layout: Layout) -> int:
    """Return the bits of a Symbol's first word that do not count its uses.

    JDK 11 to 12: length, uses, hash, text. From 13 on: uses, hash, length, text.
    """
    uses = 2 if layout.symbol_length == 0 else 0
    return _WORD_MASK & ~(0xFFFF << 8 * uses)


def _readable(name: str) -> str:
    """A class's name as Java has it, without the number and the address of a hidden class."""
    return _LAMBDA.sub(r"\1", _HIDDEN.sub("", name)).replace("/", ".")
