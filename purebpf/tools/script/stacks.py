"""Links the walk of whole user stacks into the object of a script."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from purebpf.loader.load.load import load

if TYPE_CHECKING:
    from purebpf.observe.script.walked_stacks import WalkedStacks
    from purebpf.spec import ObjectSpec

__all__ = ["link_stacks"]


def link_stacks(spec: ObjectSpec, pids: Collection[int] = ()) -> WalkedStacks:
    """Link the walk into an object, load it, and get ready for the stacks of processes.

    Args:
        spec: the object of a script with `ustack`.
        pids: the processes that matter; empty: all.

    Raises:
        VerifierError, KernelError, NotSupportedError: the kernel refuses.
    """
    from purebpf.measure.stacks.linked_stacks import LinkedStacks

    return LinkedStacks.load(spec, load, pids=pids)
