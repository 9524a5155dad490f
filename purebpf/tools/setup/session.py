"""The live part: pins, unpins and shows filters."""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.errors import KernelError
from purebpf.observe.filters import pinned_setup, pinned_slots
from purebpf.observe.filters.filter_preflight import Preflight, preflight
from purebpf.observe.filters.pinned_slots import BPFFS, Slot
from purebpf.tools.setup.request import SetupOptions
from purebpf.tuples import NamedTuple

__all__ = ["Done", "Status", "pin", "status", "unpin"]


class Done(NamedTuple):
    """The outcome for one user.

    Attributes:
        user: the name.
        folder: where the slots are, or were.
        slots: how many; of unpinning 0: there were none to take away.
        problem: the obstacle, "" when it was successful.
    """

    user: str
    folder: str
    slots: int
    problem: str = ""


class Status(NamedTuple):
    """The abilities of this process, and the slots it can see, each with its user's name.

    Attributes:
        user: who asks.
        preflight: the abilities of this process.
        slots: each with its user's name.
        problems: things that could not be looked at.
        bpffs: where.
    """

    user: str
    preflight: Preflight
    slots: tuple[tuple[str, Slot], ...]
    problems: tuple[str, ...] = ()
    bpffs: str = BPFFS

    @property
    def is_whole(self) -> bool:
        """True if everything could be looked at, and no slot needs repair."""
        return not self.problems and not any(slot.faults for _, slot in self.slots)


def pin(options: SetupOptions) -> list[Done]:
    """Give each user slots.

    Raises:
        KernelError, VerifierError: as `pinned_setup.pin`. The users before the
            one that failed have theirs.
    """
    bpffs = options.bpffs or BPFFS
    done = []
    for uid in options.users:
        folder = pinned_setup.pin(uid, options.slots, bpffs)
        done.append(Done(_name(uid), folder, len(pinned_slots.slots(uid, bpffs))))
    return done


def unpin(options: SetupOptions) -> list[Done]:
    """Remove each user's slots; a failure for one does not stop the others.

    Raises:
        KernelError: as `purebpf.observe.filters.pinned_slots.users`.
    """
    bpffs = options.bpffs or BPFFS
    done = []
    for uid in options.users or pinned_slots.users(bpffs):
        folder, count, problem = pinned_slots.folder_of(uid, bpffs), 0, ""
        try:
            count = pinned_setup.unpin(uid, bpffs)
        except KernelError as error:
            problem = str(error)
        done.append(Done(_name(uid), folder, count, problem))
    return done


def status(options: SetupOptions) -> Status:
    """The state of the slots. Users see their own, root sees all.

    Raises:
        OSError: no descriptors left.
    """
    bpffs = options.bpffs or BPFFS
    own = preflight(bpffs)
    slots: list[tuple[str, Slot]] = []
    problems: list[str] = []
    for uid in options.users or _visible(own, bpffs, problems):
        try:
            slots += ((_name(uid), slot) for slot in pinned_slots.slots(uid, bpffs))
        except KernelError as error:
            if own.loads or uid != own.uid:  # else it is in the preflight
                problems.append(str(error))
    return Status(_name(own.uid), own, tuple(slots), tuple(problems), bpffs)


def _visible(own: Preflight, bpffs: str, problems: list[str]) -> Sequence[int]:
    """The users with slots that this process can see."""
    try:
        return pinned_slots.users(bpffs)
    except KernelError as error:
        if own.loads:
            problems.append(str(error))
            return ()
    return (own.uid,)


def _name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
