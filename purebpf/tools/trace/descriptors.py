"""The open files of processes' descriptors: learned from their calls, else read from /proc."""

from __future__ import annotations

import os
from collections.abc import Callable

from purebpf.measure.event_text import join_path

__all__ = ["AT_FDCWD", "Descriptors", "numbers_as_we_do"]

AT_FDCWD = -100

_OPENS = {"open": 0, "creat": 0, "openat": 1, "openat2": 1}
"""Calls that open a path, and which argument that is."""
_COPIES = ("dup", "dup2", "dup3")
_FORKS = ("fork", "vfork", "clone", "clone3")
_F_DUPFD, _F_DUPFD_CLOEXEC = 0, 1030
_CLONE_THREAD = 0x10000
_LONGEST = 4096
"""Bytes of a path: the kernel shows none that is longer (PATH_MAX), and chdir(2) can go deeper."""
_ROOM = 64 << 20
_ENTRY = 128
"""Bytes that an entry takes, beside its path."""


def numbers_as_we_do(pid: int) -> bool:
    """Return True if a process counts processes as this one does: it is in the same PID namespace.

    fork(2) gives the child's number in the namespace of the caller, who may have created a
    namespace with any numbers.
    """
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino == os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return False


class Descriptors:
    """Paths by process and descriptor; AT_FDCWD is the current directory.

    purebpf prints a call some time after it happened: by then, the number may have another meaning
    in /proc. So purebpf follows the descriptors that a process opens, copies and closes, and asks
    /proc only for older ones.

    Args:
        follows: all calls are traced; else only /proc is read.
        room: bytes of all paths; with more, all is forgotten, and /proc asked.
        numbers_as_we_do: whether the numbers that fork(2) gives to a process are ours.
    """

    def __init__(
        self,
        *,
        follows: bool,
        room: int = _ROOM,
        numbers_as_we_do: Callable[[int], bool] = numbers_as_we_do,
    ) -> None:
        self._follows = follows
        self._room = self._left = room
        self._numbers_as_we_do = numbers_as_we_do
        self._paths: dict[int, dict[int, str]] = {}
        self._has_our_numbers: dict[int, bool] = {}

    def path(self, pid: int, descriptor: int) -> str | None:
        """The path, `socket:[7]` or the like, as os.fsdecode() has bytes; None: not known."""
        known_path = self._paths.get(pid, {}).get(descriptor)
        if known_path is not None:
            return known_path
        name = "cwd" if descriptor == AT_FDCWD else f"fd/{descriptor}"
        try:
            path = os.readlink(f"/proc/{pid}/{name}")
        except OSError:
            return None
        if self._follows:
            self._put(pid, descriptor, path)
        return path

    def learn(
        self, pid: int, name: str, words: tuple[int, ...], result: int, text: str | None
    ) -> None:
        """Learn from a call that succeeded; `text` is its path."""
        if not self._follows or result < 0:
            return
        paths = self._paths.get(pid, {})
        first = _as_int(words[0])
        if name in _OPENS or name == "chdir":
            self._open(pid, AT_FDCWD if name == "chdir" else result, name, first, text)
        elif name == "close":
            self._drop(pid, first)
        elif name == "close_range":
            for descriptor in [number for number in paths if words[0] <= number <= words[1]]:
                self._drop(pid, descriptor)
        elif name == "fchdir":
            self._put(pid, AT_FDCWD, self.path(pid, first))
        elif name in _COPIES or (name == "fcntl" and words[1] in (_F_DUPFD, _F_DUPFD_CLOEXEC)):
            self._put(pid, result, self.path(pid, first))
        elif name in _FORKS and result:
            is_thread = name == "clone" and words[0] & _CLONE_THREAD
            if not is_thread and self._gives_our_numbers(pid):
                self._fork(pid, result)

    def _open(self, pid: int, target: int, name: str, directory: int, text: str | None) -> None:
        if text is None or text.startswith("/"):
            self._put(pid, target, text and os.path.normpath(text))
            return
        base = self.path(pid, directory if _OPENS.get(name) else AT_FDCWD)
        self._put(pid, target, base and os.path.normpath(join_path(base, text)))

    def _fork(self, parent: int, child: int) -> None:
        self.forget(child)
        for descriptor, path in tuple(self._paths.get(parent, {}).items()):
            self._put(child, descriptor, path)

    def _put(self, pid: int, descriptor: int, path: str | None) -> None:
        """Keep a path in the place of the one before; None or one that is too long: none."""
        self._drop(pid, descriptor)
        if not path or len(path) > _LONGEST:
            return
        self._left -= len(path) + _ENTRY
        if self._left < 0:
            self._paths.clear()
            self._left = self._room - len(path) - _ENTRY
        if pid not in self._has_our_numbers:  # as early as that can be seen
            self._gives_our_numbers(pid)
        self._paths.setdefault(pid, {})[descriptor] = path

    def _drop(self, pid: int, descriptor: int) -> None:
        path = self._paths.get(pid, {}).pop(descriptor, None)
        if path is not None:
            self._left += len(path) + _ENTRY

    def _gives_our_numbers(self, pid: int) -> bool:
        if pid not in self._has_our_numbers:
            if len(self._has_our_numbers) * _ENTRY > self._room:  # ends of processes were lost
                self._has_our_numbers.clear()
            self._has_our_numbers[pid] = self._numbers_as_we_do(pid)
        return self._has_our_numbers[pid]

    def forget(self, pid: int) -> None:
        """The process has ended."""
        self._has_our_numbers.pop(pid, None)
        for path in self._paths.pop(pid, {}).values():
            self._left += len(path) + _ENTRY


def _as_int(word: int) -> int:
    value = word & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
