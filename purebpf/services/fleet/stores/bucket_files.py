"""The objects below a folder of a bucket as files that DuckDB reads, through fsspec."""

from __future__ import annotations

import io
from datetime import datetime
from threading import get_ident
from typing import Any

import obstore
from fsspec.spec import AbstractFileSystem
from obstore.store import ObjectStore

__all__ = ["BucketFiles"]


class BucketFiles(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """Asks once how large an object is: DuckDB wants to know it five times, of each file.

    For one connection: the content of a store's name does not change during a question.

    Args:
        store: of the folder.
        root: the begin of the paths of its objects, as `s3://BUCKET/FOLDER`.
    """

    cachable = False

    def __init__(self, store: ObjectStore, root: str) -> None:
        super().__init__()
        self.protocol = root.partition(":")[0]
        self._store, self._root = store, f"{root}/"
        self._known: dict[str, dict[str, Any]] = {}

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def info(self, path: str, **_more: Any) -> dict[str, Any]:
        """Its name, size, type, and when it was written. Raises FileNotFoundError."""
        if path not in self._known:
            head = obstore.head(self._store, self._name(path))
            self._known[path] = {
                "name": path,
                "size": head["size"],
                "type": "file",
                "modified": head["last_modified"],
            }
        return self._known[path]

    def modified(self, path: str) -> datetime:
        """When it was written."""
        written: datetime = self.info(path)["modified"]
        return written

    def open(self, path: str, mode: str = "rb", **_more: Any) -> ObjectFile:
        """A file to read. Raises OSError."""
        if mode != "rb":
            raise PermissionError(f"{path}: is only read")
        return ObjectFile(self._store, self._name(path), self.info(path)["size"])

    def glob(self, path: str, **_more: Any) -> list[str]:
        """The path itself, where it is one of an object: catalogs name their files."""
        try:
            return [self.info(path)["name"]]
        except FileNotFoundError:
            return []

    def _name(self, path: str) -> str:
        if not path.startswith(self._root):
            raise FileNotFoundError(f"{path} is not below {self._root}")
        return path.removeprefix(self._root)


class ObjectFile:
    """An object that DuckDB reads.

    Its threads read one file at different places at the same time, each with a seek and a read, and
    others may run between the two: so each thread has a separate position.
    """

    def __init__(self, store: ObjectStore, name: str, size: int) -> None:
        self._store, self._object, self._size = store, name, size
        self._places: dict[int, int] = {}
        self._tail = b""

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; which one it is."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: self._size}[whence]
        self._places[get_ident()] = start + offset
        return start + offset

    def tell(self) -> int:
        """Return the position of this thread."""
        return self._places.get(get_ident(), 0)

    def read(self, nbytes: int = -1) -> bytes:
        """The next bytes. Raises OSError, or an error of obstore."""
        start = self.tell()
        end = self._size if nbytes < 0 else min(start + nbytes, self._size)
        if end <= start:
            return b""
        self._places[get_ident()] = end
        tail_start = max(0, self._size - _TAIL)
        if start < tail_start:
            return bytes(obstore.get_range(self._store, self._object, start=start, end=end))
        if not self._tail:
            last = obstore.get_range(self._store, self._object, start=tail_start, end=self._size)
            self._tail = bytes(last)
        return self._tail[start - tail_start : end - tail_start]

    def close(self) -> None:
        """Nothing is open."""


_TAIL = 1 << 16
"""What Parquet has at its end, and all of a small object: one request for all of it."""
