"""The place of the tables: files by names, each whole or absent.

    landing/HOUR/BATCH.TABLE.parquet                   what hubs wrote, by hour of the windows
    samples/kind=K/date=D/hour=H/part-N.parquet        an hour, sorted
    rollup/kind=K/date=D/hour=H/part-N.parquet         the same without hosts and minutes
    windows|series|stacks|frames/date=D/...            what these refer to
    hours/HOUR.json                                    which of these files count: see `Manifest`

Readers take an hour's files from its manifest, and from landing the files that the manifest lacks.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import IO, TYPE_CHECKING, NamedTuple

from purebpf.damage import describe
from purebpf.errors import PurebpfError

if TYPE_CHECKING:
    import duckdb

__all__ = ["Manifest", "Store", "StoreError"]


class StoreError(PurebpfError):
    """A store cannot be read or written; says why."""


class Manifest(NamedTuple):
    """The result of compaction for an hour.

    `files` has each table's files by its name, with kinds as `samples/cpu`; `landed` the batches
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
                f"{name} is damaged: {describe(error)}. `purebpf fleet check` says more"
            ) from None

    def text(self) -> str:
        """As a file."""
        return json.dumps(self._asdict(), indent=1, sort_keys=True)


class Store(ABC):
    """Files by names, which are relative, with `/`.

    Attributes:
        root: the begin of all paths.
    """

    root: str

    @abstractmethod
    def path(self, name: str) -> str:
        """Return the path that engines open a file by."""

    @abstractmethod
    def require(self) -> None:
        """Raise StoreError where there is no such store, or it is away."""

    def require_own(self) -> None:
        """Check for a writer or remover: StoreError if others may move its files."""
        self.require()

    @abstractmethod
    def prepare(self) -> None:
        """Make it if possible, and require it as `require_own` does. Raises StoreError."""

    @abstractmethod
    def let_read(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make its paths readable in a database."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file, durably. Raises OSError."""
        self.write_by(name, lambda file: file.write(data))

    @abstractmethod
    def write_by(self, name: str, write: Callable[[IO[bytes]], object]) -> None:
        """Write a file by a function, durably: it is there with all its bytes, or not at all.

        Raises OSError.
        """

    @abstractmethod
    def read(self, name: str) -> str | None:
        """The text of a file, or None. Raises StoreError."""

    def manifest(self, hour: str) -> Manifest | None:
        """Return the result of compaction for an hour; None: nothing yet."""
        name = f"hours/{hour}.json"
        text = self.read(name)
        return None if text is None else Manifest.parse(text, self.path(name))

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none where there is no such folder."""

    @abstractmethod
    def parts(self) -> Iterator[str]:
        """Yield unfinished files of killed processes."""

    @abstractmethod
    def size(self, name: str) -> int:
        """Bytes of a file. Raises FileNotFoundError."""

    @abstractmethod
    def age_s(self, name: str, now_s: float) -> float:
        """Since it was written."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a file, and its folder if it is the last one; harmless where it is gone."""

    @abstractmethod
    def alone(self) -> AbstractContextManager[Callable[[], None]]:
        """Let one process in at a time; returns a function to call now and then, so that it stays
        so.

        Raises StoreError: another process is in it.
        """
