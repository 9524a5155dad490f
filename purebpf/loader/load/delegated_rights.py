"""The rights that an administrator delegated to this process (a BPF token), while it loads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from purebpf.syscall import proc

__all__ = ["delegated_rights"]

_DELEGATED = "LIBBPF_BPF_TOKEN_PATH"


@contextmanager
def delegated_rights(token: str | os.PathLike[str] | int | None) -> Iterator[None]:
    """The rights of a token, inside the block; `token` is as of `load`.

    Raises:
        NotSupportedError, KernelError, OSError: as `purebpf.loader.load.token.open_token`.
    """
    if token is None:
        token = os.environ.get(_DELEGATED)
    if token == "" or (token is None and proc.in_first_user_namespace()):  # which has no tokens
        yield
        return
    from purebpf.loader.load.token import open_token, usual_token
    from purebpf.syscall.token import using

    with ExitStack() as stack:
        if not isinstance(token, int):
            opened = usual_token() if token is None else open_token(token)
            token = -1 if opened is None else stack.enter_context(opened).fileno()
        stack.enter_context(using(token))
        yield
