"""The message of a command without the required privileges."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from purebpf.errors import KernelError, errno_name

__all__ = ["RECORD_INSTEAD", "RefusedError", "needing"]

RECORD_INSTEAD = "purebpf record --call-graph copy -p PID 5; purebpf report"
"""The way to stacks of the user's own processes that needs no privilege."""

_OF_TASKS = ("perf_event_open", "read(/proc/")
"""Calls that are refused with EACCES for the tasks and events that they ask about."""


class RefusedError(KernelError):
    """An EPERM or EACCES of a command, whose message begins with the command to type."""

    def __str__(self) -> str:
        """`run it as root: sudo ... Why: ... (map 'counts': ... failed with EPERM)`."""
        what = f"{self.what}: " if self.what else ""
        failed = f"({what}{self.call} failed with {errno_name(self.errno or 0)})"
        if not self.fix:
            return f"{self.why} {failed}"
        return f"{self.fix}  -- {self.why} {failed}"


@contextmanager
def needing(*capabilities: str, without_root: str = "") -> Iterator[None]:
    """A context that adds to EPERM errors which of `capabilities` this process lacks.

    The call that is refused first often needs less than the later ones. A process that has all
    privileges is refused for another reason, which the error or a fact of this host gives. An
    EACCES may be about another user's process or event, for which the error may have its own
    advice; an EACCES about an output file is unchanged.

    Args:
        capabilities: the capabilities that the command needs.
        without_root: a command that does nearly as much for the user's own processes.
    """
    try:
        yield
    except KernelError as error:
        if error.errno == errno.EACCES and error.call.startswith(_OF_TASKS):
            raise _no_access(error, capabilities) from None
        if error.errno != errno.EPERM:
            raise
        from purebpf.loader.host import privilege  # only when something was refused

        if error.why and privilege.has(privilege.read_host(), *capabilities):
            raise
        told = privilege.explain_eperm(error, error.what, *capabilities)
        fix = told.fix
        if fix and without_root:
            fix = f"{fix}, or, for your own processes, without root: {without_root}"
        raise RefusedError(told.call, errno.EPERM, told.what, why=told.why, fix=fix) from None


def _no_access(error: KernelError, capabilities: tuple[str, ...]) -> KernelError:
    why, fix = error.why, error.fix
    if not fix:
        from purebpf.loader.host import privilege

        why, fix = privilege.advise_or(*capabilities, otherwise=error.why)
    if not fix:
        return error
    return RefusedError(error.call, errno.EACCES, error.what, why=why, fix=fix)
