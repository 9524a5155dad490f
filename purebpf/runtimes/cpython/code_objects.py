"""Names, files and line tables of code objects, read from a process and checked."""

from __future__ import annotations

from functools import lru_cache

from purebpf.runtimes.cpython.layout import NONE, Layout
from purebpf.runtimes.cpython.lines import LineTable
from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.tuples import NamedTuple

__all__ = ["TRAMPOLINES", "Code", "CodeObjects", "decode_string", "read_string"]

_MOST_NAME = 1024
_MOST_PATH = 4096
_MOST_TABLE = 1 << 19
_MOST_TABLES = 1 << 25
"""Bytes of tables of lines: of one code object, and of all of a process."""
_KIND_BITS, _COMPACT, _ASCII = 2, 1 << 5, 1 << 6
"""Of PyASCIIObject.state: the kind is bits 2 to 4."""
TRAMPOLINES = (3, 12)
"""The version that has the first."""
_CODECS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}


class Code(NamedTuple):
    """A code object.

    Attributes:
        name: qualified (`Handler.get`) from 3.11 on.
        file, first_line: where its definition begins.
        lines: of its instructions.
        start: the address of its first instruction; 0 before 3.11.
        is_trampoline: nothing that a program wrote: `_Py_InitCleanup` (3.12), which the loop puts
            below an `__init__` that it calls itself. It has one string as name and as file.
    """

    name: str
    file: str
    first_line: int
    lines: LineTable
    start: int
    is_trampoline: bool = False


class CodeObjects:
    """The code objects of one process, as they are now.

    Args:
        version: of the interpreter.
        layout: the same's.
        memory: the process's.
        lines: False: no frame has a line, which takes most of the time.
    """

    def __init__(
        self, version: tuple[int, int], layout: Layout, memory: Memory, *, lines: bool = True
    ) -> None:
        self._version = version
        self._layout = layout
        self._memory = memory
        self._known: dict[int, Code] = {}
        self._types: dict[int, bool] = {}
        self.has_lines = lines
        self._tables_left = _MOST_TABLES

    def read(self, address: int) -> Code:
        """The code object at an address.

        Raises:
            UnreadableError: there is none.
        """
        known = self._known.get(address)
        if known is None:
            known = self._known[address] = self._read(address)
        return known

    def line(self, code: Code, instruction: int, start: int = 0) -> int:
        """Return the line of a frame, by the instruction it executes; 0: none.

        Args:
            code: the code object of the frame.
            instruction: of the frame.
            start: the first instruction, where that is not `code.start`.
        """
        if not self.has_lines:
            return 0
        if self._version >= (3, 11):
            offset = instruction - (start or code.start)
        else:
            signed = instruction - (1 << 32) if instruction >> 31 & 1 else instruction
            offset = signed * (2 if self._version >= (3, 10) else 1)
        return code.lines.at(offset)

    def _read(self, address: int) -> Code:
        layout, memory = self._layout, self._memory
        raw = memory.bytes(address, layout.code_size)
        if not self._is_code(_word(raw, layout.bytes_length - 8)):
            raise UnreadableError
        name = NONE
        if layout.code_qualname != NONE:
            name = _word(raw, layout.code_qualname)
        if name in (NONE, 0):
            name = _word(raw, layout.code_name)
        file, lines = _word(raw, layout.code_filename), _word(raw, layout.code_lines)
        first_line = int.from_bytes(raw[layout.code_first_line :][:4], "little", signed=True)
        return Code(
            read_string(memory, layout, name, _MOST_NAME),
            read_string(memory, layout, file, _MOST_PATH),
            first_line,
            _line_table(self._version, self._table(lines) if self.has_lines else b"", first_line),
            0 if layout.code_bytes == NONE else address + layout.code_bytes,
            self._version >= TRAMPOLINES and name == file,
        )

    def _is_code(self, kind: int) -> bool:
        """Return True if a type is the type of code objects."""
        if kind not in self._types:
            name = self._memory.number(kind + self._layout.type_name)
            self._types[kind] = self._memory.bytes(name, 5) == b"code\0"
        return self._types[kind]

    def _table(self, address: int) -> bytes:
        """A table of lines; b"" for one that is too long."""
        length = self._memory.number(address + self._layout.bytes_length)
        if length > min(_MOST_TABLE, self._tables_left):
            return b""
        self._tables_left -= length
        return self._memory.bytes(address + self._layout.bytes_data, length)


def read_string(memory: Memory, layout: Layout, address: int, most: int) -> str:
    """Return a `str`; one of more than `most` characters ends in "...".

    Raises:
        UnreadableError: there is none, or one of a kind that names do not have.
    """
    header = memory.bytes(address, layout.ascii_size)
    length = int.from_bytes(header[layout.string_length :][:8], "little")
    state = int.from_bytes(header[layout.string_state :][:4], "little") >> layout.string_shift
    kind = state >> _KIND_BITS & 7
    if kind not in _CODECS or not state & _COMPACT:
        raise UnreadableError
    start = layout.ascii_size if state & _ASCII else layout.compact_size
    raw = memory.bytes(address + start, min(length, most) * kind)
    text = _decode(raw, kind)
    return text if length <= most else text + "..."


def decode_string(raw: bytes, state: int, length: int) -> str | None:
    """A `str` by its state and its first bytes; None: they are not all of it, or not of one."""
    kind = state >> _KIND_BITS & 7
    if kind not in _CODECS or not state & _COMPACT or length * kind > len(raw):
        return None
    return _decode(raw[: length * kind], kind)


def _decode(raw: bytes, kind: int) -> str:
    try:
        # surrogateescape'd file names hold lone surrogates: they pass through as they are
        return raw.decode(_CODECS[kind], "surrogatepass")
    except UnicodeDecodeError:  # no string of CPython: a frame that is being made holds anything
        return raw.decode(_CODECS[kind], "replace")


def _word(raw: bytes, at: int) -> int:
    return int.from_bytes(raw[at : at + 8], "little")


@lru_cache(1024)
def _line_table(version: tuple[int, int], table: bytes, first_line: int) -> LineTable:
    """Return the lines of a code object, decoded once although frames are read again and again."""
    return LineTable(version, table, first_line)
