"""Pinning, unpinning, looking: the part that touches the machine."""

from __future__ import annotations

from typing import NamedTuple

from purebpf.kernel import pinned_filter
from purebpf.kernel.filter_preflight import Preflight, preflight
from purebpf.kernel.pinned_filter import BPFFS, Slot
from purebpf.setup.options import Options

__all__ = ["Done", "Status", "pin", "status", "unpin"]


class Done(NamedTuple):
    """What became of one user: his folder, and his slots (0: he had none to take away)."""

    user: str
    folder: str
    slots: int


class Status(NamedTuple):
    """What this process can do, and the slots it can see, each with its user's name."""

    user: str
    preflight: Preflight
    slots: tuple[tuple[str, Slot], ...]


def pin(options: Options) -> list[Done]:
    """Give each user his slots.

    Raises:
        KernelError, VerifierError: as `purebpf.kernel.pinned_filter.pin`. The users before the
            one that failed have theirs.
    """
    bpffs = options.bpffs or BPFFS
    done = []
    for uid in options.users:
        folder = pinned_filter.pin(uid, options.slots, bpffs)
        done.append(Done(_name(uid), folder, len(pinned_filter.slots(uid, bpffs))))
    return done


def unpin(options: Options) -> list[Done]:
    """Take each user's slots away.

    Raises:
        KernelError: as `purebpf.kernel.pinned_filter.unpin`.
    """
    bpffs = options.bpffs or BPFFS
    done = []
    for uid in options.users or pinned_filter.users(bpffs):
        count = len(pinned_filter.slots(uid, bpffs))
        pinned_filter.unpin(uid, bpffs)
        done.append(Done(_name(uid), pinned_filter.folder_of(uid, bpffs), count))
    return done


def status(options: Options) -> Status:
    """What there is. Users see their own slots, root sees all.

    Raises:
        KernelError: EACCES, slots of another user were asked for.
    """
    bpffs = options.bpffs or BPFFS
    found = preflight(bpffs)
    users = options.users or _visible(found.uid, bpffs)
    slots = [(_name(uid), slot) for uid in users for slot in pinned_filter.slots(uid, bpffs)]
    return Status(_name(found.uid), found, tuple(slots))


def _visible(uid: int, bpffs: str) -> tuple[int, ...]:
    try:
        return pinned_filter.users(bpffs)
    except OSError:
        pass
    try:
        return (uid,) if pinned_filter.slots(uid, bpffs) else ()
    except OSError:  # what is in the way is in the preflight
        return ()


def _name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
