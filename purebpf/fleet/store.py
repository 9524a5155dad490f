"""Where the tables are: files in folders, of which each is whole or absent.

    landing/HOUR/BATCH.TABLE.parquet                   what hubs wrote, by hour of the windows
    samples/kind=K/date=D/hour=H/part-N.parquet        an hour, sorted
    rollup/kind=K/date=D/hour=H/part-N.parquet         the same without hosts and minutes
    windows|series|stacks|frames/date=D/...            what these refer to
    hours/HOUR.json                                    which of these files count: see `Manifest`

Readers take an hour's files from its manifest, and from landing what the manifest does not have.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, NamedTuple

from purebpf.errors import KernelError, PurebpfError

__all__ = ["Directory", "Manifest", "StoreError", "open_store"]


class StoreError(PurebpfError):
    """A store cannot be read or written; says why."""


class Manifest(NamedTuple):
    """What compaction made of an hour.

    `files` are those of each table by its name, with kinds as `samples/cpu`; `landed` the batches
    that are in them.
    """

    files: dict[str, list[str]]
    landed: list[str]

    @classmethod
    def parse(cls, text: str, name: str) -> Manifest:
        """Read one. Raises StoreError."""
        try:
            tree = json.loads(text)
            files = {
                str(key): [str(path) for path in value] for key, value in tree["files"].items()
            }
            return cls(files, [str(batch) for batch in tree["landed"]])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreError(
                f"{name} is damaged: {error}. `purebpf fleet check` says more"
            ) from None

    def text(self) -> str:
        """As a file."""
        return json.dumps(self._asdict(), indent=1, sort_keys=True)


def open_store(where: str) -> Directory:
    """The store at a path."""
    if "://" in where and not where.startswith("file://"):
        raise StoreError(f"{where}: a store is a directory; mount the bucket, or copy it")
    return Directory(where.removeprefix("file://"))


class Directory:
    """A store below a directory of a file system. Names are relative, with `/`.

    Args:
        root: the directory.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)

    def path(self, name: str) -> str:
        """Where a file is."""
        return os.path.join(self.root, name)

    def require(self) -> None:
        """Raise StoreError where there is no such directory."""
        if not os.path.isdir(self.root):
            raise StoreError(
                f"the store {self.root}: there is no such directory. "
                "`purebpf fleet hub --store DIR` makes one"
            )

    def write(self, name: str, data: bytes) -> None:
        """Write a file, durably. Raises OSError."""
        self.write_by(name, lambda file: file.write(data))

    def write_by(self, name: str, write: Callable[[IO[bytes]], object]) -> None:
        """Write a file by a function, durably: it is there with all its bytes, or not at all."""
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
        """The text of a file, or None."""
        try:
            with open(self.path(name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{self.path(name)}: {error}") from error

    def manifest(self, hour: str) -> Manifest | None:
        """What compaction made of an hour; None: nothing yet."""
        name = f"hours/{hour}.json"
        text = self.read(name)
        return None if text is None else Manifest.parse(text, self.path(name))

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none where there is no such folder."""
        try:
            return sorted(name for name in os.listdir(self.path(folder)) if name[0] != ".")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise KernelError("getdents64(2)", error.errno or 0, self.path(folder)) from None

    def parts(self) -> Iterator[str]:
        """Files that were being written: what a killed process left."""
        for folder, _, names in os.walk(self.root):
            for name in names:
                if name.startswith(".") and name.endswith(".part"):
                    yield os.path.relpath(os.path.join(folder, name), self.root)

    def size(self, name: str) -> int:
        """Bytes of a file. Raises FileNotFoundError."""
        return os.stat(self.path(name)).st_size

    def age_s(self, name: str, now_s: float) -> float:
        """Since it was written."""
        return now_s - os.stat(self.path(name)).st_mtime

    def delete(self, name: str) -> None:
        """Remove a file, and its folder if it is the last one; harmless where it is gone."""
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


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
