"""What the names in a sample filter stand for on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from purebpf.errors import FormatError, PurebpfError
from purebpf.filter.condition import SymbolRange
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_names import function_ranges as ranges_in_file
from purebpf.symbols.kallsyms import function_ranges as ranges_in_kernel
from purebpf.symbols.maps import Mapping, parse_maps
from purebpf.syscall import proc

__all__ = ["MachineNames"]

_KALLSYMS = "/proc/kallsyms"
_FIRST_CGROUP_NAMESPACE = 0xEFFFFFFB  # PROC_CGROUP_INIT_INO


class MachineNames:
    """Users and groups of this machine, its cgroup v2 hierarchy, functions that can be seen now.

    A function is looked for in the kernel and in what the processes `pids` have mapped at that
    moment: code that they map later is not found. Every method raises LookupError, whose
    argument is a sentence, for a name that stands for nothing.
    """

    def __init__(self, pids: Sequence[int] = ()) -> None:
        self._pids = tuple(pids)

    def user(self, name: str) -> int:
        """A user's number."""
        import pwd

        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            raise LookupError(f"there is no user {name!r}") from None

    def group(self, name: str) -> int:
        """A group's number."""
        import grp

        try:
            return grp.getgrnam(name).gr_gid
        except KeyError:
            raise LookupError(f"there is no group {name!r}") from None

    def cgroup(self, path: str) -> tuple[int, int]:
        """The id of a cgroup, and its level below the root of the hierarchy.

        `path` is that of the directory, or begins at the root of the hierarchy, as in
        /proc/PID/cgroup.
        """
        roots = [place for place, kind in proc.mounts() if kind == "cgroup2"]
        if not roots:
            raise LookupError("no cgroup2 file system is mounted here")
        for root in roots:
            inside = path == root or path.startswith(f"{root}/")
            folder = os.path.normpath(path if inside else f"{root}/{path}")
            if os.path.isfile(f"{folder}/cgroup.procs") and f"{folder}/".startswith(f"{root}/"):
                level = 0 if folder == root else os.path.relpath(folder, root).count("/") + 1
                return os.stat(folder).st_ino, level + _hidden_levels()
        raise LookupError(f"there is no cgroup {path} in {roots[0]}")

    def symbol(self, name: str) -> tuple[SymbolRange, ...]:
        """Where a function is, in the kernel and in each process."""
        found = (*self._in_kernel(name), *self._in_processes(name))
        if found:
            return found
        looked = [_KALLSYMS, *(f"process {pid}" for pid in self._pids)]
        hint = "" if self._pids else "; programs are searched when they run and are chosen by -p"
        raise LookupError(f"there is no function {name!r} in {', '.join(looked)}{hint}")

    def _in_kernel(self, name: str) -> Iterator[SymbolRange]:
        try:
            with open(_KALLSYMS, "rb") as file:
                ranges = ranges_in_kernel(file.read(), name)
        except OSError:  # none to be had: the process's own functions may do
            return
        for start, end in ranges:
            yield SymbolRange(0, start, end - 1)

    def _in_processes(self, name: str) -> Iterator[SymbolRange]:
        for pid in self._pids:
            try:
                text = proc.maps(pid) or ""
            except PurebpfError as error:
                raise LookupError(f"functions of process {pid} cannot be seen: {error}") from None
            for mapping in parse_maps(text):
                for offset, size in _functions(pid, mapping, name):
                    start = mapping.start + offset - mapping.offset
                    if mapping.start <= start < mapping.end:
                        yield SymbolRange(pid, start, start + size - 1)


def _functions(pid: int, mapping: Mapping, name: str) -> set[tuple[int, int]]:
    """The functions of a name in a mapped file: offset and size; empty when it is no ELF file."""
    if mapping.file.is_anonymous or mapping.file.is_special:
        return set()
    path = f"/proc/{pid}/root{mapping.file.path}"
    try:
        with open(path, "rb") as file:
            fd = file.fileno()
            size = os.fstat(fd).st_size
            image = ElfImage(lambda at, count: os.pread(fd, count, at), size, path)
            return {(int(offset), length) for offset, length in ranges_in_file(image, name)}
    except (OSError, FormatError):
        return set()


def _hidden_levels() -> int:
    """Levels of the hierarchy above what this process sees; only the first namespace sees all."""
    if os.stat("/proc/self/ns/cgroup").st_ino == _FIRST_CGROUP_NAMESPACE:
        return 0
    raise LookupError("this process is in a cgroup namespace, and cannot tell a cgroup's level")
