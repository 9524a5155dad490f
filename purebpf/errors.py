"""Every exception of purebpf, in one tree.

    PurebpfError
    ├── FormatError (ValueError)          malformed bytes; has their place
    ├── LinkError (ValueError)            an object that refers to something it does not define
    ├── CoreRelocationError (ValueError)  a CO-RE relocation with no single answer
    ├── SchemaError (TypeError)           a value or record class that does not fit its BTF type
    ├── CompileError                      C that the compiler refused; has its words
    ├── NotSupportedError                 not possible with this kernel or purebpf; says why
    └── KernelError (OSError)             a system call that failed: call, errno, why, fix
        ├── VerifierError                 BPF_PROG_LOAD refused the program; has the whole log
        └── AttachError                   a program that loaded but could not be attached

A missing map key is a plain `KeyError`. Any exception that a docstring does not list is a bug.

The text of an error is one paragraph: the failure / its reason on this host / the remedy.
"""

from __future__ import annotations

import errno as _errno
from typing import Any

__all__ = [
    "ENOTSUPP",
    "AttachError",
    "CompileError",
    "CoreRelocationError",
    "FormatError",
    "KernelError",
    "LinkError",
    "NotSupportedError",
    "PurebpfError",
    "SchemaError",
    "VerifierError",
    "errno_name",
]

ENOTSUPP = 524
"""The kernel's internal "operation not supported"; it leaks from bpf(2) and has no name in libc."""
_KERNEL_NAMES = {
    _errno.EDEADLK: "EDEADLK",
    _errno.EOPNOTSUPP: "EOPNOTSUPP",
    ENOTSUPP: "ENOTSUPP",
}
"""Numbers that Python knows by the name that libc has besides, or not at all."""


def errno_name(number: int) -> str:
    """The symbolic name of an errno value: `errno_name(1) == "EPERM"`."""
    return _KERNEL_NAMES.get(number) or _errno.errorcode.get(number, f"errno {number}")


class PurebpfError(Exception):
    """The root of the tree. Errors can be pickled and copied."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args), self.__dict__


def _rebuilt(made: type[PurebpfError], args: tuple[Any, ...]) -> PurebpfError:
    """An error with these `args`, without its class's own `__init__`, which made them."""
    error = made.__new__(made)
    super(PurebpfError, error).__init__(*args)
    return error


class FormatError(PurebpfError, ValueError):
    """Bytes that break their format.

    Attributes:
        source: the file, or a word for the bytes when they came from memory.
        where: the place: a section, an offset, a type id, a symbol.
        problem: the fault there.
    """

    def __init__(self, source: str, where: str, problem: str) -> None:
        self.source = source
        self.where = where
        self.problem = problem
        super().__init__(f"{source}: {where}: {problem}")


class LinkError(PurebpfError, ValueError):
    """An object that refers to a map, function or variable it does not define.

    Attributes:
        source: the object.
        symbol: the name that could not be satisfied.
    """

    def __init__(self, source: str, symbol: str, problem: str) -> None:
        self.source = source
        self.symbol = symbol
        super().__init__(f"{source}: {symbol}: {problem}")


class CoreRelocationError(PurebpfError, ValueError):
    """A CO-RE relocation that cannot be answered: several candidates that disagree, or a bad spec.

    A field or type that is merely missing is not an error: the instruction is poisoned, since the
    code that uses it may never run.
    """


class SchemaError(PurebpfError, TypeError):
    """A Python value that its BTF type cannot hold, or a class that does not match its record."""


class CompileError(PurebpfError):
    """C that the compiler refused.

    Attributes:
        source: the file, or `"program.bpf.c"` for a text.
        log: the output of the compiler, with the lines of C; each message once for a line.
    """

    def __init__(self, source: str, log: str) -> None:
        self.source = source
        self.log = log
        super().__init__(f"{source} does not compile:\n{log.rstrip()}")


class NotSupportedError(PurebpfError):
    """Something that this kernel (or purebpf, so far) cannot do.

    Attributes:
        feature: the missing feature.
        reason: the value that was read or the call that was refused.
    """

    def __init__(self, feature: str, reason: str) -> None:
        self.feature = feature
        self.reason = reason
        super().__init__(f"{feature}: {reason}")


class KernelError(PurebpfError, OSError):
    """A system call that failed.

    Attributes:
        call: the call as the manual names it: `"bpf(BPF_MAP_CREATE)"`.
        errno: the error number.
        why: the reason on this host, with the value that was read; may be empty.
        fix: one command or change that would help; may be empty.
    """

    def __init__(
        self, call: str, errno: int, what: str = "", *, why: str = "", fix: str = ""
    ) -> None:
        self.call = call
        self.what = what
        self.why = why
        self.fix = fix
        head = f"{what}: " if what else ""
        text = f"{head}{call} failed with {errno_name(errno)}"
        text = ". ".join(part.rstrip(".") for part in (text, why, fix) if part)
        OSError.__init__(self, errno, text)

    def __str__(self) -> str:
        return str(self.strerror)


class VerifierError(KernelError):
    """BPF_PROG_LOAD refused a program.

    Attributes:
        program: the program's name.
        log: the verifier's whole log.
        line: the log line that decided.
        source: the C source line behind it, `file:line: text`, or "".
        poisoned: the relocation behind a poisoned instruction, in words, or "".
    """

    def __init__(
        self,
        program: str,
        errno: int,
        *,
        log: str = "",
        line: str = "",
        source: str = "",
        poisoned: str = "",
        why: str = "",
        fix: str = "",
    ) -> None:
        self.program = program
        self.log = log
        self.line = line
        self.source = source
        self.poisoned = poisoned
        parts = [", at ".join(part for part in (line, source) if part), poisoned, why]
        super().__init__(
            "bpf(BPF_PROG_LOAD)",
            errno,
            f"program {program!r}",
            why=". ".join(part for part in parts if part),
            fix=fix,
        )


class AttachError(KernelError):
    """A program that was loaded but could not be attached to its target."""
