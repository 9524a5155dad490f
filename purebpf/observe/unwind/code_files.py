"""The call frame information of mapped files, each opened once.

Files are read through their descriptors as far as they are needed, never mapped: a mapped file that
its owner truncates kills its reader. A file that changes gives other rules, or none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Container, Hashable
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from purebpf.closable import Closing
from purebpf.errors import FormatError
from purebpf.loader.host.debug_files import Spend
from purebpf.loader.host.process_limits import open_files
from purebpf.observe.symbols.elf_files import cache_key
from purebpf.observe.symbols.mapped_files import Identity, open_place
from purebpf.observe.symbols.vdso import VDSO, vdso_bytes
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.go_stack import go_stack
from purebpf.symbols.proc_maps import MappedFile, Mapping
from purebpf.tuples import NamedTuple
from purebpf.unwind.address_space import CodeMapping
from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.elf_frames import load_bias
from purebpf.unwind.rows import RuleTable

if TYPE_CHECKING:
    from purebpf.symbols.code_frames import CodeFrame

__all__ = ["CodeFiles"]

_RECENT_S = 1.0
_ALL = 0
_MOST, _FEWEST = 512, 16
"""Files that are open at a time: a few KB each at rest. At most a third of the limit."""
_MOST_RECENT = 4096
"""Mapped files of which it is remembered which open file they are."""


class _Content(Closing):
    """An open descriptor, or -1 for the vDSO, which is in memory.

    Reads give nothing where the file cannot be read, as where it ends, and once it is closed: rules
    may still be under construction then, and another file may have the number of the descriptor.
    """

    def __init__(self, fd: int, spend: Spend | None = None) -> None:
        self.fd = fd
        self._spend = spend

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of the file; `spend` may raise."""
        if self._spend is not None:
            self._spend(size)
        try:
            return os.pread(self.fd, size, offset)
        except OSError:  # EIO, ESTALE: of a network file system; EBADF: closed
            return b""

    def close(self) -> None:
        """Close it; again is harmless."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


class _Open(NamedTuple):
    """An open file."""

    content: _Content
    image: ElfImage
    cfi: CfiFile

    @property
    def fd(self) -> int:
        """The descriptor; -1 for the vDSO."""
        return self.content.fd


class _Recent(NamedTuple):
    """The identity of a mapped file; `until_s` is on the monotonic clock.

    Until then no mapping of it is checked again where stat(2) has another device than
    /proc/PID/maps, as on btrfs. Elsewhere no other file has its device and inode while it is open.
    """

    key: Hashable
    until_s: float


class CodeFiles(Closing):
    """Open files by identity; the ones not used for longest are closed above 512.

    Args:
        spend: called with the number of bytes about to be read; may raise.
    """

    def __init__(self, spend: Spend | None = None) -> None:
        self._spend = spend
        limit, _ = open_files()
        self._most = max(min(_MOST, limit // 3), _FEWEST)
        self._files: dict[Hashable, _Open] = {}
        self._recent: dict[tuple[int, MappedFile], _Recent] = {}
        self._by_inode: dict[tuple[int, int, int, int], Hashable] = {}
        self._generated: set[MappedFile] = set()  # memory files that are not ELF
        # a file that is opened again numbers its rules as those do that were published of it
        self._tables: WeakValueDictionary[Hashable, RuleTable] = WeakValueDictionary()

    def find(self, key: Hashable) -> CfiFile | None:
        """Return the rules of the file that `CodeMapping.file` names; None if it was closed in
        between.
        """
        entry = self._files.pop(key, None)
        if entry is None:
            return None
        self._files[key] = entry  # the one used last at the end
        return entry.cfi

    def held(self, mapping: Mapping, pid: int) -> int | None:
        """Return the open descriptor of a mapped file, which may have lost its path since.

        None if it is not open, or was written to. The descriptor stays this object's. Where stat(2)
        has another device than /proc/PID/maps, as on btrfs, a file counts for the process alone
        that it was opened for: snapshots have equal paths and inodes.

        Args:
            mapping: a mapping of the process.
            pid: the process; a file that was opened in its root directory is its alone.
        """
        file = _as_mapped(mapping.file)
        for owner in (pid, _ALL):
            recent = self._recent.get((owner, file))
            opened = None if recent is None else self._files.get(recent.key)
            if recent is None or opened is None or opened.fd < 0:
                continue
            with suppress(OSError):  # ESTALE, of a network file system
                status = os.fstat(opened.fd)
                is_known = owner == pid or _is_where(file, status)
                if is_known and Identity.of(status) == recent.key:
                    return opened.fd
        return self._held_by_inode(file, pid)

    def noted(self, mapping: Mapping, pid: int) -> Identity | None:
        """Return the identity that a process's mapped file had when it was last asked for.

        None if it was not, or long ago.
        """
        file = mapping.file
        key = self._by_inode.get((pid, file.major, file.minor, file.inode))
        return key if isinstance(key, Identity) else None

    def _held_by_inode(self, file: MappedFile, pid: int) -> int | None:
        """Return the same for a file that this process has by another path, as after chroot(2)."""
        key = self._by_inode.get((pid, file.major, file.minor, file.inode))
        opened = None if key is None else self._files.get(key)
        if opened is not None and opened.fd >= 0:
            with suppress(OSError):
                status = os.fstat(opened.fd)
                if _is_where(file, status) and Identity.of(status) == key:
                    return opened.fd
        return None

    def rest(self, busy: Container[Hashable] = ()) -> None:
        """Drop the entries and headers of all files, which stay open, but for those being built of.

        Drop data that can be read again; rules stay.
        """
        for key, entry in self._files.items():
            if key not in busy:
                entry.cfi.rest()
                entry.image.rest()

    def mapping(self, mapping: Mapping, pid: int) -> CodeMapping:
        """Return a mapping of a process with the parts of its file that unwinding needs.

        `file` is None for generated code, and for a file that cannot be read.
        """
        start, end = mapping.start, mapping.end
        if mapping.file.is_memory_file:
            opened = self._memory_file(mapping, pid)
        elif mapping.file.is_anonymous:
            return CodeMapping(start, end, 0, None)
        elif mapping.file.path == VDSO:
            opened = self._vdso(mapping, pid)
        else:  # the kernel has [vsyscall] in no file
            opened = None if mapping.file.is_special else self._file(mapping, pid)
        if opened is None:
            return CodeMapping(start, end, 0, None)
        key, image = opened
        bias = load_bias(image.segments, start, mapping.offset)
        return CodeMapping(start, end, bias or 0, None if bias is None else key)

    def _memory_file(self, mapping: Mapping, pid: int) -> tuple[Hashable, ElfImage] | None:
        """Return a program or library in memory; None for generated code, which is read once."""
        if mapping.file in self._generated:
            return None
        return self._file(mapping, pid)

    def _vdso(self, mapping: Mapping, pid: int) -> tuple[Hashable, ElfImage] | None:
        """Return the vDSO of a process, by its content: a 32-bit process may have changed it."""
        content = vdso_bytes(mapping, pid)
        key = VDSO, content
        if key not in self._files:
            try:
                image = ElfImage.of_bytes(content, VDSO)
            except FormatError:
                return None
            self._keep(key, _Open(_Content(-1), image, CfiFile(image)))
        return key, self._files[key].image

    def _file(self, mapping: Mapping, pid: int) -> tuple[Hashable, ElfImage] | None:
        """Return the file of a mapping; an open one is checked to be still the same."""
        file = _as_mapped(mapping.file)
        owner = pid if (pid, file) in self._recent else _ALL
        recent = self._recent.get((owner, file))
        opened = self._files.get(recent.key) if recent is not None else None
        if recent is not None and opened is not None:
            with suppress(OSError):  # ESTALE, of a network file system
                status = os.fstat(opened.fd)
                is_known = _is_where(file, status) or time.monotonic() < recent.until_s
                if is_known and Identity.of(status) == recent.key:
                    self._note_inode(pid, file, recent.key)
                    return recent.key, opened.image
        return self._open(mapping, pid)

    def _open(self, mapping: Mapping, pid: int) -> tuple[Hashable, ElfImage] | None:
        try:
            fd, is_for_all = open_place(mapping, (pid,))
        except OSError:
            return None
        taken = self._take(fd, mapping)
        if taken is not None and mapping.file.inode:
            self._note(_ALL if is_for_all else pid, mapping.file, taken[0])
            self._note_inode(pid, mapping.file, taken[0])
        return taken

    def _note(self, pid: int, file: MappedFile, key: Hashable) -> None:
        if len(self._recent) >= _MOST_RECENT:
            self._recent.clear()
        self._recent[pid, _as_mapped(file)] = _Recent(key, time.monotonic() + _RECENT_S)

    def _note_inode(self, pid: int, file: MappedFile, key: Hashable) -> None:
        if len(self._by_inode) >= _MOST_RECENT:
            self._by_inode.clear()
        self._by_inode[pid, file.major, file.minor, file.inode] = key

    def _take(self, fd: int, mapping: Mapping) -> tuple[Hashable, ElfImage] | None:
        """Return the rules of an open file; store or close the descriptor."""
        status = os.fstat(fd)
        key = Identity.of(status)
        code_file = self._files.get(key)
        if code_file is not None:
            os.close(fd)
            return key, code_file.image
        try:
            content = _Content(fd, self._spend)
            image = ElfImage(content.read, status.st_size, mapping.file.path)
            depths = go_stack(image)
            kept_as = cache_key(key, image.build_id) if depths is None else ""
            cfi = CfiFile(image, depths, kept_as, self._tables.get(key), _read_frames)
        except FormatError:
            os.close(fd)
            if mapping.file.is_memory_file:
                if len(self._generated) >= _MOST_RECENT:
                    self._generated.clear()
                self._generated.add(mapping.file)
            return None
        except BaseException:
            os.close(fd)
            raise
        image.rest()  # most files that are mapped are never asked for rules
        self._keep(key, _Open(content, image, cfi))
        self._tables[key] = cfi.table
        return key, image

    def _keep(self, key: Hashable, opened: _Open) -> None:
        self._files[key] = opened
        if len(self._files) > self._most:
            oldest = next(iter(self._files))
            self._drop(oldest)

    def _drop(self, key: Hashable) -> None:
        self._files.pop(key).content.close()

    def close(self) -> None:
        """Close every file; again is harmless."""
        for key in list(self._files):
            self._drop(key)


def _read_frames(code: bytes, address: int) -> list[CodeFrame]:
    """Return the frames in code without unwind tables, which most files do not have."""
    from purebpf.symbols.code_frames import frames_of

    return frames_of(code, address)


def _as_mapped(file: MappedFile) -> MappedFile:
    """Return a mapped file as its first record names it: it may have been deleted since."""
    return file._replace(deleted=False) if file.deleted else file


def _is_where(file: MappedFile, status: os.stat_result) -> bool:
    """Return True if an open file has the device and inode of a mapping."""
    device = os.major(status.st_dev), os.minor(status.st_dev)
    return device == (file.major, file.minor) and status.st_ino == file.inode
