"""Stores: a directory, and a bucket of a server that speaks S3's protocol (moto)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

from purebpf.services.fleet.stores.directory import Directory
from purebpf.services.fleet.stores.opening import open_store
from purebpf.services.fleet.stores.store import Store

_NUMBERS = count()


@pytest.fixture(scope="session")
def s3() -> Iterator[Any]:
    """A server; its environment."""
    server = pytest.importorskip("moto.server", reason="moto is not installed")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "user",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }
    running.stop()


@pytest.fixture
def new_bucket(s3: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Callable[[], Store]:
    """Makes a store in a bucket of its own."""
    from urllib.request import Request, urlopen

    for name, value in s3.items():
        monkeypatch.setenv(name, value)

    def make() -> Store:
        bucket = f"bucket-{next(_NUMBERS)}"
        urlopen(Request(f"{s3['AWS_ENDPOINT_URL']}/{bucket}", method="PUT")).close()
        return open_store(f"s3://{bucket}/some/folder/")

    return make


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    (tmp_path / "store").mkdir()
    return Directory(str(tmp_path / "store"))


@pytest.fixture(params=["directory", "bucket"])
def any_store(request: pytest.FixtureRequest) -> Store:
    """An empty store, of any kind."""
    if request.param == "bucket":
        made: Store = request.getfixturevalue("new_bucket")()
        return made
    return cast("Store", request.getfixturevalue("store"))
