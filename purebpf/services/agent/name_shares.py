"""The number of service names for each user: programs and cgroups choose their names. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable

__all__ = ["OTHER", "UNKNOWN_USER", "NameShares", "user_of_cgroup"]

OTHER = "other"
"""The service of what found no room."""
ROOT = 0
UNKNOWN_USER = -1
"""Of processes that are gone; together they have one share."""
_SLICE = re.compile(r"/user\.slice/user-(\d{1,10})\.slice(?:/|$)", re.MULTILINE)


class NameShares:
    """Gives out room for names, so that one user cannot use up the room of others.

    Args:
        most: of all users.
        most_of_user: of one, who is not root.
    """

    def __init__(self, most: int, most_of_user: int) -> None:
        self._most = most
        self._most_of_user = most_of_user
        self._names: set[Hashable] = set()
        self._of_user: Counter[int] = Counter()

    def admit(self, name: Hashable, user: int) -> bool:
        """Return True if a name has room, or had it before; it counts for its first user."""
        if name in self._names:
            return True
        if len(self._names) >= self._most:
            return False
        if user != ROOT and self._of_user[user] >= self._most_of_user:
            return False
        self._names.add(name)
        self._of_user[user] += 1
        return True


def user_of_cgroup(text: str) -> int | None:
    """The user that has the session of a cgroup, as systemd names them; None: it is not in one.

    Args:
        text: of /proc/PID/cgroup. A user makes cgroups below his own only, so the first one counts,
            and it counts more than the user of the process: rootless containers have 65,536.
    """
    match = _SLICE.search(text)
    return int(match[1]) if match else None
