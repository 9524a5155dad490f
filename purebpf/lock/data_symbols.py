"""Names of the variables of a process, from the symbols of the files that it maps."""

from __future__ import annotations

import bisect
import os
from functools import cache

from purebpf.errors import FormatError
from purebpf.kernel.symbolize.debug_files import image_of
from purebpf.kernel.symbolize.elf_files import open_mapped
from purebpf.symbols.budget import Budget, OverBudgetError
from purebpf.symbols.demangle import demangle
from purebpf.symbols.elf_image import ElfImage, virtual_offset
from purebpf.symbols.elf_names import Variable, variables
from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.syscall import proc

__all__ = ["DataSymbols"]


class DataSymbols:
    """Variables by address; reads each file of a process once.

    Args:
        budget: what reading files may cost.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._mappings = cache(_code_of)
        self._variables = cache(self._read)

    def refresh(self) -> None:
        """Look again at what processes have mapped."""
        self._mappings = cache(_code_of)

    def name(self, pid: int, path: str, address: int) -> str:
        """`cache_lock`, or `cache+0x10` inside of it; "" where the file does not say.

        Args:
            pid: the process.
            path: the file that it maps there, as /proc/PID/maps writes it.
            address: in the process.
        """
        mapping = self._mappings(pid).get(path)
        if mapping is None:
            return ""
        bias, known = self._variables(pid, mapping)
        at = bisect.bisect_right(known, address - bias, key=lambda variable: variable.address) - 1
        if at < 0:
            return ""
        start, size, name = known[at]
        inside = address - bias - start
        if inside >= size:
            return ""
        return f"{demangle(name)}+{inside:#x}" if inside else demangle(name)

    def _read(self, pid: int, mapping: Mapping) -> tuple[int, list[Variable]]:
        """How far from their addresses in the file variables lie, and what they are."""
        try:
            fd = open_mapped(mapping, (pid,))
        except OSError:
            return 0, []
        try:
            with self._budget.on_behalf(file=mapping.file.path):
                return _variables_of(image_of(fd, mapping.file.path, self._budget.spend), mapping)
        except (OSError, FormatError, OverBudgetError):
            return 0, []
        finally:
            os.close(fd)


def _variables_of(image: ElfImage, mapping: Mapping) -> tuple[int, list[Variable]]:
    code = virtual_offset(image.segments, mapping.offset)
    return (0, []) if code is None else (mapping.start - code, variables(image))


def _code_of(pid: int) -> dict[str, Mapping]:
    """The first mapping of code of each file."""
    mappings: dict[str, Mapping] = {}
    for mapping in parse_maps(proc.maps(pid) or ""):
        mappings.setdefault(mapping.file.path, mapping)
    return mappings
