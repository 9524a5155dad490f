"""The meaning of names in a sample filter on this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from purebpf.errors import FormatError, PurebpfError
from purebpf.filter.lowering import SymbolRange
from purebpf.loader.host.debug_files import image_of
from purebpf.observe.processes import synthesized_records
from purebpf.observe.symbols.mapped_files import open_mapped
from purebpf.similar import suggest
from purebpf.symbols.budget import Budget, OverBudgetError
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_names import function_ranges as ranges_in_file
from purebpf.symbols.elf_names import functions_named
from purebpf.symbols.kallsyms import function_ranges as ranges_in_kernel
from purebpf.symbols.proc_maps import MappedFile, Mapping, parse_maps
from purebpf.syscall import proc
from purebpf.syscall.descriptor import Descriptor

__all__ = ["MachineNames"]

_ALIKE = 2
"""Letters that a misspelt name of a function has right: the first, so that few are compared."""

_T = TypeVar("_T")


class MachineNames:
    """Users and groups of this machine, its cgroup v2 hierarchy, functions that can be seen now.

    A function is looked up in the kernel and in the files that the processes `pids` have mapped at
    that
    moment: code that they map later is not found. Every method raises LookupError, with
    a sentence as its argument, for an unknown name.

    Args:
        pids: processes to search for functions.
        budget: the budget of reading their files; without enough, a function is unknown.
    """

    def __init__(self, pids: Sequence[int] = (), budget: Budget | None = None) -> None:
        self._pids = tuple(pids)
        self._budget = Budget() if budget is None else budget

    def user(self, name: str) -> int:
        """A user's number."""
        import pwd

        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            raise LookupError(f"unknown user {name!r}") from None

    def group(self, name: str) -> int:
        """A group's number."""
        import grp

        try:
            return grp.getgrnam(name).gr_gid
        except KeyError:
            raise LookupError(f"unknown group {name!r}") from None

    def cgroup(self, path: str) -> tuple[int, int]:
        """The id of a cgroup, and its level below the root of the hierarchy.

        `path` is the directory's, or begins at the root of the hierarchy, as in /proc/PID/cgroup.
        """
        roots = [mount_point for mount_point, kind in proc.mounts() if kind == "cgroup2"]
        if not roots:
            raise LookupError("no cgroup2 file system is mounted")
        for root in roots:
            inside = path == root or path.startswith(f"{root}/")
            folder = os.path.normpath(path if inside else f"{root}/{path}")
            if os.path.isfile(f"{folder}/cgroup.procs") and f"{folder}/".startswith(f"{root}/"):
                level = 0 if folder == root else os.path.relpath(folder, root).count("/") + 1
                return os.stat(folder).st_ino, level + _hidden_levels()
        raise LookupError(f"unknown cgroup {path} in {roots[0]}")

    def symbol(self, name: str) -> tuple[SymbolRange, ...]:
        """Return the places of a function, in the kernel and in each process."""
        kallsyms = synthesized_records.kallsyms()
        in_kernel = (
            SymbolRange(0, start, end - 1) for start, end in ranges_in_kernel(kallsyms, name)
        )
        ranges = (*in_kernel, *self._in_processes(name))
        if ranges:
            return ranges
        if _is_hidden(kallsyms, name):
            raise LookupError(
                f"the address of {name!r} is hidden: {proc.KALLSYMS} shows zeros without "
                "CAP_SYSLOG, and to all processes when kernel.kptr_restrict is 2"
            )
        looked = [proc.KALLSYMS, *(f"process {pid}" for pid in self._pids)]
        hint = "" if self._pids else "; purebpf searches only the running programs that -p names"
        raise LookupError(
            f"unknown function {name!r} in {', '.join(looked)}{self._nearest(kallsyms, name)}{hint}"
        )

    def _in_processes(self, name: str) -> Iterator[SymbolRange]:
        known: dict[MappedFile, set[tuple[int, int]]] = {}  # offset and size
        for pid, mapping in self._mappings():
            if mapping.file not in known:
                symbol_ranges = self._ask(pid, mapping, lambda image: ranges_in_file(image, name))
                known[mapping.file] = {(int(offset), size) for offset, size in symbol_ranges or ()}
            for offset, size in known[mapping.file]:
                start = mapping.start + offset - mapping.offset
                if mapping.start <= start < mapping.end:
                    yield SymbolRange(pid, start, start + size - 1)

    def _ask(self, pid: int, mapping: Mapping, question: Callable[[ElfImage], _T]) -> _T | None:
        """Return the answer of a mapped file; None when it is not an ELF file, or gone."""
        path = mapping.file.path
        try:
            with (
                self._budget.on_behalf(run=0, process=pid, file=path),
                Descriptor(open_mapped(mapping, (pid,))) as opened,
            ):
                return question(image_of(opened.fileno(), path, self._budget.spend))
        except (OSError, FormatError):
            return None
        except OverBudgetError as error:
            why = f"cannot read the functions of process {pid}: {error}"
            raise LookupError(why) from None

    def _mappings(self) -> Iterator[tuple[int, Mapping]]:
        """Yield each process, and its mapped files."""
        for pid in self._pids:
            try:
                text = proc.maps(pid) or ""
            except PurebpfError as error:
                raise LookupError(f"cannot read the functions of process {pid}: {error}") from None
            for mapping in parse_maps(text):
                if not (mapping.file.is_anonymous or mapping.file.is_special):
                    yield pid, mapping

    def _nearest(self, kallsyms: bytes, name: str) -> str:
        """A hint with functions of similar names."""
        begin = name[:_ALIKE]
        pattern = rb"^[0-9a-f]+ [tTwW] (%b\S*)" % re.escape(begin.encode())
        known = {
            symbol_name.decode() for symbol_name in re.findall(pattern, kallsyms, re.MULTILINE)
        }
        files = {mapping.file: (pid, mapping) for pid, mapping in self._mappings()}
        alike = partial(functions_named, wanted=lambda name: name.startswith(begin))
        for pid, mapping in files.values():
            with suppress(LookupError):  # it is only a hint
                known.update(self._ask(pid, mapping, alike) or ())
        hint = suggest(name, known)
        return f"; {hint}" if hint else ""


def _is_hidden(kallsyms: bytes, name: str) -> bool:
    """Return True if the kernel has the function, and does not show its place."""
    pattern = rb"^0+ [tTwW] %b(?:\t|$)" % re.escape(name.encode())
    return re.search(pattern, kallsyms, re.MULTILINE) is not None


def _hidden_levels() -> int:
    """Return the levels of the hierarchy above the part that this process sees; only the first
    namespace sees all.
    """
    if proc.in_first_namespace("cgroup"):
        return 0
    raise LookupError("this process is in a cgroup namespace, where cgroup levels are unknown")
