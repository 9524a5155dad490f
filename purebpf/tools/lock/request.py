"""The waits for locks to measure, for a command line or a program."""

from __future__ import annotations

from purebpf.measure.options import RunOptions, TargetOptions

__all__ = ["GROUPINGS", "TYPES", "USER_TYPES", "LockOptions", "slower_ns", "type_bits", "type_name"]

GROUPINGS = ("caller", "lock", "process", "thread", "owner", "cgroup", "stack")
"""enum grouping of bpf_src/lock.bpf.c; "stack" is there what "caller" is."""

TYPES = {
    "semaphore": 0,
    "spinlock": 1,
    "rwsem:R": 2,
    "rwsem:W": 4,
    "rwlock:R": 3,
    "rwlock:W": 5,
    "rt-mutex": 8,
    "rwlock-rt:R": 10,
    "rwlock-rt:W": 12,
    "pcpu-sem:R": 18,
    "pcpu-sem:W": 20,
    "mutex": 32,
}
"""What the kernel says of a lock, LCB_F_* of include/trace/events/lock.h, in perf's words."""

USER_TYPES = {
    "mutex": True,
    "rwlock": True,
    "GIL": True,
    "python lock": True,
    "monitor": True,
    "java lock": True,
    "semaphore": True,
    "once": True,
    "futex": True,
    "condition": False,
    "barrier": False,
    "join": False,
    "idle": False,
}
"""What threads wait for in futex(2), and whether that is shown unless `types` says otherwise: by
some a thread waits for work, or for the end of another, which is not contention."""

_NAMES = {flags: name for name, flags in TYPES.items()}


class LockOptions(TargetOptions, RunOptions):
    """The target, and which of its waits. Empty tuples and None mean: no restriction.

    `by` is one of GROUPINGS, with room for so many `rows`; `types` are names of TYPES, without
    their `:R` and `:W` both. Waits of `slower_ms` or more are separate events; None: no wait is.
    `userspace`: locks of user space, not the kernel's; `types` are then of USER_TYPES. `stacks`:
    rows and events have the stack of the wait, of the kernel or, with `userspace`, of user space,
    and the available data about the thread that it waited for.
    `interval_s`: the rows of each such time are events as well; None: not.
    `sort` is one of `purebpf.tools.lock.selection.SORT_KEYS`. `locks`: only locks with one of these
    addresses, or names that contain one of these; needs `by` "lock". `functions`: only waits with
    one of these in the name of a function of the kernel stack; needs `by` "caller" or "stack".
    `duration_s` None: until a signal, or until `command` or all of `pids` end. `tree`: children of
    `pids` also count.
    """

    by: str = "caller"
    rows: int = 4096
    types: tuple[str, ...] = ()
    slower_ms: float | None = None
    stacks: bool = False
    userspace: bool = False
    interval_s: float | None = None
    sort: str = "wait_total"
    locks: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


def type_name(flags: int) -> str:
    """The name of a type of lock."""
    return _NAMES.get(flags, f"flags {flags:#x}")


def type_bits(types: tuple[str, ...]) -> int:
    """A bit for each value of flags that names of types stand for; all of them for none."""
    if not types:
        return (1 << 64) - 1
    return sum(
        1 << flags
        for name, flags in TYPES.items()
        if name in types or name.partition(":")[0] in types
    )


def slower_ns(slower_ms: float | None) -> int:
    """The shortest wait that is a separate event."""
    return (1 << 64) - 1 if slower_ms is None else round(slower_ms * 1e6)
