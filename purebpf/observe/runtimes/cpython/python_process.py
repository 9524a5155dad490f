"""`PythonProcess`: the interpreter that runs in a process, read through /proc/PID/mem.

Needs the rights of ptrace(2) (PTRACE_MODE_ATTACH_FSCREDS in proc(5)): the same user, or
CAP_SYS_PTRACE. Nothing is stopped, so data that a running thread changes may be read half changed;
it is checked, and inconsistent data carries a reason.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from purebpf.closable import Closing
from purebpf.errors import FormatError, NotSupportedError
from purebpf.observe.runtimes.loop_parts import whole_loop
from purebpf.observe.symbols.mapped_files import mapped_status, open_mapped
from purebpf.runtimes.cpython.code_objects import CodeObjects
from purebpf.runtimes.cpython.debug_offsets import HEADER_SIZE, read_debug_offsets
from purebpf.runtimes.cpython.frames import read_frames
from purebpf.runtimes.cpython.layout import Layout
from purebpf.runtimes.cpython.layouts import LAYOUTS
from purebpf.runtimes.cpython.runtime_file import RuntimeFile, read_runtime_file
from purebpf.runtimes.cpython.threads import (
    Interpreter,
    ThreadState,
    main_interpreter,
    read_interpreters,
)
from purebpf.runtimes.interpreted import MAX_FRAMES, InterpretedStack
from purebpf.runtimes.memory import MOST_READS, CachedMemory, Memory, UnreadableError
from purebpf.symbols.code_range import CodeRange
from purebpf.symbols.elf_image import PT_LOAD, ElfImage, Segment
from purebpf.symbols.proc_maps import MappedFile, Mapping, parse_maps
from purebpf.symbols.runtimes import is_interpreter, runtime_of
from purebpf.syscall import proc
from purebpf.syscall.process_memory import STUCK, ProcessMemory, open_process_memory
from purebpf.tuples import NamedTuple
from purebpf.unwind.elf_frames import load_bias
from purebpf.unwind.machine import AARCH64

__all__ = ["FileKey", "KnownFiles", "PythonProcess", "PythonReading", "find_python"]

_MOST_FILES = 8
"""Files of a process that are asked for an interpreter."""

_WRITABLE = 2
"""PF_W of elf(5)."""

_RECENT_S = 1.0
_MOST_RECENT = 4096

_COMPARED = 4
"""Threads that must have their state in the same slot, at the same distance from its pointer."""

_OWN_STATES = (3, 12)
"""The version from which on a thread is bound to the state that runs, of any interpreter."""

FileKey = tuple[int, int, int, int]
"""Device, inode, size and time of change of a file."""


class _File(NamedTuple):
    """The facts in an interpreter's file, for all processes that map it."""

    runtime: RuntimeFile
    loop: tuple[CodeRange, ...]
    segments: Sequence[Segment]
    machine: int


class KnownFiles:
    """The facts in files about interpreters, from one process to the next.

    Attributes:
        by_key: None: it has no interpreter.
        recent: which file a mapping showed, and until when on the monotonic clock that counts:
            short processes of one program do not each ask for it.
    """

    def __init__(self) -> None:
        self.by_key: dict[FileKey, _File | None] = {}
        self.recent: dict[MappedFile, tuple[FileKey, float]] = {}

    def key(self, mapping: Mapping, pid: int) -> FileKey | None:
        """Return the identity of a process's mapped file; None: /proc cannot tell."""
        key, until_s = self.recent.get(mapping.file, (None, 0.0))
        now = time.monotonic()
        if key is not None and now < until_s:
            return key
        status = mapped_status(mapping, pid)
        if status is None or status.st_ino != mapping.file.inode:
            return None
        if len(self.recent) >= _MOST_RECENT:
            self.recent.clear()
        key = _key(status)
        self.recent[mapping.file] = key, now + _RECENT_S
        return key


class _MappedFile(NamedTuple):
    """An interpreter's file as it is mapped: addresses in the process."""

    key: FileKey

    runtime: int
    version: int
    loop: tuple[CodeRange, ...]
    data: tuple[CodeRange, ...]
    path: str
    machine: int


class PythonReading(NamedTuple):
    """A process's interpreters at one moment; `stack` reads on from the same bytes."""

    interpreters: list[Interpreter]
    memory: Memory
    codes: CodeObjects

    @property
    def compared(self) -> tuple[ThreadState, ...]:
        """The first threads of the main interpreter, for finding their common parts."""
        return self.interpreters[-1].threads[-_COMPARED:] if self.interpreters else ()


class PythonProcess(Closing):
    """The interpreter of a process, as `find_python` found it.

    Attributes:
        version: (3, 12).
        layout: where things are.
        is_free_threaded: a build without a GIL.
        runtime: the address of `_PyRuntime`.
        loop: the addresses of the evaluation loop.
        path: the interpreter's file, as the process sees it.
        file: the identity of that file.
    """

    def __init__(
        self,
        memory: ProcessMemory,
        mapped: _MappedFile,
        version: tuple[int, int],
        layout: Layout,
        *,
        free: bool,
    ) -> None:
        self._memory = memory
        self._mapped = mapped
        self.version = version
        self.layout = layout
        self.is_free_threaded = free
        self.runtime = mapped.runtime
        self.loop = mapped.loop
        self.path = mapped.path
        self.file = mapped.key
        self._distance: int | None = None

    @property
    def is_stuck(self) -> bool:
        """True if its memory cannot be read any more: see `ProcessMemory`."""
        return self._memory.is_stuck

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the process; fewer where nothing is mapped, none when it has ended."""
        return self._memory.read(address, size)

    def is_in_data(self, address: int) -> bool:
        """Return True if an address is in the data of the interpreter's file: it is never freed."""
        return any(part.start <= address < part.end for part in self._mapped.data)

    def in_child(self, pid: int) -> PythonProcess | None:
        """The same interpreter in a process that this one forked; None: it has ended.

        Raises:
            KernelError: EACCES or EPERM, the process is another user's.
        """
        memory = open_process_memory(pid)
        if memory is None:
            return None
        version, free = self.version, self.is_free_threaded
        return PythonProcess(memory, self._mapped, version, self.layout, free=free)

    def look(self, most_reads: int = MOST_READS, *, lines: bool = True) -> PythonReading:
        """Its interpreters and threads now.

        Args:
            most_reads: of this look, see `CachedMemory`.
            lines: whether frames are to have lines.
        """
        memory = CachedMemory(self._memory.read, most_reads)
        codes = CodeObjects(self.version, self.layout, memory, lines=lines)
        return PythonReading(read_interpreters(self.layout, memory, self.runtime), memory, codes)

    def main_interpreter(self) -> int:
        """The address of the interpreter that others may run beside; 0: not known."""
        if self.version < _OWN_STATES:
            return 0
        return main_interpreter(self.layout, Memory(self._memory.read), self.runtime)

    def pointer_distance(self, reading: PythonReading) -> int | None:
        """The bytes from pthread_self() up to the thread pointer; None: they do not show."""
        if self._mapped.machine != AARCH64.elf:
            return 0
        if self._distance is None:
            from purebpf.runtimes.cpython.thread_pointer import pointer_distance  # of arm64 alone

            self._distance = pointer_distance(reading.memory, reading.compared)
        return self._distance

    def frames(
        self, reading: PythonReading, thread: int, most: int = MAX_FRAMES
    ) -> InterpretedStack:
        """The frames of the thread state at an address; `most` of them."""
        memory, codes = reading.memory, reading.codes
        return read_frames(self.version, self.layout, memory, codes, thread, most=most)

    def close(self) -> None:
        """Close the memory; again is harmless."""
        self._memory.close()


def find_python(
    pid: int, files: KnownFiles | None = None, mappings: list[Mapping] | None = None
) -> PythonProcess | None:
    """The interpreter in a process; None: it has none, or the process has ended.

    Args:
        pid: the process.
        files: stores the facts in files from one call to the next.
        mappings: its executable mappings, if they were just read.

    Raises:
        KernelError: EACCES or EPERM, the process is another user's.
        NotSupportedError: its version is not one that can be read.
    """
    if mappings is None:
        mappings = list(parse_maps(proc.maps(pid) or ""))
    for mapping in _candidates(mappings):
        mapped = _look_into(mapping, pid, files or KnownFiles())
        if mapped is not None:
            break
    else:  # as most
        return None
    with ExitStack() as undo:
        memory = open_process_memory(pid)
        if memory is None:
            return None
        undo.enter_context(memory)
        python = _open(memory, mapped, mapping, mappings)
        undo.pop_all()
    return python


def _candidates(mappings: list[Mapping]) -> Iterable[Mapping]:
    """A mapping of each file that may be an interpreter: by name, then the program itself."""
    files: dict[str, Mapping] = {}
    for mapping in mappings:
        if not (mapping.file.is_anonymous or mapping.file.is_special):
            files.setdefault(mapping.file.path, mapping)
    named = sorted(
        (mapping for path, mapping in files.items() if _is_likely(path)),
        key=lambda mapping: not is_interpreter(mapping.file.path),
    )
    program = [mapping for path, mapping in files.items() if not _is_likely(path)][:1]
    return [*named[:_MOST_FILES], *program]


def _is_likely(path: str) -> bool:
    base = path.rpartition("/")[2]
    return is_interpreter(path) or ("python" in base and ".cpython-" not in base)


def _look_into(mapping: Mapping, pid: int, files: KnownFiles) -> _MappedFile | None:
    key = files.key(mapping, pid)
    if key not in files.by_key:
        try:
            fd = open_mapped(mapping, (pid,))
        except OSError:
            return None
        try:
            status = os.fstat(fd)
            key = _key(status)
            if key not in files.by_key:
                if len(files.by_key) >= _MOST_RECENT:
                    files.by_key.clear()
                files.by_key[key] = _read_file(fd, status.st_size, mapping.file.path)
        finally:
            os.close(fd)
    file = files.by_key[key]
    bias = file and load_bias(file.segments, mapping.start, mapping.offset)
    if file is None or bias is None:
        return None
    loop = tuple(CodeRange(part.start + bias, part.end + bias) for part in file.loop)
    data = tuple(
        CodeRange(part.address + bias, part.address + bias + part.file_size)
        for part in file.segments
        if part.type == PT_LOAD and part.flags & _WRITABLE
    )
    version = file.runtime.version + bias if file.runtime.version else 0
    runtime, path = file.runtime.runtime + bias, mapping.file.path
    return _MappedFile(key, runtime, version, loop, data, path, file.machine)


def _key(status: os.stat_result) -> FileKey:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _read_file(fd: int, size: int, path: str) -> _File | None:
    try:
        image = ElfImage(lambda at, wanted: os.pread(fd, wanted, at), size, path)
        runtime = read_runtime_file(image)
        if runtime is None:
            return None
        return _File(runtime, tuple(whole_loop(image, runtime.loop)), image.segments, image.machine)
    except FormatError:
        return None


def _open(
    memory: ProcessMemory, mapped: _MappedFile, at: Mapping, mappings: list[Mapping]
) -> PythonProcess:
    said = read_debug_offsets(memory.read(mapped.runtime, HEADER_SIZE))
    if memory.is_stuck:
        raise NotSupportedError(f"Python frames of {at.file.path}", STUCK)
    if said is not None:
        if said.layout is None:
            raise _unknown(at, said.version)
        return PythonProcess(memory, mapped, said.version, said.layout, free=said.is_free_threaded)
    version = _version(Memory(memory.read), mapped, at, mappings)
    layout = LAYOUTS.get(version)
    if layout is None or version >= (3, 13):
        raise _unknown(at, version)
    return PythonProcess(memory, mapped, version, layout, free=False)


def _version(
    memory: Memory, mapped: _MappedFile, at: Mapping, mappings: list[Mapping]
) -> tuple[int, int]:
    """By the number that the library has, or else by the names of files."""
    if mapped.version:
        try:
            number = memory.number(mapped.version, 4)
        except UnreadableError:
            number = 0
        if number:
            return number >> 24 & 255, number >> 16 & 255
    runtime = runtime_of([at.file.path]) or runtime_of(m.file.path for m in mappings)
    major, _, minor = (runtime.version if runtime else "").partition(".")
    return (int(major), int(minor)) if minor.isdecimal() else (0, 0)


def _unknown(at: Mapping, version: tuple[int, int]) -> NotSupportedError:
    versions = ", ".join(f"{major}.{minor}" for major, minor in sorted(LAYOUTS))
    description = (
        f"CPython {version[0]}.{version[1]}" if version[0] else "a CPython of unknown version"
    )
    return NotSupportedError(
        f"Python frames of {at.file.path}", f"{description} (known: {versions})"
    )
