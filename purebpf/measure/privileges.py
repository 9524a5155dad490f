"""What a command says when it may not do what it does."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from purebpf.errors import KernelError

__all__ = ["RefusedError", "needing"]


class RefusedError(KernelError):
    """An EPERM of a command, which says what to type before it says what failed."""

    def __str__(self) -> str:
        """`run it as root: sudo ... Why: ... (map 'counts': ... failed with EPERM)`."""
        what = f"{self.what}: " if self.what else ""
        failed = f"({what}{self.call} failed with EPERM)"
        if not self.fix:
            return f"{self.why} {failed}"
        return f"{self.fix}  -- {self.why} {failed}"


@contextmanager
def needing(*capabilities: str) -> Iterator[None]:
    """A context that adds to EPERM errors which `capabilities` would have allowed it.

    The call that is refused first often needs less than those behind it.
    """
    try:
        yield
    except KernelError as error:
        if error.errno != errno.EPERM:
            raise
        from purebpf.kernel.host import privilege  # only when something was refused

        told = privilege.explain_eperm(error, error.what, *capabilities)
        raise RefusedError(told.call, errno.EPERM, told.what, why=told.why, fix=told.fix) from None
