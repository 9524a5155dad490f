"""The BPF objects that purebpf ships, built by `make bpf` from `bpf_src/`; `LOCK` says of what.

Beside each `NAME.bpf.o` is `NAME.spec`, packed from it: what `purebpf.read_object` makes of the
object, for commands that start from it (docs/design/0002-start.md). `purebpf inspect` shows both.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from purebpf.spec import ObjectSpec

__all__ = ["read", "spec"]


_specs: dict[str, ObjectSpec] = {}
"""Those that were unpacked in this process: they are never changed."""


class _Reader(Protocol):
    def get_data(self, path: str) -> bytes: ...


def spec(name: str) -> ObjectSpec:
    """What a shipped object says, without reading it: `spec("profile")`.

    Equal to what `purebpf.read_object` makes of its bytes, but for the name and the source, which
    bytes do not have.

    Raises:
        FileNotFoundError: for a name that is not shipped.
    """
    from purebpf.objects.packed import unpack

    if name not in _specs:
        _specs[name] = unpack(read(f"{name}.spec"), f"{name}.spec")
    return _specs[name]


def read(name: str) -> bytes:
    """The bytes of a shipped file: `read("profile.bpf.o")`.

    Asks the module's own loader, as importlib.resources does, so that it works inside a zip too;
    importlib.resources itself would add 15 ms to the start of every command.

    Raises:
        FileNotFoundError: for a name that is not shipped.
    """
    loader = cast("_Reader", globals()["__loader__"])
    return loader.get_data(os.path.join(os.path.dirname(__file__), name))
