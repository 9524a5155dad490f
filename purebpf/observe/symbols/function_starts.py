"""The starts of functions without a symbol, by the call frame information of their file.

Nearly all code has it, also in stripped files, since exceptions and unwinding need it. So frames of
a function can be added up without a name for it. Little is read, and only of files
with an address without a symbol: a table of the starts (.eh_frame_hdr), and the wanted entries.
"""

from __future__ import annotations

import os
from bisect import bisect_right, insort
from typing import TYPE_CHECKING, TypeVar

from purebpf.errors import FormatError
from purebpf.observe.symbols.elf_files import FileAccount
from purebpf.observe.symbols.mapped_files import Identity, OpenFiles, open_place, was_written
from purebpf.symbols.elf_image import ElfImage, virtual_offset
from purebpf.symbols.frame import FileOffset

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from purebpf.files.held_files import HeldFiles
    from purebpf.symbols.budget import Budget
    from purebpf.symbols.proc_maps import MappedFile, Mapping
    from purebpf.unwind.cfi_file import CfiFile, Function

__all__ = ["FunctionStarts"]

_ALL = 0
_MOST_SEEN = 4096
_MOST = 128
"""Files that are remembered: of each at most half a MiB of entries, and its table of starts."""
_END = 1 << 64
_LARGEST = 1 << 14
"""Bytes of a function of unknown size that are decoded."""

_Answer = TypeVar("_Answer")


class FunctionStarts:
    """Functions of mapped files, each file opened for a question only, or held.

    Args:
        budget: charged for reading.
        held: descriptors of files that are used again and again.

    Attributes:
        opened: mapped files that are open for other reasons.
    """

    def __init__(self, budget: Budget, held: HeldFiles) -> None:
        self.opened: OpenFiles | None = None
        self._budget = budget
        self._held = held
        self._files: dict[Identity, _File | None] = {}
        self._identities: dict[tuple[int, MappedFile], Identity] = {}

    def find(self, mapping: Mapping, pids: tuple[int, ...], where: FileOffset) -> Function | None:
        """The function that a byte of a mapped file belongs to.

        Args:
            mapping: a mapping of the first of `pids`.
            pids: the process, then its ancestors, which may share its mount namespace.
            where: the byte, from the start of the file.

        Returns:
            its addresses in the file; None where the file does not say, or cannot be read.

        Raises:
            OverBudgetError: it would cost more than the file, its process, its user or the run
                has left.
        """
        identity = self._identity(mapping, pids[0])
        starts = self._files.get(identity) if identity else None
        function = starts.known(where) if starts else None
        return function or self._read(mapping, pids, lambda file, fd: file.function(fd, where))

    def gap(self, mapping: Mapping, pids: tuple[int, ...], where: FileOffset) -> Function | None:
        """Return the code between two functions that a byte belongs to, if it is in none.

        Arguments and errors are the same as for `find`.
        """
        return self._read(mapping, pids, lambda file, fd: file.gap(fd, where))

    def least_size(self, mapping: Mapping, pids: tuple[int, ...], where: FileOffset) -> int:
        """Return how many bytes from one on certainly belong to the function that starts there.

        Arguments and errors are the same as for `find`; 0 if the code is not known.
        """
        return self._read(mapping, pids, lambda file, fd: file.least_size(fd, where)) or 0

    def rest(self, keep: Container[int]) -> None:
        """Drop the entries of all files; earlier answers stay.

        Args:
            keep: which files other processes have, is forgotten.
        """
        for key in [key for key in self._identities if key[0] != _ALL and key[0] not in keep]:
            del self._identities[key]
        for file in self._files.values():
            if file is not None:
                file.rest()

    def return_slot(self, mapping: Mapping, pids: tuple[int, ...], where: FileOffset) -> int | None:
        """Return the distance from the stack pointer to a function's return address, at one
        instruction.

        Arguments and errors are the same as for `find`; None if it is unknown, or if the rule is
        not relative to the stack pointer.
        """
        return self._read(mapping, pids, lambda file, fd: file.return_slot(fd, where))

    def _read(
        self,
        mapping: Mapping,
        pids: tuple[int, ...],
        ask: Callable[[_File, int], _Answer | None],
    ) -> _Answer | None:
        identity = self._identity(mapping, pids[0])
        fd = self._held.get(identity) if identity else None
        if fd is None or identity is None:
            try:
                fd, is_for_all = open_place(mapping, pids, self.opened)
            except OSError:
                return None
            identity = Identity.of(os.fstat(fd))
            if mapping.file.inode or mapping.file.build_id:
                if len(self._identities) >= _MOST_SEEN:
                    self._identities.clear()
                self._identities[_ALL if is_for_all else pids[0], mapping.file] = identity
        try:
            with self._budget.on_behalf(file=FileAccount(identity, mapping.file.path)):
                file = self._file(identity, fd, mapping.file.path)
                return ask(file, fd) if file else None
        finally:
            self._held.done(identity, fd)

    def _identity(self, mapping: Mapping, pid: int) -> Identity | None:
        """The file, if it was opened before: as this process has it, or as all have."""
        seen = self._identities.get((pid, mapping.file))
        seen = seen or self._identities.get((_ALL, mapping.file))
        return None if seen and was_written(self.opened, mapping, pid, seen) else seen

    def _file(self, identity: Identity, fd: int, path: str) -> _File | None:
        if identity not in self._files:
            if len(self._files) >= _MOST:
                del self._files[next(iter(self._files))]
                self._identities.clear()
            try:
                self._files[identity] = _File(fd, path, identity.size, self._budget)
            except FormatError:
                self._files[identity] = None
        return self._files[identity]


class _File:
    """The headers and entries of a file that is open while it is used."""

    def __init__(self, fd: int, path: str, size: int, budget: Budget) -> None:
        self._fd = fd
        self._budget = budget
        self._image = ElfImage(self._read, size, path)
        self._entries: CfiFile | None = None
        self._known: list[Function] = []

    def rest(self) -> None:
        """Drop data that can be read again."""
        self._entries = None
        self._image.rest()

    def known(self, where: FileOffset) -> Function | None:
        """Return the function of a byte, if it was looked up before."""
        address = virtual_offset(self._image.segments, where)
        if address is None:
            return None
        at = bisect_right(self._known, (address, _END)) - 1
        return self._known[at] if at >= 0 and address < self._known[at].end else None

    def function(self, fd: int, where: FileOffset) -> Function | None:
        """The function of a byte."""
        address = virtual_offset(self._image.segments, where)
        if address is None:
            return None
        function = self._rules(fd).function(address)
        if function is not None and not self.known(where):
            insort(self._known, function)
        return function

    def gap(self, fd: int, where: FileOffset) -> Function | None:
        """Return the code around a byte that is in no function."""
        address = virtual_offset(self._image.segments, where)
        return None if address is None else self._rules(fd).gap(address)

    def least_size(self, fd: int, where: FileOffset) -> int:
        """Return the size of the code that certainly belongs to the function at a byte."""
        address = virtual_offset(self._image.segments, where)
        rules = self._rules(fd)
        if address is None or rules.machine is None or rules.machine.name != "x86_64":
            return 0
        from purebpf.symbols.function_exits import least_size

        return least_size(rules.code(address, _LARGEST))

    def return_slot(self, fd: int, where: FileOffset) -> int | None:
        """Return the place of the return address at a byte, from the stack pointer up; on arm64
        0: in x30.
        """
        address = virtual_offset(self._image.segments, where)
        rules = self._rules(fd)
        row = rules.row(address) if address is not None and rules.machine else None
        if row is None or row.is_signal or rules.machine is None:
            return None
        saved = row.registers.get(row.ra)
        if rules.machine.leaf_in_register:
            from purebpf.unwind.rule import How  # there since the rules are

            return 0 if saved is None or saved == (How.SAME, 0) else None
        if row.cfa_register != rules.machine.sp or not isinstance(row.cfa, int):
            return None
        return row.cfa + saved if isinstance(saved, int) else None

    def _rules(self, fd: int) -> CfiFile:
        self._fd = fd
        if self._entries is None:
            from purebpf.unwind.cfi_file import CfiFile

            self._entries = CfiFile(self._image)
        return self._entries

    def _read(self, offset: int, size: int) -> bytes:
        self._budget.spend(size)
        try:
            return os.pread(self._fd, size, offset)
        except OSError:  # EIO, ESTALE: of a network file system
            return b""
