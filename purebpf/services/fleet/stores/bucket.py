"""A store in a bucket: of S3 or a server with its protocol, of Google, of Azure; by obstore.

Credentials and the endpoint come from the environment (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, and
so on), or from the machine: https://docs.rs/object_store. A bucket has to refuse a write if an
object is there, or has changed (If-None-Match and If-Match, which S3 has since 2024): compaction
needs it, to be alone.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import IO, TYPE_CHECKING, Any, Literal

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import from_url

from purebpf.services.fleet.stores.store import Store, StoreError

if TYPE_CHECKING:
    import duckdb
    from obstore import UpdateVersion

__all__ = ["Bucket"]

_LEASE = "compacting"
_LEASE_S = 3600
"""Longer than an hour of any fleet takes to compact; then its process is gone."""
_CODE = re.compile(r"<Code>([A-Za-z]{1,40})</Code>(?:<Message>([^<\n]{1,200}))?")
_MOST_TEXT = 300


class Bucket(Store):
    """See `Store`.

    Args:
        root: `s3://BUCKET/FOLDER`, or of another scheme that obstore knows.
        environment: where the endpoint is.

    Raises:
        StoreError: this names no bucket.
    """

    def __init__(self, root: str, environment: Mapping[str, str] = os.environ) -> None:
        self.root = root.rstrip("/")
        self._scheme = root.partition(":")[0]
        # only an endpoint that was asked for can be a plain one
        is_plain = environment.get("AWS_ENDPOINT_URL", "").startswith("http://")
        self._settings: dict[str, Any] = {
            "client_options": {"timeout": "60s", "connect_timeout": "5s", "allow_http": is_plain},
            "retry_config": {"max_retries": 3, "retry_timeout": timedelta(seconds=30)},
        }
        try:
            self._store = from_url(self.root, **self._settings)
        except (BaseError, ValueError) as error:
            raise StoreError(f"the store {root}: {_reason(error)}") from None

    def path(self, name: str) -> str:
        """See `Store`."""
        return f"{self.root}/{name}"

    def require(self) -> None:
        """See `Store`."""
        if not self._look(""):
            raise StoreError(
                f"the store {self.root}: nothing is there yet. "
                f"`purebpf fleet hub --store {self.root}` fills it"
            )

    def prepare(self) -> None:
        """See `Store`: a bucket has to be there."""
        self._look("")

    def let_read(self, connection: duckdb.DuckDBPyConnection) -> None:
        """See `Store`."""
        from purebpf.services.fleet.stores.bucket_files import BucketFiles

        connection.register_filesystem(BucketFiles(self._store, self.root))

    def write_by(self, name: str, write: Callable[[IO[bytes]], object]) -> None:
        """See `Store`: written to a temporary file, and sent when it is whole."""
        with tempfile.TemporaryFile() as file:
            write(file)
            file.seek(0)
            try:
                obstore.put(self._store, name, file)
            except BaseError as error:
                raise OSError(f"{self.path(name)}: {_reason(error)}") from None

    def read(self, name: str) -> str | None:
        """See `Store`."""
        try:
            return bytes(obstore.get(self._store, name).bytes()).decode()
        except FileNotFoundError:
            return None
        except (BaseError, OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{self.path(name)}: {_reason(error)}") from None

    def names(self, folder: str) -> list[str]:
        """See `Store`."""
        return sorted(name for name in self._look(folder) if not name.startswith("."))

    def parts(self) -> Iterator[str]:
        """See `Store`: a bucket shows none."""
        return iter(())

    def size(self, name: str) -> int:
        """See `Store`."""
        return int(self._head(name)["size"])

    def age_s(self, name: str, now_s: float) -> float:
        """See `Store`."""
        return float(now_s - self._head(name)["last_modified"].timestamp())

    def delete(self, name: str) -> None:
        """See `Store`."""
        try:
            with suppress(FileNotFoundError):
                obstore.delete(self._store, name)
        except BaseError as error:
            raise StoreError(f"{self.path(name)}: {_reason(error)}") from None

    @contextmanager
    def alone(self) -> Iterator[Callable[[], None]]:
        """See `Store`: an object that is there says so, and is written again at each call.

        The mark of a killed process holds for an hour.
        """
        mine = self._take()

        def keep() -> None:
            nonlocal mine
            try:
                mine = self._hold(mine)
            except (BaseError, OSError) as error:
                raise StoreError(f"compaction of {self.root} ends: {_reason(error)}") from None

        try:
            yield keep
        finally:
            with suppress(StoreError):
                keep()  # of another process, it is not removed
                self.delete(_LEASE)

    def _hold(self, before: UpdateVersion | Literal["create"]) -> UpdateVersion:
        """Write the lease, where it is as it was before."""
        done = obstore.put(self._store, _LEASE, _who(), mode=before)
        return {"e_tag": done["e_tag"]}

    def _take(self) -> UpdateVersion:
        try:
            with suppress(AlreadyExistsError):
                return self._hold("create")
            held = self._head(_LEASE)
            age_s = time.time() - held["last_modified"].timestamp()
            if age_s >= _LEASE_S:
                with suppress(PreconditionError):
                    return self._hold({"e_tag": held["e_tag"]})
        except FileNotFoundError:
            age_s = 0.0
        except BaseError as error:
            raise StoreError(f"{self.root}: {_reason(error)}") from None
        raise StoreError(
            f"another process compacts {self.root}: {self.read(_LEASE) or 'it has just ended'}, "
            f"{max(0, age_s):.0f} s ago. If it was killed, wait an hour, or delete {_LEASE}"
        )

    def _head(self, name: str) -> Any:
        try:
            return obstore.head(self._store, name)
        except BaseError as error:
            raise StoreError(f"{self.path(name)}: {_reason(error)}") from None

    def _look(self, folder: str) -> list[str]:
        """Yield the entries directly below a folder."""
        try:
            seen = obstore.list_with_delimiter(self._store, folder or None)
        except (BaseError, OSError) as error:
            raise StoreError(f"the store {self.root}: {_reason(error)}") from None
        paths = [*seen["common_prefixes"], *(one["path"] for one in seen["objects"])]
        return [path.rpartition("/")[2] for path in paths]


def _who() -> bytes:
    """Return an id of this process that no other write equals: tags of objects depend on their
    bytes.
    """
    who = {"host": os.uname().nodename, "pid": os.getpid(), "at": time.time_ns()}
    return json.dumps(who).encode()


def _reason(error: BaseException) -> str:
    """The server's words, or the first line."""
    text = str(error)
    if code := _CODE.search(text):
        return ": ".join(filter(None, code.groups()))
    return (text.strip().splitlines() or [type(error).__name__])[0][:_MOST_TEXT]
