"""Waits for locks: `purebpf lock`, and as a library:

    from purebpf.tools.lock import Locks, LockOptions

    with Locks(LockOptions(by="caller", duration_s=5)) as locks:
        while not locks.wait():
            for wait in locks.drain():           # with slower_ms: a purebpf.tools.lock.event.Wait
                print(wait.type, wait.took_ns, wait.owner)
        locks.stop()
        for row in locks.rows:                   # a LockRow for each caller
            print(row.type, row.name, row.waits, row.total_ns)

`UserLocks` measures locks of user space in the same way; its rows are `UserRow`s, its waits
`UserWait`s. With interval_s, `drain()` also gives an Interval (`purebpf.results.model.intervals`)
for each.

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.lock.event import LockRow, Wait
    from purebpf.tools.lock.request import LockOptions
    from purebpf.tools.lock.session import Locks
    from purebpf.tools.lock.user_event import UserRow, UserWait
    from purebpf.tools.lock.user_session import UserLocks

__all__ = ["LockOptions", "LockRow", "Locks", "UserLocks", "UserRow", "UserWait", "Wait"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Locks": "purebpf.tools.lock.session.Locks",
            "LockOptions": "purebpf.tools.lock.request.LockOptions",
            "LockRow": "purebpf.tools.lock.event.LockRow",
            "UserLocks": "purebpf.tools.lock.user_session.UserLocks",
            "UserRow": "purebpf.tools.lock.user_event.UserRow",
            "UserWait": "purebpf.tools.lock.user_event.UserWait",
            "Wait": "purebpf.tools.lock.event.Wait",
        },
    )
