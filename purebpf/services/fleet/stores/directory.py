"""A store below a directory of a file system."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

from purebpf.errors import KernelError
from purebpf.services.fleet.stores.store import Store, StoreError
from purebpf.syscall.folder import Folder

if TYPE_CHECKING:
    import duckdb

__all__ = ["Directory"]


class Directory(Store):
    """See `Store`.

    Args:
        root: the directory.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)

    def path(self, name: str) -> str:
        """See `Store`."""
        return os.path.join(self.root, name)

    def require(self) -> None:
        """See `Store`."""
        if not os.path.isdir(self.root):
            raise StoreError(
                f"the store {self.root}: there is no such directory. "
                "`purebpf fleet hub --store DIR` makes one"
            )

    def prepare(self) -> None:
        """See `Store`."""
        with self._explained():
            Folder.prepare(self.root, groups=True)

    def require_own(self) -> None:
        """See `Store`: files are created and removed by path, so that no other user may move one.

        Groups of this process may: hubs share a store by a group, as pods do (`fsGroup`).
        """
        self.require()
        with self._explained():
            Folder.reach(self.root, outside=True, follow=True, groups=True).close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except KernelError as error:
            owner, fix = os.stat(self.root).st_uid if os.path.isdir(self.root) else 0, ""
            if owner not in (0, os.geteuid()):
                fix = (
                    f". What writes to it is run as its owner: sudo -u '#{owner}' purebpf fleet ..."
                )
            raise StoreError(f"the store {self.root}: {error}{fix}") from None

    def let_read(self, connection: duckdb.DuckDBPyConnection) -> None:
        """See `Store`. DuckDB opens files itself.

        Where a statement needs a few rows, it would read a whole column in advance: the frames of a
        day's stacks are 44 MB of packed bytes and more.
        """
        connection.execute("set global disable_parquet_prefetching = true")

    def write_by(self, name: str, write: Callable[[IO[bytes]], object]) -> None:
        """See `Store`."""
        path = self.path(name)
        folder = os.path.dirname(path)
        os.makedirs(folder, exist_ok=True)
        part = os.path.join(folder, f".{os.path.basename(name)}.{secrets.token_hex(4)}.part")
        try:
            with open(part, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.rename(part, path)
            _sync_folder(folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(part)
            raise

    def read(self, name: str) -> str | None:
        """See `Store`."""
        try:
            with open(self.path(name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{self.path(name)}: {error}") from error

    def names(self, folder: str) -> list[str]:
        """See `Store`."""
        try:
            return sorted(name for name in os.listdir(self.path(folder)) if name[0] != ".")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise KernelError("getdents64(2)", error.errno or 0, self.path(folder)) from None

    def parts(self) -> Iterator[str]:
        """See `Store`."""
        for folder, _, names in os.walk(self.root):
            for name in names:
                if name.startswith(".") and name.endswith(".part"):
                    yield os.path.relpath(os.path.join(folder, name), self.root)

    def size(self, name: str) -> int:
        """See `Store`."""
        return os.stat(self.path(name)).st_size

    def age_s(self, name: str, now_s: float) -> float:
        """See `Store`."""
        return now_s - os.stat(self.path(name)).st_mtime

    def delete(self, name: str) -> None:
        """See `Store`."""
        path = self.path(name)
        with suppress(FileNotFoundError):
            os.unlink(path)
        folder = os.path.dirname(path)
        while folder != self.root:
            try:
                os.rmdir(folder)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                    return
                raise
            folder = os.path.dirname(folder)

    @contextmanager
    def alone(self) -> Iterator[Callable[[], None]]:
        """See `Store`: as far as the file system has locks."""
        fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(f"another process compacts {self.root}") from None
            yield lambda: None
        finally:
            os.close(fd)


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
