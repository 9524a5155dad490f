"""The open files of processes' descriptors: learned from their calls, else read from /proc."""

from __future__ import annotations

import os
from collections.abc import Callable

from purebpf.measure.event_text import join_path
from purebpf.syscall import proc
from purebpf.tools.trace.descriptor_owners import Owner, Owners, shares_with_process

__all__ = ["AT_FDCWD", "Descriptors", "numbers_as_we_do"]

AT_FDCWD = -100

_OPENS = {"open": 0, "creat": 0, "openat": 1, "openat2": 1}
"""Calls that open a path, and which argument that is."""
_COPIES = ("dup", "dup2", "dup3")
_FORKS = ("fork", "vfork", "clone", "clone3")
_F_DUPFD, _F_DUPFD_CLOEXEC = 0, 1030
_CLONE_FS, _CLONE_FILES, _CLONE_THREAD = 0x200, 0x400, 0x10000
_OWN_DIRECTORY = _CLONE_FS | 0x20000 | 0x10000000
"""Flags of unshare(2) that give a thread a current directory of its own: also those of a namespace
of mounts and of users.
"""
_CLOEXEC = os.O_CLOEXEC
_F_SETFD, _FD_CLOEXEC = 2, 1
_RANGE_UNSHARE, _RANGE_CLOEXEC = 2, 4
_FIONCLEX, _FIOCLEX = 0x5450, 0x5451
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
    """Paths by table of descriptors; AT_FDCWD is the current directory.

    purebpf prints a call some time after it happened: by then, the number may have another meaning
    in /proc. So purebpf follows the descriptors that tasks open, copies and closes, and asks /proc
    only for older ones.

    Args:
        follows: all calls of the processes are traced; else only /proc is read.
        room: bytes of all paths; with more, all is forgotten, and /proc asked.
        numbers_as_we_do: whether the numbers that fork(2) gives to a process are ours.
        shares: as `shares_with_process`.
    """

    def __init__(
        self,
        *,
        follows: bool,
        room: int = _ROOM,
        numbers_as_we_do: Callable[[int], bool] = numbers_as_we_do,
        shares: Callable[[int, int], tuple[bool, bool]] = shares_with_process,
    ) -> None:
        self._follows = follows
        self._room = self._left = room
        self._numbers_as_we_do = numbers_as_we_do
        self._paths: dict[int, dict[int, str]] = {}
        self._closing: dict[int, set[int]] = {}
        self._owners = Owners(room // _ENTRY, shares)
        self._has_our_numbers: dict[int, bool] = {}

    def look_at(self, pid: int) -> None:
        """Look which threads of a process share its descriptors, before some of them end."""
        if self._follows:
            for tid in proc.threads(pid):
                self._owners.of(pid, tid)

    def path(self, task: tuple[int, int], descriptor: int) -> str | None:
        """The path, `socket:[7]` or the like, as os.fsdecode() has bytes; None: not known.

        Args:
            task: the process and the thread that have the descriptor.
            descriptor: its number, or AT_FDCWD.
        """
        key = self._key(task, descriptor) if self._follows else 0
        known_path = self._paths.get(key, {}).get(descriptor)
        if known_path is not None:
            return known_path
        name = "cwd" if descriptor == AT_FDCWD else f"fd/{descriptor}"
        try:
            path = os.readlink(f"/proc/{task[1]}/{name}")
        except OSError:
            return None
        if self._follows:  # whether execve(2) closes it, is not known
            self._put(key, descriptor, path, closes=True)
        return path

    def learn(  # noqa: PLR0917 - a call's
        self,
        task: tuple[int, int],
        name: str,
        words: tuple[int, ...],
        result: int,
        text: str | None,
        flags: int | None = None,
    ) -> None:
        """Learn from a call that succeeded.

        Args:
            task: the process and the thread.
            name: of the call.
            words: its arguments.
            result: what it returned.
            text: its path.
            flags: of clone3(2) and openat2(2), which are in memory; None: not known.
        """
        if not self._follows or result < 0:
            return
        first = _as_int(words[0])
        if name in _OPENS or name == "chdir":
            self._open(task, name, words, result, text, flags)
        elif name == "close":
            self._drop(self._key(task, first), first)
        elif name == "close_range":
            self._close_range(task, *words[:3])
        elif name == "fchdir":
            self._put(self._key(task, AT_FDCWD), AT_FDCWD, self.path(task, first))
        elif name == "setns":
            self._drop(self._key(task, AT_FDCWD), AT_FDCWD)
        elif name in _COPIES or (name == "fcntl" and words[1] in (_F_DUPFD, _F_DUPFD_CLOEXEC)):
            closes = words[1] == _F_DUPFD_CLOEXEC if name == "fcntl" else False
            closes |= name == "dup3" and bool(words[2] & _CLOEXEC)
            self._put(self._key(task, result), result, self.path(task, first), closes=closes)
        elif name == "fcntl" and words[1] == _F_SETFD:
            self._close_later(self._key(task, first), first, closes=bool(words[2] & _FD_CLOEXEC))
        elif name == "ioctl" and words[1] in (_FIONCLEX, _FIOCLEX):
            self._close_later(self._key(task, first), first, closes=words[1] == _FIOCLEX)
        elif name == "unshare":
            self._unshare(task, words[0])
        elif name in ("execve", "execveat"):
            self._execute(task[0])
        elif name in _FORKS and result and self._gives_our_numbers(task[0]):
            self._fork(task, result, words[0] if name == "clone" else flags or 0)

    def _open(  # noqa: PLR0917 - as `learn`
        self,
        task: tuple[int, int],
        name: str,
        words: tuple[int, ...],
        result: int,
        text: str | None,
        flags: int | None,
    ) -> None:
        target = AT_FDCWD if name == "chdir" else result
        key = self._key(task, target)
        if name in ("open", "openat"):
            flags = words[_OPENS[name] + 1]
        closes = name == "openat2" if flags is None else bool(flags & _CLOEXEC)
        if text is None or text.startswith("/"):
            self._put(key, target, text and os.path.normpath(text), closes=closes)
            return
        base = self.path(task, _as_int(words[0]) if _OPENS.get(name) else AT_FDCWD)
        path = base and os.path.normpath(join_path(base, text))
        self._put(key, target, path, closes=closes)

    def _close_range(self, task: tuple[int, int], first: int, last: int, flags: int) -> None:
        if flags & _RANGE_UNSHARE:
            self._unshare(task, _CLONE_FILES)
        key = self._key(task, 0)
        descriptors = tuple(self._paths.get(key, ()))
        for descriptor in [number for number in descriptors if first <= number <= last]:
            if flags & _RANGE_CLOEXEC:
                self._close_later(key, descriptor, closes=True)
            else:
                self._drop(key, descriptor)

    def _unshare(self, task: tuple[int, int], flags: int) -> None:
        before = self._owners.of(*task)
        owner = self._owners.part(
            *task, files=bool(flags & _CLONE_FILES), directory=bool(flags & _OWN_DIRECTORY)
        )
        self._copy(before, owner)

    def _fork(self, task: tuple[int, int], child: int, flags: int) -> None:
        """Give a child its parent's descriptors: the same ones, or copies.

        A child may have made calls before clone(2) returns in its parent, and after vfork(2) it
        has: it keeps the descriptors that it opened and closed.
        """
        parent = self._owners.of(*task)
        has_begun = child in self._owners
        if has_begun and not flags & (_CLONE_FILES | _CLONE_FS):
            return
        self.forget(child)
        is_thread = bool(flags & _CLONE_THREAD)
        owner = Owner(task[0] if is_thread else child, child, child)
        if flags & _CLONE_FILES:
            owner = owner._replace(files=parent.files)
        if flags & _CLONE_FS:
            owner = owner._replace(directory=parent.directory)
        self._owners.begin(child, owner)
        if not has_begun:
            self._copy(parent, owner)

    def _copy(self, before: Owner, after: Owner) -> None:
        """Copy the paths of tables that are new."""
        if after.files != before.files:
            closing = self._closing.get(before.files, ())
            for descriptor, path in tuple(self._paths.get(before.files, {}).items()):
                if descriptor != AT_FDCWD:
                    self._put(after.files, descriptor, path, closes=descriptor in closing)
        if after.directory != before.directory:
            directory = self._paths.get(before.directory, {}).get(AT_FDCWD)
            self._put(after.directory, AT_FDCWD, directory)

    def _execute(self, pid: int) -> None:
        """Close what execve(2) closes. It does not say which thread called it."""
        files, directories = self._owners.execute(pid)
        owner = self._owners.of(pid, pid)
        if len(files) > 1 or len(directories) > 1:
            self._forget_table(owner.files)
            return
        self._copy(Owner(pid, *files, *directories), owner)
        for descriptor in tuple(self._closing.get(owner.files, ())):
            self._drop(owner.files, descriptor)

    def _key(self, task: tuple[int, int], descriptor: int) -> int:
        owner = self._owners.of(*task)
        return owner.directory if descriptor == AT_FDCWD else owner.files

    def _put(self, key: int, descriptor: int, path: str | None, *, closes: bool = False) -> None:
        """Keep a path in the place of the one before; None or one that is too long: none.

        `closes`: whether execve(2) closes the descriptor.
        """
        self._drop(key, descriptor)
        if not path or len(path) > _LONGEST:
            return
        self._left -= len(path) + _ENTRY
        if self._left < 0:
            self._paths.clear()
            self._closing.clear()
            self._left = self._room - len(path) - _ENTRY
        if key > 0:  # as early as that can be seen
            self._gives_our_numbers(key)
        self._paths.setdefault(key, {})[descriptor] = path
        self._close_later(key, descriptor, closes=closes)

    def _close_later(self, key: int, descriptor: int, *, closes: bool) -> None:
        if not closes:
            self._closing.get(key, set()).discard(descriptor)
        elif descriptor in self._paths.get(key, ()):
            self._closing.setdefault(key, set()).add(descriptor)

    def _drop(self, key: int, descriptor: int) -> None:
        path = self._paths.get(key, {}).pop(descriptor, None)
        self._closing.get(key, set()).discard(descriptor)
        if path is not None:
            self._left += len(path) + _ENTRY

    def _gives_our_numbers(self, pid: int) -> bool:
        if pid not in self._has_our_numbers:
            if len(self._has_our_numbers) * _ENTRY > self._room:  # ends of processes were lost
                self._has_our_numbers.clear()
            self._has_our_numbers[pid] = self._numbers_as_we_do(pid)
        return self._has_our_numbers[pid]

    def forget(self, task: int) -> None:
        """Forget a thread or process that has ended."""
        self._has_our_numbers.pop(task, None)
        for key in self._owners.end(task):
            self._forget_table(key)

    def forget_all(self) -> None:
        """Forget everything: calls were lost."""
        for key in tuple(self._paths):
            self._forget_table(key)

    def _forget_table(self, key: int) -> None:
        self._closing.pop(key, None)
        for path in self._paths.pop(key, {}).values():
            self._left += len(path) + _ENTRY


def _as_int(word: int) -> int:
    value = word & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
