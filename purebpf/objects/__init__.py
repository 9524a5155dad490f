"""The BPF objects that purebpf ships, built by `make bpf` from `bpf_src/`; `LOCK` has the sources.

`NAME.spec` is packed from each `NAME.bpf.o`: the spec that `purebpf.read_object` returns for the
object. Commands start from it (docs/design/0002-start.md), and only specs are in the wheel; the
objects are in the repository, for `make bpf-check`. `purebpf inspect` shows both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.package_data import read_data

if TYPE_CHECKING:
    from purebpf.spec import ObjectSpec

__all__ = ["read", "spec"]


_specs: dict[str, ObjectSpec] = {}
"""Those that were unpacked in this process: they are never changed."""


def spec(name: str) -> ObjectSpec:
    """Return the spec of a shipped object, without reading the object: `spec("profile")`.

    It equals the result of `purebpf.read_object`, except for the name and the source, which bytes
    do not have.

    Raises:
        FileNotFoundError: for a name that is not shipped.
    """
    from purebpf.objects.packed import unpack

    if name not in _specs:
        _specs[name] = unpack(read(f"{name}.spec"), f"{name}.spec")
    return _specs[name]


def read(name: str) -> bytes:
    """Return the bytes of a shipped file: `read("profile.spec")`.

    Raises:
        FileNotFoundError: there is no such file. Wheels carry the specs only.
    """
    return read_data(globals(), name)
