"""`CodeNames`: the names of code objects, by the numbers that Python frames have in stacks."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from sys import intern

from purebpf.errors import FormatError
from purebpf.observe.runtimes.cpython.deferred_codes import Deferred
from purebpf.observe.runtimes.cpython.interpreter_table import Interpreter
from purebpf.observe.runtimes.script_process import ScriptProcess
from purebpf.runtimes.cpython.code_objects import TRAMPOLINES, Code, decode_string, read_string
from purebpf.runtimes.cpython.layout import Layout
from purebpf.runtimes.cpython.line_hash import hash_table
from purebpf.runtimes.cpython.lines import LineTable
from purebpf.runtimes.interpreted import InterpretedFrame
from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.symbols.python_words import CODE_SHIFT, ENTRY, TAG
from purebpf.tuples import NamedTuple

__all__ = ["CodeNames"]

_CODE = struct.Struct("<6Q9I4x")
_CODE_MASK, _INSTRUCTION_MASK = (1 << 28) - 1, (1 << 24) - 1
_MOST_BYTES = 256
"""Of a name, and of a path."""

_MOST_TABLE, _MOST_TABLES = 1 << 19, 1 << 25
"""Bytes of tables of lines: of one code object, and of all."""
_SENT_TABLE = 1024
"""Bytes of a table that comes with the names; TABLE_BYTES of python_layout.h."""

_KEEP_FRAMES = 1 << 12
_CROWDED = 1 << 14
"""Names: some 4 MB."""
_NO_LINES = LineTable((3, 0), b"", 0)
"""Of code that is asked for no other line than its first."""
_OWN = 1  # numbers of code objects that are given out here are odd
_NOT_STARTED = 1 << 23  # of the instruction: its line is the code's first one


class _Code(NamedTuple):
    """A code object that BPF met; `name` is "" where it could not be read.

    `is_trampoline` is as in `code_objects.Code`.
    """

    name: str
    file: str
    first_line: int
    lines: LineTable
    version: tuple[int, int]
    is_trampoline: bool


class CodeNames:
    """Takes in the names that BPF sends, and gives frames for the words of stacks.

    Args:
        lines: whether lines are wanted.

    Attributes:
        unread: frames without a name, as BPF and `take` lacked their code objects.
    """

    def __init__(self, *, lines: bool) -> None:
        self.lines = lines
        self._codes: dict[int, _Code] = {}
        self._numbers: dict[tuple[str, str, int], int] = {}
        self._tables_left = _MOST_TABLES
        self._waiting: dict[int, dict[int, tuple[Deferred, int]]] = {}
        self._taken: dict[int, int] = {}
        self._refused: set[int] = set()
        self._frames: dict[int, InterpretedFrame] = {}  # by word; of names that are known
        self.unread = 0

    @property
    def is_crowded(self) -> bool:
        """True if names take so much memory that `forget` is due."""
        return len(self._codes) > _CROWDED

    def forget(self) -> None:
        """Forget all names: the programs give out the numbers of code objects again.

        `python_codes` and `python_functions` are empty, `python_number` is 0, and no stack with an
        old number comes.
        """
        self._codes.clear()
        self._numbers.clear()
        self._waiting.clear()
        self._taken.clear()
        self._refused.clear()
        self._frames.clear()
        self._tables_left = _MOST_TABLES

    def add(self, raw: bytes, interpreters: Mapping[int, Interpreter]) -> None:
        """Take in a record of the ring `python_names`.

        Args:
            raw: its bytes.
            interpreters: `InterpreterTable.by_generation`: the processes to read the missing names
                from.

        Raises:
            FormatError: it is too short.
        """
        if len(raw) < _CODE.size:
            raise FormatError("python_names", f"{len(raw)} bytes", f"a record has {_CODE.size}")
        generation, name, path, table, table_hash, code, *rest = _CODE.unpack_from(raw)
        number, first, name_state, name_length, path_state, path_length, table_size, *span = rest
        if code:
            waiting = self._waiting.setdefault(generation, {})
            _, frames = waiting.get(number, (None, 0))
            waiting[number] = Deferred(code, *span), frames + 1
            return
        interpreter = interpreters.get(generation)
        if interpreter is None:
            return
        process = interpreter.process
        texts = raw[_CODE.size :]
        if isinstance(process, ScriptProcess):
            lengths = (name_length, path_length, table_size)
            name_text, file_text = process.describe(texts, lengths, (name, path, table))
            self._codes[number] = _Code(
                intern(name_text),
                intern(file_text),
                first,
                process.lines,
                interpreter.version,
                is_trampoline=not name_text,
            )
            return
        memory, layout = Memory(process.read), process.layout
        name_size = min(name_length * (name_state >> 2 & 7), _MOST_BYTES)
        path_size = min(path_length * (path_state >> 2 & 7), _MOST_BYTES)
        names, paths = texts[:name_size], texts[name_size : name_size + path_size]
        lines = _NO_LINES
        if self.lines:
            sent = texts[name_size + path_size :] if table_size <= _SENT_TABLE else None
            content = self._take_table(sent, memory, table + layout.bytes_data, table_size)
            if table_hash == hash_table(content):
                lines = LineTable(interpreter.version, content, first)
        self._codes[number] = _Code(  # each process has its own: thousands share names and files
            intern(_text(memory, layout, name, (names, name_state, name_length))),
            intern(_text(memory, layout, path, (paths, path_state, path_length))),
            first,
            lines,
            interpreter.version,
            interpreter.version >= TRAMPOLINES and name == path,
        )

    def take_deferred(self) -> dict[int, dict[int, tuple[Deferred, int]]]:
        """The code objects to read, for `take`, by the generation of their process and by number.

        Each with the frames that have it.
        """
        waiting, self._waiting = self._waiting, {}
        return waiting

    def take(self, number: int, code: Code | None, version: tuple[int, int], frames: int) -> None:
        """Name so many more frames by a code object that was read after them.

        Frames with this number had no name before, or the same: where that is not proven of all of
        them, none has one.

        Args:
            number: its number in stacks.
            code: None: it is not there any more.
            version: of its interpreter.
            frames: how many.
        """
        entry = None
        if code is not None and number not in self._refused:
            lines = code.lines if self.lines else _NO_LINES
            name, file = intern(code.name), intern(code.file)
            entry = _Code(name, file, code.first_line, lines, version, code.is_trampoline)
            before = self._codes.setdefault(number, entry)
            self._taken[number] = self._taken.get(number, 0) + frames
            if (before.name, before.file, before.first_line) == entry[:3]:
                return
            frames = 0
        self._codes.pop(number, None)
        self._frames.clear()
        self._refused.add(number)
        self.unread += frames + self._taken.pop(number, 0)

    def _take_table(self, sent: bytes | None, memory: Memory, address: int, size: int) -> bytes:
        """A table of lines; b"" for one that is too long, or not there any more.

        A table that was not `sent` is read now. It may be another one: the code object may be gone.
        """
        if size > min(_MOST_TABLE, self._tables_left):
            return b""
        self._tables_left -= size
        if sent is not None:
            return sent
        try:
            return memory.bytes(address, size)
        except UnreadableError:
            return b""

    def word(self, frame: InterpretedFrame, version: tuple[int, int]) -> int:
        """A word for a frame that was read from outside, with the line that it has now."""
        key = frame.name, frame.file, frame.line
        number = self._numbers.setdefault(key, len(self._numbers) << 1 | _OWN)
        if number not in self._codes:
            self._codes[number] = _Code(*key, _NO_LINES, version, is_trampoline=False)
        word = TAG | number << CODE_SHIFT | _NOT_STARTED
        return word | ENTRY if frame.is_entry else word

    def frame(self, word: int) -> InterpretedFrame:
        """The frame of a word; without a name if that did not come, or could not be read."""
        interpreter = self._frames.get(word)
        if interpreter is not None:
            return interpreter
        code = self._codes.get(word >> CODE_SHIFT & _CODE_MASK)
        is_entry = bool(word & ENTRY)
        if code is None:
            return InterpretedFrame("", "", 0, word, is_entry)
        line = _line(code, word & _INSTRUCTION_MASK) if self.lines else 0
        if len(self._frames) >= _KEEP_FRAMES:
            self._frames.clear()
        frame = self._frames[word] = InterpretedFrame(code.name, code.file, line, word, is_entry)
        return frame

    def is_real(self, word: int) -> bool:
        """Return True if a frame belongs to the program, and is no trampoline."""
        code = self._codes.get(word >> CODE_SHIFT & _CODE_MASK)
        return code is None or not code.is_trampoline


def _text(memory: Memory, layout: Layout, address: int, read: tuple[bytes, int, int]) -> str:
    """A string that BPF read; one that it could not read whole, from the process."""
    text = decode_string(*read)
    if text is not None:
        return text
    try:
        text = read_string(memory, layout, address, 1024)
    except UnreadableError:
        text = ""
    raw, state, _ = read
    start = decode_string(raw, state, len(raw) // (state >> 2 & 7 or 1)) or ""
    return text if text.startswith(start) else f"{start}..."  # another string is there now


def _line(code: _Code, instruction: int) -> int:
    if instruction & _NOT_STARTED:  # below 0: called, and nothing executed yet
        return code.first_line
    scale = 2 if code.version == (3, 10) else 1
    return code.lines.at(instruction * scale)
