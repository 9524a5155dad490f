"""Opens a store by its name."""

from __future__ import annotations

from purebpf.services.fleet.stores.store import Store

__all__ = ["open_store"]


def open_store(where: str) -> Store:
    """The store at a path, or below `s3://BUCKET`, `gs://BUCKET`, `az://CONTAINER`.

    Raises:
        StoreError: this is not where a store can be.
        ModuleNotFoundError: for a bucket, the extra `purebpf[bucket]` is not installed.
    """
    scheme, colon, _ = where.partition("://")
    if colon and scheme != "file":
        from purebpf.services.fleet.stores.bucket import Bucket

        return Bucket(where)
    from purebpf.services.fleet.stores.directory import Directory

    return Directory(where.removeprefix("file://"))
