"""Waits for locks, from where threads wait: their frames name the lock, futexes do not. Pure."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from purebpf.results import Profile
from purebpf.results.model.profile import Stack
from purebpf.results.model.stack_end import CUT
from purebpf.symbols.frame import Frame, is_unnamed_function
from purebpf.symbols.short_names import merge_clones, shorten

__all__ = ["Lock", "find_locks", "is_parked"]

_KERNEL_LOCKS = re.compile(
    r"_*(mutex_lock|rt_mutex_\w*lock|rwsem_down_|down(_read|_write)?$|percpu_rwsem_wait|ww_mutex_lock"
    r"|locks_lock_inode_wait|flock_lock_inode_wait|posix_lock_inode_wait)"
)
_FUTEXES = re.compile(r"_*(do_)?futex_|_*rt_mutex_wait_proxy_lock")
_NOT_A_LOCK = re.compile(
    r"cond_|condvar|condition|sem_(timed)?wait|sem_clockwait|barrier|park|notesleep|notetsleep"
    r"|event_wait|thread_join|clockjoin|poll|sleep",
    re.IGNORECASE,
)
"""Futexes on which threads wait for work or time, in the names of glibc, Rust, Go, Java."""
_PLUMBING = re.compile(r"_*(GI___)?(futex_|syscall|clone|start_thread)")
"""What glibc calls for all of them."""
_LOCKING = re.compile(
    r"_*(lll_|pthread_(mutex|rwlock|spin)_|GI___lll_|GI___pthread_|futex_|syscall|clone|start_thread)"
    r"|std::|(Raw)?(Mutex|RwLock)|runtime\.(futex|lock|sema)|sync\.",
)


class Lock(NamedTuple):
    """What a process waited for, in a lock that `where` takes: seconds, over all threads.

    `what` is "futex", or the function of the kernel that waits.
    """

    process: str
    pid: int
    what: str
    where: str
    seconds: float
    times: int


def find_locks(profile: Profile) -> list[Lock]:
    """The waits for locks of an off-CPU profile, the longest first."""
    weights: Counter[tuple[str, int, str, str]] = Counter()
    times: Counter[tuple[str, int, str, str]] = Counter()
    for row in profile.rows():
        what = _lock(row.kernel, row.user)
        if what:
            labels = row.labels
            key = labels.process_name, labels.pid, what, _caller(row.user, row.kernel, what)
            weights[key] += row.weight
            times[key] += row.marks.times
    return [Lock(*key, weight / 1e9, times[key]) for key, weight in weights.most_common()]


def _names(stack: Stack | None) -> list[str]:
    """Of the frames that have names; not the marks where a stack was cut."""
    return [
        merge_clones(entry.name)
        for entry in stack or ()
        if isinstance(entry, Frame) and entry.kind != CUT and not is_unnamed_function(entry)
    ]


def _lock(kernel: Stack | None, user: Stack | None) -> str:
    """What kind of lock is waited for; "" for something else."""
    names = _names(kernel)
    for name in names:
        if _KERNEL_LOCKS.match(name):
            return name
    above = _names(user)
    if not any(map(_FUTEXES.match, names)) or any(map(_NOT_A_LOCK.search, above)):
        return ""
    return "" if all(map(_PLUMBING.match, above)) else "futex"


def is_parked(kernel: Stack | None, user: Stack | None, *, whole_run: bool) -> bool:
    """Whether a futex is where a thread waits for work: its frames say so, or it does nothing else.

    `whole_run`: the thread waited there for most of the run.
    """
    if _lock(kernel, user) or not any(map(_FUTEXES.match, _names(kernel))):
        return False
    return whole_run or any(map(_NOT_A_LOCK.search, _names(user)))


def _caller(user: Stack | None, kernel: Stack | None, what: str) -> str:
    """The function that takes the lock."""
    if what == "futex":
        above = [shorten(name) for name in _names(user)]
        return next((name for name in above if not _LOCKING.match(name)), above[-1])
    names = _names(kernel)
    return next(
        (name for name in names[names.index(what) + 1 :] if not _KERNEL_LOCKS.match(name)), "?"
    )
