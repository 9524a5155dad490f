"""The BPF token of the calls in this context (Linux 6.9, commit 35f96de04127).

A token grants rights that a bpf file system was mounted with, for processes of its user
namespace. BPF_MAP_CREATE, BPF_PROG_LOAD and BPF_BTF_LOAD take its descriptor.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from purebpf.abi.bpf import BPF_F_TOKEN_FD

__all__ = ["current", "fields", "using"]

current: ContextVar[int] = ContextVar("token", default=-1)
"""The token's descriptor; -1 for none."""


@contextmanager
def using(token_fd: int) -> Iterator[None]:
    """Make the calls inside the block with a token; -1 is for none."""
    before = current.set(token_fd)
    try:
        yield
    finally:
        current.reset(before)


def fields(kind: str, flags: int) -> dict[str, int]:
    """Return the fields that a call of that kind ("map", "prog", "btf") adds; `flags` are its own.

    For a call with a token only.
    """
    token = current.get()
    return {f"{kind}_token_fd": token, f"{kind}_flags": flags | BPF_F_TOKEN_FD}
