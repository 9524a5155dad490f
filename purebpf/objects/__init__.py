"""The BPF objects that purebpf ships, built by `make bpf` from `bpf_src/`; `LOCK` says of what."""

from __future__ import annotations

import os
from typing import Protocol, cast

__all__ = ["read"]


class _Reader(Protocol):
    def get_data(self, path: str) -> bytes: ...


def read(name: str) -> bytes:
    """The bytes of a shipped file: `read("profile.bpf.o")`.

    Asks the module's own loader, as importlib.resources does, so that it works inside a zip too;
    importlib.resources itself would add 15 ms to the start of every command.

    Raises:
        FileNotFoundError: for a name that is not shipped.
    """
    loader = cast("_Reader", globals()["__loader__"])
    return loader.get_data(os.path.join(os.path.dirname(__file__), name))
