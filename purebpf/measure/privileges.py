"""What a command says when it may not do what it does."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from purebpf.errors import KernelError

__all__ = ["needing"]


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

        raise privilege.explain_eperm(error, error.what, *capabilities) from None
