"""Names of the variables of a process, from the symbols of the files that it maps."""

from __future__ import annotations

import bisect
import os
from collections.abc import Callable, Iterable
from functools import cache

from purebpf.errors import FormatError
from purebpf.loader.host.debug_files import image_of
from purebpf.observe.symbols.mapped_files import open_mapped
from purebpf.symbols.budget import Budget, OverBudgetError
from purebpf.symbols.demangle import demangle
from purebpf.symbols.elf_image import ElfImage, virtual_offset
from purebpf.symbols.elf_names import Variable, variables
from purebpf.symbols.proc_maps import MappedFile, Mapping, parse_maps
from purebpf.syscall import proc

__all__ = ["DataSymbols"]

_Known = tuple[int, list[Variable]]
"""Where a file's own addresses have the start of a mapping, and its variables."""


class DataSymbols:
    """Variables by address; reads each file once.

    Args:
        budget: the cost limit of reading files.
        files: a mapping of code of each file that a process has or had, also after its end.
    """

    def __init__(self, budget: Budget, files: Callable[[int], Iterable[Mapping]]) -> None:
        self._budget = budget
        self._files = files
        self._mappings = cache(_code_of)
        self._known: dict[tuple[MappedFile, int], _Known] = {}

    def refresh(self) -> None:
        """Read the mappings of processes again."""
        self._mappings = cache(_code_of)

    def name(self, pid: int, path: str, address: int) -> str:
        """`cache_lock`, or `cache+0x10` inside of it; "" where the file does not say.

        Args:
            pid: the process.
            path: the file that it maps there, as /proc/PID/maps writes it.
            address: in the process.
        """
        mapping = self._mappings(pid).get(path)
        return "" if mapping is None else self._in(pid, mapping, address)

    def of_ended(self, pid: int, address: int) -> str:
        """`cache_lock in app` of a process that is gone, by the files that it had mapped; or ""."""
        for mapping in self._files(pid):
            if name := self._in(pid, mapping, address):
                return f"{name} in {mapping.file.path.rpartition('/')[2]}"
        return ""

    def _in(self, pid: int, mapping: Mapping, address: int) -> str:
        code, known_variables = self._variables(pid, mapping)
        own = address - mapping.start + code
        at = bisect.bisect_right(known_variables, own, key=lambda variable: variable.address) - 1
        if at < 0:
            return ""
        start, size, name = known_variables[at]
        inside = own - start
        if inside >= size:
            return ""
        return f"{demangle(name)}+{inside:#x}" if inside else demangle(name)

    def _variables(self, pid: int, mapping: Mapping) -> _Known:
        key = mapping.file, mapping.offset
        if key not in self._known:
            try:
                fd = open_mapped(mapping, (pid,))
            except OSError:
                return 0, []  # another process may show it
            try:
                with self._budget.on_behalf(file=mapping.file.path):
                    image = image_of(fd, mapping.file.path, self._budget.spend)
                    self._known[key] = _variables_of(image, mapping)
            except (OSError, FormatError, OverBudgetError):
                self._known[key] = 0, []
            finally:
                os.close(fd)
        return self._known[key]


def _variables_of(image: ElfImage, mapping: Mapping) -> _Known:
    code = virtual_offset(image.segments, mapping.offset)
    return (0, []) if code is None else (code, variables(image))


def _code_of(pid: int) -> dict[str, Mapping]:
    """The first mapping of code of each file."""
    mappings: dict[str, Mapping] = {}
    for mapping in parse_maps(proc.maps(pid) or ""):
        mappings.setdefault(mapping.file.path, mapping)
    return mappings
