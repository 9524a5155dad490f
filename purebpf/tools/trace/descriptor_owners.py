"""The tasks that share a table of descriptors, or a current directory.

The threads of a process usually share both. A thread that calls unshare(2) has its own from then
on, and clone(2) may share either with another process.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from purebpf.syscall import kcmp, proc

__all__ = ["Owner", "Owners", "shares_with_process"]


class Owner(NamedTuple):
    """A task's process, and the keys of its table of descriptors and of its current directory."""

    pid: int
    files: int
    directory: int


def shares_with_process(tid: int, pid: int) -> tuple[bool, bool]:
    """Return whether a thread has the descriptors, and the current directory, of its process.

    A thread that has ended is taken for one with its own: its calls say nothing about the others.
    Where the kernel cannot compare tasks, a thread is taken for one that has both, as most do.
    """
    other = proc.with_memory(pid)  # the first thread may have ended
    files, directory = kcmp.share_files(tid, other), kcmp.share_directory(tid, other)
    if files is None and kcmp.share_files(os.getpid(), os.getpid()) is None:
        return True, True
    return bool(files), bool(directory)


class Owners:
    """The owner of each task. A key is a process's number, or a negative one that nobody had.

    Args:
        most: tasks that are remembered; with more, all are looked at anew.
        shares: as `shares_with_process`.
    """

    def __init__(
        self, most: int, shares: Callable[[int, int], tuple[bool, bool]] = shares_with_process
    ) -> None:
        self._most, self._shares = most, shares
        self._owners: dict[int, Owner] = {}
        self._users: Counter[int] = Counter()
        self._last_key = 0

    def __contains__(self, tid: int) -> bool:
        """Return True if a task is known."""
        return tid in self._owners

    def of(self, pid: int, tid: int) -> Owner:
        """Return the owner of a thread; one that was there before is compared with its process."""
        if tid not in self._owners:
            files, directory = (True, True) if tid == pid else self._shares(tid, pid)
            self._set(
                tid,
                Owner(
                    pid,
                    pid if files else self._new_key(),
                    pid if directory else self._new_key(),
                ),
            )
        return self._owners[tid]

    def begin(self, tid: int, owner: Owner) -> None:
        """Note a task that was created."""
        self.end(tid)
        self._set(tid, owner)

    def part(self, pid: int, tid: int, *, files: bool = False, directory: bool = False) -> Owner:
        """Give a thread keys of its own, as unshare(2) does; return them."""
        owner = self.of(pid, tid)
        return self._set(
            tid,
            owner._replace(
                files=self._new_key() if files else owner.files,
                directory=self._new_key() if directory else owner.directory,
            ),
        )

    def execute(self, pid: int) -> tuple[set[int], set[int]]:
        """End all threads of a process but one, whose table is no other process's.

        Returns:
            The keys that its threads had, of descriptors and of directories. The process itself is
            the key from now on, unless other processes have it.
        """
        mates = [tid for tid, owner in self._owners.items() if owner.pid == pid]
        files = {self._owners[tid].files for tid in mates} or {pid}
        directories = {self._owners[tid].directory for tid in mates} or {pid}
        for tid in mates:
            self.end(tid)
        others = self._owners.values()
        is_shared = any(pid in {owner.files, owner.directory} for owner in others)
        key = self._new_key() if is_shared else pid
        self._set(pid, Owner(pid, key, key))
        return files, directories

    def end(self, tid: int) -> set[int]:
        """Forget a task; return the keys that nobody has any more."""
        owner = self._owners.pop(tid, None)
        ended = {tid}  # of a process
        if owner is not None:
            ended |= self._release(owner)
        return ended

    def _set(self, tid: int, owner: Owner) -> Owner:
        if tid not in self._owners and len(self._owners) >= self._most:  # ends of tasks were lost
            self._owners.clear()
            self._users.clear()
        before = self._owners.pop(tid, None)
        self._users.update((owner.files, owner.directory))
        if before is not None:
            self._release(before)
        self._owners[tid] = owner
        return owner

    def _release(self, owner: Owner) -> set[int]:
        self._users.subtract((owner.files, owner.directory))
        ended = {key for key in owner[1:] if not self._users[key]}
        for key in ended:
            del self._users[key]
        return {key for key in ended if key < 0}

    def _new_key(self) -> int:
        self._last_key -= 1
        return self._last_key
