"""Code that programs copied to anonymous memory at the same addresses, found to be their file's.

Without that it would count as generated code, without names or callers. The bytes at 16 places must
equal the file's; else it stays anonymous: other code may have taken the place.

The user of a process decides on its mappings and on the headers of its files. So one look compares
at most 48 parts, reads at most 1 MiB of headers, and holds at most two files open.
"""

from __future__ import annotations

import os
from errno import EMFILE, ENFILE, ENOMEM

from purebpf.closable import Closing
from purebpf.errors import FormatError, KernelError, PurebpfError
from purebpf.loader.host.debug_files import image_of
from purebpf.observe.symbols.mapped_files import open_mapped
from purebpf.symbols.copied_text import (
    MOST_CANDIDATES,
    PLACE_BYTES,
    Candidate,
    candidates,
    checked_places,
    text_of,
)
from purebpf.symbols.elf_image import Segment
from purebpf.symbols.proc_maps import Mapping
from purebpf.syscall.process_memory import ProcessMemory, open_process_memory
from purebpf.tuples import NamedTuple

__all__ = ["Copies", "find_copies"]

_MOST_PARTS = 48
_MOST_BYTES = 1 << 20
_MOST_FILES = 2
_NO_ROOM = (EMFILE, ENFILE, ENOMEM)


class Copies(NamedTuple):
    """Parts of files in anonymous memory.

    Attributes:
        parts: anonymous mappings, each with its part as a mapping of the file.
        is_sure: no other anonymous code lies where a file's code was loaded.
        is_cut: more could not be compared: descriptors or the limits of a look ran out.
    """

    parts: list[tuple[Mapping, Mapping]]
    is_sure: bool
    is_cut: bool = False


class _CutError(PurebpfError):
    """A look must end here: descriptors or its limits ran out."""


def find_copies(pid: int, text: str) -> Copies:
    """Return the copies of files' code in a process; none if it cannot be read.

    Args:
        pid: the process.
        text: its /proc/PID/maps.
    """
    found = candidates(text)
    look = _Look(pid)
    if not found:
        return Copies([], is_sure=True)
    try:
        memory = open_process_memory(pid)
    except KernelError as error:
        is_cut = error.errno in _NO_ROOM
        return Copies([], is_sure=not is_cut, is_cut=is_cut)
    if memory is None:
        return Copies([], is_sure=True)
    is_cut = len(found) == MOST_CANDIDATES
    with memory, look:
        try:
            for candidate in found:
                look.compare(candidate, memory)
        except _CutError:
            is_cut = True
    is_sure = not is_cut and look.possible == {anonymous for anonymous, _ in look.parts}
    return Copies(look.parts, is_sure, is_cut)


class _Look(Closing):
    """One look at a process, and the files that it opened last."""

    def __init__(self, pid: int) -> None:
        self.parts: list[tuple[Mapping, Mapping]] = []
        self.possible: set[Mapping] = set()
        self._pid = pid
        self._compared = self._nbytes = 0
        self._files: dict[Mapping, tuple[int, list[Segment]]] = {}

    def compare(self, candidate: Candidate, memory: ProcessMemory) -> None:
        """Add the parts whose memory has the bytes of the file, and which do not overlap.

        Raises:
            _CutError: descriptors or the limits ran out.
        """
        for neighbour in candidate.neighbours:
            opened = self._open(neighbour)
            if opened is None:
                continue
            fd, segments = opened
            for part in text_of(candidate, neighbour, segments):
                self._compared += 1
                if self._compared > _MOST_PARTS:
                    raise _CutError
                self.possible.add(candidate.anonymous)
                if self._is_free(part) and _is_copy(part, fd, segments, memory):
                    self.parts.append((candidate.anonymous, part))

    def _is_free(self, part: Mapping) -> bool:
        return all(other.end <= part.start or part.end <= other.start for _, other in self.parts)

    def _spend(self, nbytes: int) -> None:
        self._nbytes += nbytes
        if self._nbytes > _MOST_BYTES:
            raise _CutError

    def _open(self, mapping: Mapping) -> tuple[int, list[Segment]] | None:
        """Return a descriptor and the program headers of a mapped file; None: no ELF file."""
        if mapping in self._files:
            return self._files[mapping]
        while len(self._files) >= _MOST_FILES:
            os.close(self._files.pop(next(iter(self._files)))[0])
        try:
            fd = open_mapped(mapping, (self._pid,))
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise _CutError from error
            return None
        self._files[mapping] = fd, []
        try:
            self._files[mapping] = fd, image_of(fd, mapping.file.path, self._spend).segments
        except (OSError, FormatError):  # it has no segments, so no part is in it
            pass
        return self._files[mapping]

    def close(self) -> None:
        """Close the files; again is harmless."""
        while self._files:
            os.close(self._files.popitem()[1][0])


def _is_copy(part: Mapping, fd: int, segments: list[Segment], memory: ProcessMemory) -> bool:
    """Return True if the memory has the bytes of the file at all checked places."""
    contents = set()
    for address, offset in checked_places(part, segments):
        try:
            content = os.pread(fd, PLACE_BYTES, offset)
        except OSError:  # EIO, ESTALE: of a network file system
            return False
        if len(content) < PLACE_BYTES or memory.read(address, PLACE_BYTES) != content:
            return False
        contents.add(content)
    return any(len(set(content)) > 1 for content in contents)
