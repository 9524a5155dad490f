"""`LocalHost`: the facts about this machine that compiling a script needs."""

from __future__ import annotations

import errno
import fnmatch
import os
import signal
import stat
from collections.abc import Mapping, Sequence
from functools import cached_property

from purebpf.btf.types.parse import Btf
from purebpf.errors import AttachError, KernelError, NotSupportedError, PurebpfError
from purebpf.observe.script.cgroups import cgroup_id
from purebpf.script.host import CodePlace, Datum, ProgramTypes, StaticProbe
from purebpf.script.point import Danger
from purebpf.symbols.kallsyms import addresses
from purebpf.syscall import proc, tracefs

__all__ = ["LocalHost"]

_NOWHERE = "/proc/self/root/nowhere"
"""Stands for a file that a process does not have."""


class LocalHost:
    """This machine.

    Args:
        pid: the process whose files are meant, 0 for none.
        traceable_functions: a file with the kernel functions that can be traced, in the place of
            tracefs's; "" for that one.
    """

    def __init__(self, pid: int = 0, traceable_functions: str = "") -> None:
        self.pid = pid
        self._traceable_functions = traceable_functions
        self.cpus = os.sysconf("SC_NPROCESSORS_CONF")
        self.machine = os.uname().machine

    def btf(self) -> Btf | None:
        """Return the types of the kernel; None if it has none that can be read."""
        from purebpf.loader.types.kernel_btf import kernel_btf

        try:
            return kernel_btf()
        except (PurebpfError, OSError):
            return None

    @cached_property
    def pid_namespace(self) -> tuple[int, int]:
        """The device and the inode of our PID namespace; (0, 0) for the first one."""
        if proc.in_first_namespace("pid"):
            return (0, 0)
        status = os.stat("/proc/self/ns/pid")
        return os.major(status.st_dev) << 20 | os.minor(status.st_dev), status.st_ino

    @cached_property
    def _tracepoints(self) -> Sequence[str]:
        try:
            return tracefs.tracepoint_names()
        except (KernelError, NotSupportedError):
            return ()

    def tracepoints(self) -> Sequence[str]:
        """List the tracepoints as `category:event`."""
        return self._tracepoints

    def tracepoint_format(self, category: str, event: str) -> str:
        """Return the text of a format file, "" if there is no such tracepoint.

        Raises:
            KernelError: tracefs cannot be read.
            NotSupportedError: the kernel has no tracefs.
        """
        if {"/", "\0"} & {*category, *event} or category.startswith(".") or event.startswith("."):
            return ""
        try:
            return tracefs.tracepoint_format(category, event)
        except KernelError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return ""
            raise

    @cached_property
    def _traceable(self) -> Mapping[str, set[str]]:
        """The functions that can be traced, by module; nothing if the kernel does not tell."""
        from purebpf.loader.attach.kprobe_multi import traceable_by_module

        try:
            return traceable_by_module(self._traceable_functions)
        except (KernelError, NotSupportedError):
            return {}

    def knows_functions(self) -> bool:
        """Return True if a list tells which kernel functions can be traced."""
        return bool(self._traceable)

    def kernel_functions(self) -> Sequence[str]:
        """List the kernel functions that can be traced; nothing if the kernel does not tell."""
        return sorted(set[str]().union(*self._traceable.values()))

    def functions_of_modules(self, pattern: str) -> Sequence[str] | None:
        """List the functions of modules, "vmlinux" for the kernel itself; None: no such module."""
        loaded = [line.split()[0].decode() for line in proc.modules().splitlines()]
        found = fnmatch.filter(["vmlinux", *loaded], pattern)
        if not found:
            return None
        return sorted(
            set[str]().union(*(self._traceable[name] for name in found if name in self._traceable))
        )

    def kernel_symbol(self, name: str) -> int | None:
        """Return the address of a kernel symbol."""
        return _kernel_address(proc.kallsyms(), name)

    def kernel_aliases(self, name: str) -> Sequence[str]:
        """Return all names of the code that has a name: `__x64_sys_getppid`, `__ia32_sys_getppid`.

        The kernel lists one of them as a function that can be traced.
        """
        symbols = proc.kallsyms()
        address = _kernel_address(symbols, name)
        if address is None:
            return ()
        start = f"{address:016x} ".encode()
        lines = (line for line in symbols.splitlines() if line.startswith(start))
        return [line.split()[2].decode(errors="replace") for line in lines]

    def user_functions(self, path: str) -> Sequence[str]:
        """List the functions of a program or library; nothing if it cannot be read."""
        from purebpf.observe.script import user_files

        return user_files.list_functions(self.seen_file(path))

    def user_files(self, pattern: str) -> Sequence[str]:
        """List the files that a path or a pattern means; "" and `*` mean files of the process."""
        from purebpf.observe.script import user_files

        if pattern in ("", "*"):
            return user_files.mapped_files(self.pid) if self.pid else ()
        return user_files.matching_files(pattern, self.pid)

    def seen_file(self, path: str) -> str:
        """Return a path that leads to the file as the process sees it."""
        if not self.pid:
            return path
        from purebpf.loader.attach._common.probe_place import in_process

        try:
            return in_process(path, self.pid)
        except AttachError:  # `missing_function` explains it
            return _NOWHERE

    def missing_function(self, path: str, function: str) -> str:
        """Return the reason why a program does not have a function, "" if it may have it."""
        from purebpf.loader.attach._common.probe_place import in_process
        from purebpf.observe.script import user_files

        try:
            seen = in_process(path, self.pid) if self.pid else path
        except AttachError as error:
            return str(error.why)
        return user_files.explain_missing(seen, function)

    def code_at(self, path: str, address: int) -> CodePlace | None:
        """Find the function of a program that has an address, as the program is linked."""
        from purebpf.observe.script import user_files

        return user_files.find_code(self.seen_file(path), address)

    def variable(self, path: str, function: str, name: str) -> Datum | None:
        """Find a variable of a program by its distance from a function (or file offset)."""
        from purebpf.observe.script import user_files

        return user_files.find_variable(self.seen_file(path), function, name)

    def line_address(self, path: str, source: str, line: int, column: int) -> int | None:
        """Return the address of a source line of a program; None if no code of it is known."""
        from purebpf.observe.script.program_types import find_line

        return find_line(self.seen_file(path), source, line, column)

    @cached_property
    def _program_types(self) -> dict[tuple[str, str], ProgramTypes | None]:
        return {}

    def program_types(self, path: str, function: str) -> ProgramTypes | None:
        """Return the types of a function's source file; None if the program does not have them."""
        from purebpf.observe.script.program_types import read_types

        place = path, function
        if place not in self._program_types:
            self._program_types[place] = read_types(self.seen_file(path), function)
        return self._program_types[place]

    def probe_danger(self, path: str, function: str) -> Danger | None:
        """Return the harm that a probe at `FUNCTION+OFFSET` may do; None: none is known."""
        from purebpf.observe.script.probe_bounds import explain_bounds

        return explain_bounds(f"{self.seen_file(path)}:{function}")

    def static_probes(self, path: str) -> Sequence[StaticProbe]:
        """List the static probes of a program or library; nothing if it cannot be read."""
        from purebpf.observe.script import user_files

        return user_files.list_static_probes(self.seen_file(path))

    def cgroup_id(self, path: str) -> int | None:
        """Return the number of a cgroup by its folder."""
        return cgroup_id(path)

    def constant(self, name: str) -> int | None:
        """Return the value of a constant of user space such as AF_INET."""
        import socket

        for module in (socket, errno, signal, stat, os):
            value = getattr(module, name, None)
            if isinstance(value, int) and name.isupper():
                return int(value)
        return None


def _kernel_address(symbols: bytes, name: str) -> int | None:
    """Find a symbol in the text of /proc/kallsyms; None: it has none, or addresses are hidden."""
    return min(addresses(symbols, [name])[name] - {0}, default=None)
