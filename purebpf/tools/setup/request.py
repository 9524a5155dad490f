"""The slots to pin, and their users."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["DEFAULT_SLOTS", "SetupOptions"]

DEFAULT_SLOTS = 4


class SetupOptions(NamedTuple):
    """The action and its users.

    Attributes:
        action: "pin", "unpin" or "status".
        users: for whom; () is everybody who has slots.
        slots: how many each user is to have.
        bpffs: where; "" is /sys/fs/bpf.
    """

    action: str
    users: tuple[int, ...] = ()
    slots: int = DEFAULT_SLOTS
    bpffs: str = ""
