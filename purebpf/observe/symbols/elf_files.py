"""The ELF files behind mappings, read once each."""

from __future__ import annotations

import os
from collections.abc import Container
from typing import TYPE_CHECKING

from purebpf.errors import FormatError, errno_name
from purebpf.files.held_files import HeldFiles
from purebpf.files.regular_file import opened_regular
from purebpf.loader.host.debug_files import Fetch, debug_file, image_of
from purebpf.observe.symbols import mapped_files
from purebpf.observe.symbols.mapped_files import Identity, OpenFiles
from purebpf.observe.symbols.symbol_cache import SymbolCache
from purebpf.symbols.budget import FILE, Budget, OverBudgetError
from purebpf.symbols.elf_image import PT_LOAD, SHT_SYMTAB, ElfImage, Segment, virtual_offset
from purebpf.symbols.frame import FileOffset, Reason
from purebpf.symbols.proc_maps import MappedFile, Mapping
from purebpf.symbols.runtimes import NATIVE_IMAGE_SECTION
from purebpf.symbols.symbol_table import SymbolTable
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.symbols.file_ids import FileIds, FileKey

__all__ = [
    "ElfFiles",
    "ElfFunctions",
    "FileAccount",
    "Problem",
    "cache_key",
    "functions_of",
]

_KEEP_BYTES = 24 << 20
_KEEP_AT_REST = 8 << 20
_KEEP_TABLES = 512
_SMALL = 1 << 18
_KEEP_PROBLEMS = 4096


class Problem(NamedTuple):
    """The reason why a file's functions are unknown; `detail` is an errno's name or the fault in
    the file.
    """

    reason: Reason
    detail: str = ""


class ElfFunctions(NamedTuple):
    """The functions of one file. `is_stripped`: only those that it exports."""

    build_id: str
    is_stripped: bool
    segments: list[Segment]
    table: SymbolTable

    def find(self, offset: FileOffset) -> tuple[str, int] | None:
        """The function that a byte of the file belongs to (mangled), and the bytes into it."""
        place = virtual_offset(self.segments, offset)
        return None if place is None else self.table.find(place)

    def is_unsized(self, offset: FileOffset) -> bool:
        """Return True if the symbol of a byte does not say where its function ends."""
        place = virtual_offset(self.segments, offset)
        row = None if place is None else self.table.row(place)
        return row is not None and self.table.is_unsized(row)


class FileAccount(NamedTuple):
    """An account of the budget: the file, and its name."""

    identity: Identity
    path: str

    def __str__(self) -> str:
        return self.path


class ElfFiles:
    """Functions of mapped files.

    Tables that were not used lately are dropped above 24 MiB, where the largest does not count: a
    browser's is larger than all others, and would take turns with them.

    Args:
        fetch: gets the debug file of a build id that is not on this machine.
        budget: charged for reading.
        held: descriptors of tables that are read again and again; else none is held.

    Attributes:
        opened: mapped files that are open for other reasons.
        ids: gets the identifiers of each file that is read, by path and build ID; None: nobody
            needs them. Without a hash if several such files differ.
    """

    def __init__(
        self,
        fetch: Fetch | None = None,
        budget: Budget | None = None,
        held: HeldFiles | None = None,
        opened: OpenFiles | None = None,
    ) -> None:
        self._fetch = fetch
        self.opened = opened
        self._budget = Budget() if budget is None else budget
        self._identities: dict[MappedFile, Identity] = {}
        self._as_seen: dict[tuple[int, MappedFile], Identity] = {}  # in its process's root
        self._tables: dict[Identity, ElfFunctions] = {}  # the one used last at the end
        self._problems: dict[tuple[int, MappedFile], Problem] = {}
        self._cache = SymbolCache(held=held)
        self._uncached: set[str] = set()
        self._used: set[Identity] = set()  # since the last `rest`
        self._used_before: set[Identity] = set()  # between that and the one before
        self.ids: dict[FileKey, FileIds] | None = None

    def functions(self, mapping: Mapping, pids: tuple[int, ...]) -> ElfFunctions | Problem:
        """Return the functions of a mapped file, or the reason why they are unknown.

        Args:
            mapping: a mapping of the first of `pids`.
            pids: the process, then its ancestors, which may share its mount namespace.

        Raises:
            OverBudgetError: it would cost more than the process, its user or the run has left.
        """
        kept_table = self.known(mapping, pids[0])
        return (
            kept_table or self._problems.get((pids[0], mapping.file)) or self._find(mapping, pids)
        )

    def known(self, mapping: Mapping, pid: int) -> ElfFunctions | None:
        """Return the functions of a process's mapped file, if they were looked up before."""
        file = mapping.file
        if not file.inode:
            return None
        identity = self._as_seen.get((pid, file)) or self._identities.get(file)
        if identity and mapped_files.was_written(self.opened, mapping, pid, identity):
            return None  # it is the file of other processes
        kept_table = self._tables.pop(identity, None) if identity else None
        if kept_table is not None and identity is not None:
            self._tables[identity] = kept_table
            self._used.add(identity)
        return kept_table

    def is_native_image(self, mapping: Mapping, pid: int) -> bool:
        """Return True for a stripped file, looked up before, that is a native image of GraalVM."""
        functions = self.known(mapping, pid)
        if functions is None or not functions.is_stripped:
            return False
        try:
            fd = mapped_files.open_mapped(mapping, (pid,))
        except OSError:
            return False
        try:
            return image_of(fd, mapping.file.path).section(NATIVE_IMAGE_SECTION) is not None
        except (FormatError, OSError):
            return False
        finally:
            os.close(fd)

    def _find(self, mapping: Mapping, pids: tuple[int, ...]) -> ElfFunctions | Problem:
        file = mapping.file
        problem = Problem(Reason.REPLACED if file.deleted else Reason.NOT_FOUND)
        for path, place in mapped_files.places(mapping, pids, self.opened):
            try:
                with opened_regular(path) as fd:
                    status = os.fstat(fd)
                    if mapped_files.is_mapped_one(
                        path, place, status, mapping, pids[0], opened=self.opened
                    ):
                        for_all = mapped_files.is_for_all(path, place, status, file)
                        functions = self._load(fd, file, pids[0], for_all=for_all)
                    else:
                        functions = Problem(Reason.REPLACED)
            except OverBudgetError as error:
                if error.kind != FILE:
                    raise
                problem = Problem(Reason.OVER_BUDGET, error.detail)
                break
            except FormatError as error:
                functions = Problem(Reason.NOT_ELF, f"{error.where}: {error.problem}")
            except OSError as error:
                functions = Problem(*_explain(error))
            if isinstance(functions, ElfFunctions):
                return functions
            if problem.reason is Reason.NOT_FOUND and place is not mapped_files.Trust.EXACT:
                problem = functions
        if len(self._problems) >= _KEEP_PROBLEMS:
            self._problems.clear()
        self._problems[pids[0], file] = problem
        return problem

    def _load(
        self, fd: int, file: MappedFile, pid: int, *, for_all: bool
    ) -> ElfFunctions | Problem:
        identity = Identity.of(os.fstat(fd))
        functions = self._tables.get(identity)
        if functions is not None and file.build_id and functions.build_id != file.build_id:
            return Problem(Reason.REPLACED)
        if functions is None:
            with self._budget.on_behalf(file=FileAccount(identity, file.path)):
                image = image_of(fd, file.path, self._budget.spend)
                if file.build_id and image.build_id != file.build_id:
                    return Problem(Reason.REPLACED)
                functions = self._read(image, file.path, pid, identity)
            self._keep(identity, functions)
        if self.ids is not None:
            from purebpf.observe.symbols.noted_ids import note_ids

            note_ids(self.ids, (file.path, functions.build_id), fd, identity.size)
        if for_all:
            if len(self._identities) >= _KEEP_PROBLEMS:
                self._identities.clear()
            self._identities[file] = identity
        else:
            if len(self._as_seen) >= _KEEP_PROBLEMS:
                self._as_seen.clear()
            self._as_seen[pid, file] = identity
        return functions

    def _read(self, image: ElfImage, path: str, pid: int, identity: Identity) -> ElfFunctions:
        """Return the functions of a file, from the cache or from the file."""
        owner = identity.owner
        key = cache_key(identity, image.build_id)
        may_keep = key not in self._uncached
        table = self._cache.load(key) if may_keep else None
        if table is not None:
            return ElfFunctions(image.build_id, False, _loadable_segments(image), table)  # noqa: FBT003
        debug = None
        if not _has_symbols(image):
            spend = self._budget.spend
            debug = debug_file(
                image, path, (pid,), _has_symbols, self._fetch_debug_file, owner=owner, spend=spend
            )
        try:
            is_stripped = _is_stripped(image, debug.image if debug else None)
            if is_stripped:  # a file of its own, as a debug file may be installed later
                key = cache_key(identity, image.build_id, is_stripped=True)
                table = self._cache.load(key) if may_keep else None
                if table is not None:
                    return ElfFunctions(image.build_id, True, _loadable_segments(image), table)  # noqa: FBT003
            functions = functions_of(image, debug.image if debug else None)
        finally:
            if debug is not None:
                os.close(debug.fd)
        if may_keep:
            self._cache.keep(key, functions.table)
        return functions

    def _fetch_debug_file(self, build_id: str) -> str | None:
        """Return the result of `fetch`: its time is the servers', which have a separate limit."""
        if self._fetch is None:
            return None
        begun = self._budget.now()
        try:
            return self._fetch(build_id)
        finally:
            self._budget.forgive(self._budget.now() - begun)

    def forget(self, functions: ElfFunctions) -> None:
        """Read a file again, since its cached table is gone or damaged."""
        for identity, kept_table in list(self._tables.items()):
            if kept_table is functions:
                del self._tables[identity]
                whose = identity, functions.build_id
                self._cache.drop(cache_key(*whose, is_stripped=functions.is_stripped))
                self._uncached.add(cache_key(*whose))

    def _keep(self, identity: Identity, functions: ElfFunctions) -> None:
        self._tables[identity] = functions
        self._used.add(identity)
        self._drop_above(_KEEP_BYTES)

    def rest(self, keep: Container[int]) -> None:
        """Keep 8 MiB of tables, those used last: between two windows of a run that goes on.

        Tables that are in cache files are read from there from now on, as in any later run; tables
        that were not used since the last call go, small ones with the next call.

        Args:
            keep: facts that belong to files of other processes alone go as well.
        """
        for kept_table in (self._as_seen, self._problems):
            for key in [key for key in kept_table if key[0] not in keep]:
                del kept_table[key]
        for identity, functions in list(self._tables.items()):
            table = functions.table
            table.rest()
            is_small = table.pages is not None or table.nbytes <= _SMALL
            if identity not in self._used and not (is_small and identity in self._used_before):
                del self._tables[identity]
            elif table.pages is None:
                self._leave_in_file(identity, functions)
        self._used_before, self._used = self._used, set()
        self._drop_above(_KEEP_AT_REST)

    def _leave_in_file(self, identity: Identity, functions: ElfFunctions) -> None:
        """Replace a table in memory by the file of it, if there is one."""
        whose = identity, functions.build_id
        if cache_key(*whose) in self._uncached:
            return
        table = self._cache.load(cache_key(*whose, is_stripped=functions.is_stripped))
        if table is not None:
            table.places, table.functions = functions.table.places, functions.table.functions
            self._tables[identity] = functions._replace(table=table)

    def _drop_above(self, nbytes: int) -> None:
        """Drop the tables that were not used for longest, except for the largest."""
        largest = max(self._tables, key=lambda kept: self._tables[kept].table.nbytes, default=None)
        if largest is None:
            return
        others = sum(kept.table.nbytes for kept in self._tables.values())
        others -= self._tables[largest].table.nbytes
        while (others > nbytes and len(self._tables) > 2) or len(self._tables) > _KEEP_TABLES:
            oldest = next(candidate for candidate in self._tables if candidate != largest)
            others -= self._tables.pop(oldest).table.nbytes


def cache_key(identity: Identity, build_id: str, *, is_stripped: bool = False) -> str:
    """Return the cache key of a file's table: its build id and owner, or its identity on this
    machine.
    """
    device, inode, mtime_ns, size, owner = identity
    name = build_id or f"{device:x}.{inode:x}.{mtime_ns:x}.{size:x}"
    return f"{name}-{owner}" + "-exported" * is_stripped


def functions_of(image: ElfImage, debug: ElfImage | None = None) -> ElfFunctions:
    """The functions of an image and its debug file.

    Raises:
        FormatError: a table is malformed.
    """
    from purebpf.symbols.elf_symbols import read_symbols  # not for tables in the cache

    table = read_symbols(image, debug)
    is_stripped = _is_stripped(image, debug)
    return ElfFunctions(image.build_id, is_stripped, _loadable_segments(image), table)


def _is_stripped(image: ElfImage, debug: ElfImage | None) -> bool:
    return not (_has_symbols(image) or image.section(".gnu_debugdata") or debug)


def _loadable_segments(image: ElfImage) -> list[Segment]:
    """The segments that hold code or data."""
    return [segment for segment in image.segments if segment.type == PT_LOAD]


def _explain(error: OSError) -> tuple[Reason, str]:
    if isinstance(error, FileNotFoundError | ProcessLookupError | NotADirectoryError):
        return Reason.NOT_FOUND, ""
    return Reason.UNREADABLE, errno_name(error.errno or 0)


def _has_symbols(image: ElfImage) -> bool:
    return image.section_of_type(SHT_SYMTAB) is not None
