"""Directories held by descriptor, for work that other users must not be able to misdirect.

The kernel looks up a path anew in each system call, and a user who may write to a directory on it
decides its target. So here every component is opened from the one before it, never through a
symbolic link, and checked before its use: it belongs to root or to this process's user, and no
other user can put something else in its place. All changes go through a descriptor.

The descriptors are O_PATH ones (open(2)): they stand for a file without opening it, which pins in
a bpf file system do not allow anyway. Mode and owner are set through /proc/self/fd, which leads to
that very file, as open(2) describes; a bpf(2) command takes such a path, too, where BPF_F_PATH_FD
(Linux 6.5, commit cb8edce28073) is not there yet.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack

from purebpf.closable import Closing
from purebpf.errors import KernelError
from purebpf.syscall import proc
from purebpf.syscall.descriptor import Descriptor
from purebpf.syscall.device import file_system_of

__all__ = ["Folder", "Node", "explain_distrust"]

BPF_FS_MAGIC = 0xCAFE4A11
"""What statfs(2) says of a bpf file system (include/uapi/linux/magic.h)."""

_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_PARTS = 256
"""Components of a path, and of the symbolic links in it."""

_DEEPEST = 8
"""Levels of directories that `Folder.remove` goes down."""


class Node(Closing):
    """A file of any kind, held by descriptor.

    Attributes:
        path: its path, for messages.
        status: the result of fstat(2).
    """

    __slots__ = ("_descriptor", "path", "status")

    def __init__(self, descriptor: Descriptor, path: str) -> None:
        """Own `descriptor`, which is closed if fstat(2) fails."""
        self._descriptor = descriptor
        self.path = path
        try:
            self.status = os.stat(descriptor.fileno())
        except BaseException:
            descriptor.close()
            raise

    def fileno(self) -> int:
        """The descriptor's number. ValueError: it is closed."""
        return self._descriptor.fileno()

    @property
    def place(self) -> str:
        """A path that leads to this very file, for calls that take no descriptor."""
        return f"/proc/self/fd/{self.fileno()}"

    @property
    def mode(self) -> int:
        """The permission bits."""
        return stat.S_IMODE(self.status.st_mode)

    def change(self, *, mode: int, uid: int = -1, gid: int = -1) -> None:
        """Set the owner (-1: unchanged), then the mode.

        Raises:
            KernelError: EPERM.
        """
        try:
            if (uid, gid) != (-1, -1):
                os.chown(self.place, uid, gid)
            os.chmod(self.place, mode)
            self.status = os.stat(self.fileno())
        except OSError as error:
            raise _explain_failure("chmod", self.path, error) from None

    @property
    def is_bpf(self) -> bool:
        """True if it is in a bpf file system."""
        return file_system_of(self.fileno()) == BPF_FS_MAGIC

    def require_trusted(self, *, outside: bool = False, groups: bool = False) -> None:
        """Refuse a file that another user may have put there; `outside`, `groups` as in
        `Folder.reach`.

        Raises:
            KernelError: EPERM; says who owns it, or its mode.
        """
        why = explain_distrust(self.status, outside=outside, groups=groups)
        if why and (self.is_bpf or explain_distrust(self.status, outside=True, groups=groups)):
            of_others = not _is_trusted(self.status.st_uid, outside=True)
            fix = "" if of_others else f"let only its owner write to it: chmod go-w {self.path}"
            raise KernelError("open", errno.EPERM, self.path, why=why, fix=fix)

    def close(self) -> None:
        """Let go of it; again is harmless."""
        self._descriptor.close()


class Folder(Node):
    """A directory."""

    __slots__ = ()

    @staticmethod
    def reach(
        path: str, *, outside: bool = False, follow: bool = False, groups: bool = False
    ) -> Folder:
        """Return the directory at `path`, if only root and this user control its content.

        In file systems other than bpf, owners that have no number in this user namespace are
        trusted, too: root of a container is not the owner of its /sys. With `outside`, everywhere.
        With `follow`, symbolic links are followed, if they are to be trusted like directories. With
        `groups`, groups of this process may write to a directory.

        Raises:
            KernelError: EPERM, another user owns a component, or may replace it; ENOENT; ENOTDIR,
                a component is none, or a symbolic link; ELOOP, too many of them; EACCES.
        """
        with ExitStack() as held:
            place = held.enter_context(Folder._root())
            parts = os.path.abspath(path).split("/")[::-1]
            for _ in range(_MOST_PARTS):
                place.require_trusted(outside=outside, groups=groups)
                if not parts:
                    held.pop_all()
                    return place
                name = parts.pop()
                target = place.read_link(name, outside=outside) if follow and name else None
                if target is None:
                    after = place.enter(name or ".")
                else:
                    parts += target.split("/")[::-1]
                    after = Folder._root() if target.startswith("/") else place.enter(".")
                held.pop_all()
                place.close()
                place = held.enter_context(after)
        raise KernelError("open", errno.ELOOP, path)

    @staticmethod
    def prepare(path: str, *, groups: bool = False) -> None:
        """Make a directory, mode 0700, and those above it, where only root and this user decide.

        Symbolic links on the way are followed, if they are to be trusted like directories; `groups`
        as in `reach`.

        Raises:
            KernelError: as `reach`, with nothing made; mkdir(2) fails.
        """
        above = os.path.abspath(path)
        while not os.path.lexists(above):
            above = os.path.dirname(above)
        Folder.reach(above, outside=True, follow=True, groups=groups).close()
        try:
            os.makedirs(path, mode=0o700, exist_ok=True)
        except OSError as error:
            raise KernelError("mkdir(2)", error.errno or 0, path) from None
        Folder.reach(path, outside=True, follow=True, groups=groups).close()

    @staticmethod
    def _root() -> Folder:
        return Folder(Descriptor(os.open("/", _PLACE | os.O_DIRECTORY)), "/")

    def read_link(self, name: str, *, outside: bool = False) -> str | None:
        """Return the target of a symbolic link in this directory; None: it is not a link.

        Raises:
            KernelError: EPERM, another user made the link; ENOENT; EACCES.
        """
        with Node(self._open(name, _PLACE), self._path(name)) as node:
            if not stat.S_ISLNK(node.status.st_mode):
                return None
            node.require_trusted(outside=outside)
            return os.readlink("", dir_fd=node.fileno())

    def enter(self, name: str) -> Folder:
        """A directory in this one, not checked.

        Raises:
            KernelError: ENOENT; ENOTDIR, it is none, or a symbolic link; EACCES.
        """
        path = self._path(name)
        return Folder(self._open(name, _PLACE | os.O_DIRECTORY), path)

    def make(self, name: str, mode: int) -> Folder:
        """A directory in this one, checked, and made if it was not there, with that mode.

        Raises:
            KernelError: EPERM, another user's is there, or this process may make none; ENOTDIR.
        """
        try:
            os.mkdir(name, 0o700, dir_fd=self.fileno())
        except FileExistsError:
            made = False
        except OSError as error:
            raise _explain_failure("mkdir", self._path(name), error) from None
        else:
            made = True
        folder = self.enter(name)
        try:
            folder.require_trusted()
            if made:
                folder.change(mode=mode)
        except BaseException:
            folder.close()
            raise
        return folder

    def find(self, name: str) -> Node | None:
        """Open the entry of that name, also a symbolic link; None if there is none.

        Raises:
            KernelError: EACCES.
        """
        try:
            return Node(self._open(name, _PLACE), self._path(name))
        except KernelError as error:
            if error.errno == errno.ENOENT:
                return None
            raise

    def names(self) -> list[str]:
        """The names of its entries.

        Raises:
            KernelError: EACCES, it may not be listed.
        """
        with self._open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) as opened:
            try:
                return os.listdir(opened.fileno())
            except OSError as error:
                raise _explain_failure("readdir", self.path, error) from None

    def remove(self, name: str, deepest: int = _DEEPEST) -> None:
        """Remove the entry of that name with all that it contains; follows no symbolic link.

        Directories change their owner first, so that no new file comes into them.

        Raises:
            KernelError: EPERM; ENOENT; ELOOP, directories deeper than purebpf makes any; EXDEV,
                something is mounted there.
        """
        try:
            os.unlink(name, dir_fd=self.fileno())
        except IsADirectoryError:
            pass
        except OSError as error:
            raise _explain_failure("unlink", self._path(name), error) from None
        else:
            return
        with self.enter(name) as folder:
            fix = f"remove it: rm -r {folder.path}"
            if not deepest:
                raise KernelError("open", errno.ELOOP, folder.path, fix=fix)
            if folder.status.st_dev != self.status.st_dev:
                raise KernelError("open", errno.EXDEV, folder.path, fix=f"umount {folder.path}")
            folder.change(mode=0o700, uid=os.geteuid())
            for entry in folder.names():
                folder.remove(entry, deepest - 1)
        self.remove_empty(name)

    def remove_empty(self, name: str) -> None:
        """Remove a directory that is empty.

        Raises:
            KernelError: ENOTEMPTY; ENOENT; ENOTDIR; EPERM.
        """
        try:
            os.rmdir(name, dir_fd=self.fileno())
        except OSError as error:
            raise _explain_failure("rmdir", self._path(name), error) from None

    def _open(self, name: str, flags: int) -> Descriptor:
        try:
            return Descriptor(os.open(name, flags, dir_fd=self.fileno()))
        except OSError as error:
            raise _explain_failure("open", self._path(name), error) from None

    def _path(self, name: str) -> str:
        return os.path.normpath(os.path.join(self.path, name))


def explain_distrust(status: os.stat_result, *, outside: bool = False, groups: bool = False) -> str:
    """Why another user may control a file or directory; "" if not.

    The sticky bit (mode 1777) lets others add to a directory, but not rename or remove files of
    other users. `outside`: also trust owners that have no number in this user namespace.
    `groups`: a group of this process may write.
    """
    if not _is_trusted(status.st_uid, outside=outside):
        return f"it belongs to UID {status.st_uid}, not to root"
    mode = stat.S_IMODE(status.st_mode)
    is_own = groups and status.st_gid in (os.getegid(), *os.getgroups())
    others = stat.S_IWOTH if is_own else _OTHERS_WRITE
    if stat.S_ISDIR(status.st_mode) and mode & others and not mode & stat.S_ISVTX:
        return f"other users can write to it (mode {mode:04o})"
    return ""


def _is_trusted(uid: int, *, outside: bool) -> bool:
    if uid in (0, os.geteuid()):
        return True
    unmapped = proc.sysctl("fs.overflowuid")
    return outside and str(uid) == unmapped and not proc.in_first_user_namespace()


def _explain_failure(call: str, path: str, error: OSError) -> KernelError:
    why = "it is a file or a symbolic link" if error.errno == errno.ENOTDIR else ""
    return KernelError(call, error.errno or 0, path, why=why)
