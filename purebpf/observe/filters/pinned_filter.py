"""A filter in a program that root has pinned for this user (`pinned_slots` has the layout).

Each slot is a separate program with separate maps, so nothing has to be looked up for a sample, and
events that children inherit run their parent's program by themselves.
"""

from __future__ import annotations

import errno
import os
import struct
import time
from collections.abc import Sequence
from contextlib import ExitStack

from purebpf.closable import Closing
from purebpf.errors import KernelError, NotSupportedError
from purebpf.filter.decision_table import listing, pack_table, table
from purebpf.filter.lowering import Term
from purebpf.loader.programs.link import EventDescriptor
from purebpf.loader.programs.program import Program
from purebpf.observe.filters.pinned_slots import (
    BPFFS,
    BROKEN,
    FIRST,
    LEASE,
    find_faults,
    folder_of,
    lock,
    numbers,
    open_file,
    open_program,
    open_user,
    pin_command,
)
from purebpf.syscall import bpf, perf_event, proc
from purebpf.syscall.folder import Folder
from purebpf.syscall.map_element import Element, Elements

__all__ = ["PinnedFilter"]

_INDEX = struct.Struct("=I")
_FEATURE = "a pinned filter program"
_ATTEMPTS = 3
_PAUSE_S = 0.005


class PinnedFilter(Closing):
    """A slot of this user's, with a filter in its table, until it is closed.

    Args:
        terms: the filter.
        uid: the user with the slots.
        bpffs: where root pinned them.

    Attributes:
        number: the slot.

    Raises:
        NotSupportedError: no slots, all of them taken, or a filter that is too big for one.
        KernelError: the slots are there and may not be opened: EPERM, EACCES.
    """

    def __init__(self, terms: Sequence[Term], uid: int, bpffs: str = BPFFS) -> None:
        self._entries = table(terms)
        self._terms = len(terms)
        with ExitStack() as stack:
            self.number, slot = _claim(uid, bpffs, stack)
            self._program = stack.enter_context(open_program(slot))
            self._counts = Elements(open_file(slot, "counts"))
            stack.callback(self._counts.close)
            owner = LEASE.pack(proc.start_ticks(os.getpid()) or 0, os.getpid(), len(terms))
            for name, value in (("lease", owner), ("table", pack_table(self._entries))):
                with open_file(slot, name) as opened:
                    bpf.map_update_elem(opened.fileno(), FIRST, value)
            self._before = self._read()
            self._owned = stack.pop_all()

    @property
    def program(self) -> Program:
        """The program."""
        return self._program

    def attach(self, event: EventDescriptor) -> None:
        """Filter the samples of `event` and of those inherited from it, until they are closed.

        Raises:
            AttachError: EEXIST, the event runs a program already; EINVAL, it takes none.
        """
        try:
            perf_event.set_bpf(event.fileno(), self._program.fileno())
        except KernelError as error:
            from purebpf.loader.attach.perf_event import explain_refusal

            raise explain_refusal(error, f"the pinned filter on perf event {event!r}") from None

    def listing(self) -> str:
        """The table, an entry a line."""
        return listing(self._entries)

    def counts(self) -> tuple[int, ...]:
        """Samples kept, and those that each term rejected first."""
        return self._since()[: self._terms + 1]

    def undecided(self) -> int:
        """Samples that were dropped without a verdict of this filter.

        Its table is the user's: another process of his that wrote to it makes it lead nowhere, or
        to the verdicts of another filter.
        """
        return sum(self._since()[self._terms + 1 :])

    def _since(self) -> tuple[int, ...]:
        now = self._read()
        return tuple(after - before for after, before in zip(now, self._before, strict=True))

    def _read(self) -> tuple[int, ...]:
        """Every counter, of all CPUs; terms beyond those that have one share the last but one."""
        element = self._counts.take()
        try:
            return tuple(_total(element, counter) for counter in range(BROKEN + 1))
        finally:
            self._counts.give(element)

    def close(self) -> None:
        """Give the slot back. Twice is harmless."""
        self._owned.close()


def _total(element: Element, counter: int) -> int:
    element.key[:] = _INDEX.pack(counter)
    if error := -element.lookup():
        description = f"counter {counter} of a pinned filter"
        raise KernelError("bpf(BPF_MAP_LOOKUP_ELEM)", error, description)
    return sum(memoryview(element.value).cast("Q"))


def _claim(uid: int, bpffs: str, stack: ExitStack) -> tuple[int, Folder]:
    """The first slot that is whole and free, kept until `stack` is closed."""
    path = folder_of(uid, bpffs)
    try:
        folder = open_user(uid, bpffs)
    except KernelError as error:
        if error.errno != errno.ENOENT:
            raise
        raise NotSupportedError(_FEATURE, _none_pinned(uid, bpffs)) from None
    with folder:
        faults = {number: find_faults(folder, uid, number) for number in numbers(folder)}
        whole = [number for number, why in faults.items() if not why]
        for attempt in range(_ATTEMPTS if whole else 0):
            if attempt:
                time.sleep(_PAUSE_S)  # `slots` takes a lock for a moment to see whether it can
            for number in whole:
                slot = _lock(folder, number, stack)
                if slot is not None:
                    return number, slot
    reasons = [] if faults else [_none_pinned(uid, bpffs)]
    if whole:
        more = pin_command(uid, 2 * len(whole), bpffs)
        reasons.append(f"all {len(whole)} in {path} are in use; pin more: {more}")
    broken = [number for number, why in faults.items() if why]
    if broken:
        why = "; ".join(faults[broken[0]])
        repair = pin_command(uid, len(faults), bpffs)
        reasons.append(f"slot {broken[0]} in {path} is not usable ({why}); repair it: {repair}")
    raise NotSupportedError(_FEATURE, "; ".join(reasons))


def _none_pinned(uid: int, bpffs: str) -> str:
    where = folder_of(uid, bpffs)
    return f"root has not pinned any in {where}; pin some: {pin_command(uid, 0, bpffs)}"


def _lock(folder: Folder, number: int, stack: ExitStack) -> Folder | None:
    """A slot, locked and open until `stack` is closed; None: another process has it."""
    with ExitStack() as unless_locked:
        slot = unless_locked.enter_context(folder.enter(str(number)))
        if not lock(slot, unless_locked):
            return None
        stack.push(unless_locked.pop_all())
        return slot
