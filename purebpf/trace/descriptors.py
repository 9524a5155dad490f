"""What the descriptors of processes are open on: learned from their calls, else read from /proc."""

from __future__ import annotations

import os

from purebpf.measure.event_text import join_path

__all__ = ["AT_FDCWD", "Descriptors"]

AT_FDCWD = -100

_OPENS = {"open": 0, "creat": 0, "openat": 1, "openat2": 1}
"""Calls that open a path, and which argument that is."""
_COPIES = ("dup", "dup2", "dup3")
_FORKS = ("fork", "vfork", "clone", "clone3")
_F_DUPFD, _F_DUPFD_CLOEXEC = 0, 1030


class Descriptors:
    """Paths by process and descriptor; AT_FDCWD is the current directory.

    A call is shown some time after it was made: /proc may say what a number means by then. So what
    a process opens, copies and closes is followed, and /proc asked only for what is older.

    Args:
        follows: all calls are traced; else only /proc is asked.
    """

    def __init__(self, *, follows: bool) -> None:
        self._follows = follows
        self._paths: dict[int, dict[int, str]] = {}

    def path(self, pid: int, descriptor: int) -> str | None:
        """The path, `socket:[7]` or the like; None: not known."""
        paths = self._paths.setdefault(pid, {}) if self._follows else {}
        if descriptor not in paths:
            name = "cwd" if descriptor == AT_FDCWD else f"fd/{descriptor}"
            try:
                paths[descriptor] = os.readlink(f"/proc/{pid}/{name}")
            except OSError:
                return None
        return paths[descriptor]

    def learn(
        self, pid: int, name: str, words: tuple[int, ...], result: int, text: str | None
    ) -> None:
        """Take note of a call that succeeded; `text` is the path that it was given."""
        if not self._follows or result < 0:
            return
        paths = self._paths.setdefault(pid, {})
        first = _as_int(words[0])
        if name in _OPENS or name == "chdir":
            self._open(pid, AT_FDCWD if name == "chdir" else result, name, first, text)
        elif name == "close":
            paths.pop(first, None)
        elif name == "close_range":
            for descriptor in [number for number in paths if words[0] <= number <= words[1]]:
                del paths[descriptor]
        elif name == "fchdir":
            self._copy(pid, first, AT_FDCWD)
        elif name in _COPIES or (name == "fcntl" and words[1] in (_F_DUPFD, _F_DUPFD_CLOEXEC)):
            self._copy(pid, first, result)
        elif name in _FORKS and result:
            self._paths[result] = dict(paths)

    def _open(self, pid: int, target: int, name: str, directory: int, text: str | None) -> None:
        paths = self._paths[pid]
        if text is None:
            paths.pop(target, None)
        elif text.startswith("/"):
            paths[target] = os.path.normpath(text)
        else:
            at = directory if _OPENS.get(name) else AT_FDCWD
            base = self.path(pid, at)
            if base is None:
                paths.pop(target, None)
            else:
                paths[target] = os.path.normpath(join_path(base, text))

    def _copy(self, pid: int, source: int, target: int) -> None:
        path = self.path(pid, source)
        if path is None:
            self._paths[pid].pop(target, None)
        else:
            self._paths[pid][target] = path

    def forget(self, pid: int) -> None:
        """The process has ended."""
        self._paths.pop(pid, None)


def _as_int(word: int) -> int:
    value = word & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
