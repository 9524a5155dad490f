"""The origin of recorded addresses: how far files of this machine may name them."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["Recorded"]


class Recorded(NamedTuple):
    """A recording that another machine, or this one under another kernel, may have made.

    Attributes:
        is_here: the recording states this machine's host name, kernel release and architecture.
            Otherwise only an equal build id proves that a file here is the one that was mapped.
        vdso: build id (hex) of the vDSO that its processes had; "" if that is not known.
    """

    is_here: bool
    vdso: str
