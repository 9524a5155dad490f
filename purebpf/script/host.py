"""`Host`: the facts about a machine that a script asks for, and `NoHost`, which knows none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from purebpf.btf.types.parse import Btf
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.dataflow.types import Type
    from purebpf.script.point import Danger
    from purebpf.symbols.usdt_arguments import Argument, UnknownArgument

__all__ = ["CodePlace", "Datum", "Host", "NoHost", "Parameters", "ProgramTypes", "StaticProbe"]


Parameters: TypeAlias = "Sequence[tuple[str, Type | None]]"
"""The names and the types of a function's parameters; the type None is void."""


class Datum(NamedTuple):
    """A variable of a program: the bytes from a function's start to it, and its size in bytes."""

    distance: int
    size: int


class CodePlace(NamedTuple):
    """An address of a program: the function, the bytes from its start, and the file offset."""

    function: str
    distance: int
    offset: int


class StaticProbe(NamedTuple):
    """A place of a static probe (USDT); a name may have many.

    Attributes:
        offset: of its code in the file.
        semaphore: file offset of the counter of its tracers, 0 without one.
    """

    provider: str
    name: str
    arguments: tuple[Argument | UnknownArgument, ...]
    offset: int
    semaphore: int


class ProgramTypes(Protocol):
    """The types of the source file of a function.

    Attributes:
        why_no_parameters: the reason why registers may not have the parameters there, or "".
    """

    why_no_parameters: str

    def parameters(self) -> Parameters:
        """Return the names and the types of the function's parameters."""

    def named(self, tag: str, name: str) -> Type | None:
        """Return a type by its tag in DWARF and its name."""


class Host(Protocol):
    """A machine. Compiling needs nothing else of it.

    Attributes:
        cpus: the number of configured CPUs; 0: not known.
        pid: the process whose files `user_files` and others mean, 0 for none.
    """

    cpus: int
    machine: str
    pid: int

    @property
    def pid_namespace(self) -> tuple[int, int]:
        """The device and the inode of our PID namespace; (0, 0) for the first one."""

    def btf(self) -> Btf | None:
        """Return the types of its kernel."""

    def tracepoints(self) -> Sequence[str]:
        """List its tracepoints as `category:event`."""

    def tracepoint_format(self, category: str, event: str) -> str:
        """Return the text of a format file, "" if there is no such tracepoint."""

    def knows_functions(self) -> bool:
        """Return True if a list tells which kernel functions can be traced."""

    def kernel_functions(self) -> Sequence[str]:
        """List the kernel functions that can be traced."""

    def functions_of_modules(self, pattern: str) -> Sequence[str] | None:
        """List the functions of modules, "vmlinux" for the kernel itself; None: no such module."""

    def kernel_symbol(self, name: str) -> int | None:
        """Return the address of a kernel symbol."""

    def kernel_aliases(self, name: str) -> Sequence[str]:
        """Return all names of the code that has a name in the kernel; nothing if there is none."""

    def user_functions(self, path: str) -> Sequence[str]:
        """List the functions of a program or library."""

    def user_files(self, pattern: str) -> Sequence[str]:
        """List the files that a path or a pattern means; "" and `*` mean files of the process."""

    def seen_file(self, path: str) -> str:
        """Return a path that leads to the file as the process sees it."""

    def missing_function(self, path: str, function: str) -> str:
        """Return the reason why a program does not have a function, "" if it may have it."""

    def code_at(self, path: str, address: int) -> CodePlace | None:
        """Find the function of a program that has an address, as the program is linked."""

    def variable(self, path: str, function: str, name: str) -> Datum | None:
        """Find a variable of a program by its distance from a function (or file offset)."""

    def line_address(self, path: str, source: str, line: int, column: int) -> int | None:
        """Return the address of a source line of a program; None if no code of it is known."""

    def program_types(self, path: str, function: str) -> ProgramTypes | None:
        """Return the types of a function's source file; None if the program does not have them."""

    def probe_danger(self, path: str, function: str) -> Danger | None:
        """Return the harm that a probe at `FUNCTION+OFFSET` may do; None: none is known."""

    def static_probes(self, path: str) -> Sequence[StaticProbe]:
        """List the static probes of a program or library."""

    def cgroup_id(self, path: str) -> int | None:
        """Return the number of a cgroup by its folder."""

    def constant(self, name: str) -> int | None:
        """Return the value of a constant of user space such as AF_INET."""


class NoHost:
    """A machine without kernel types and attach points, for scripts that need none."""

    cpus = 0
    machine = "x86_64"
    pid = 0
    pid_namespace = (0, 0)

    def btf(self) -> Btf | None:
        """Return None."""
        return None

    def tracepoints(self) -> Sequence[str]:
        """Return nothing."""
        return ()

    def tracepoint_format(self, category: str, event: str) -> str:
        """Return "": no tracepoint is known."""
        del category, event
        return ""

    def knows_functions(self) -> bool:
        """Return False."""
        return False

    def kernel_functions(self) -> Sequence[str]:
        """Return nothing."""
        return ()

    def functions_of_modules(self, pattern: str) -> Sequence[str] | None:
        """Return nothing: no function is known."""
        del pattern
        return ()

    def kernel_symbol(self, name: str) -> int | None:
        """Return None: no symbol is known."""
        del name
        return None

    def kernel_aliases(self, name: str) -> Sequence[str]:
        """Return nothing."""
        del name
        return ()

    def user_functions(self, path: str) -> Sequence[str]:
        """Return nothing."""
        del path
        return ()

    def user_files(self, pattern: str) -> Sequence[str]:
        """Return the pattern."""
        return (pattern,)

    def seen_file(self, path: str) -> str:
        """Return the path."""
        return path

    def missing_function(self, path: str, function: str) -> str:
        """Return "": every function may be there."""
        del path, function
        return ""

    def code_at(self, path: str, address: int) -> CodePlace | None:
        """Return the address, which may be the start of a function."""
        del path
        return CodePlace("", 0, address)

    def variable(self, path: str, function: str, name: str) -> Datum | None:
        """Return None: no variable is known."""
        del path, function, name
        return None

    def line_address(self, path: str, source: str, line: int, column: int) -> int | None:
        """Return None: no lines are known."""
        del path, source, line, column
        return None

    def program_types(self, path: str, function: str) -> ProgramTypes | None:
        """Return None: no types are known."""
        del path, function
        return None

    def probe_danger(self, path: str, function: str) -> Danger | None:
        """Return None: no function is known."""
        del path, function
        return None

    def static_probes(self, path: str) -> Sequence[StaticProbe]:
        """Return nothing."""
        del path
        return ()

    def cgroup_id(self, path: str) -> int | None:
        """Return None: no cgroup is known."""
        del path
        return None

    def constant(self, name: str) -> int | None:
        """Return None."""
        del name
        return None
