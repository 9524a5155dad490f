"""A store in a bucket: what a bucket does otherwise than a directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from purebpf.services.fleet import duck
from purebpf.services.fleet.importing import import_files
from purebpf.services.fleet.stores.opening import open_store
from purebpf.services.fleet.stores.store import Store, StoreError
from tests.support.host.deliveries import Truth, messages

NewBucket = Callable[[], Store]


def test_bytes_come_back(new_bucket: NewBucket) -> None:
    store = new_bucket()
    large = os.urandom(12 << 20)  # sent in parts, and read by several threads at once
    store.write("folder/large.bin", large)
    assert store.size("folder/large.bin") == len(large)
    statement = f"select content from read_blob('{store.path('folder/large.bin')}')"
    for _ in range(5):
        with duck.connect(store) as connection:
            assert duck.rows(connection, statement) == [(large,)]
    store.write("folder/a.txt", "å".encode())
    assert store.read("folder/a.txt") == "å"
    assert store.read("folder/none") is None
    assert store.names("folder") == ["a.txt", "large.bin"]
    store.delete("folder/none")
    with pytest.raises(FileNotFoundError):
        store.size("folder/none")


def test_an_import_makes_no_directory(
    new_bucket: NewBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = new_bucket()
    monkeypatch.chdir(tmp_path)
    import_files(store, [])
    assert not list(tmp_path.iterdir())


def test_a_write_that_fails_leaves_nothing(new_bucket: NewBucket) -> None:
    store = new_bucket()
    with pytest.raises(ZeroDivisionError):
        store.write_by("folder/part", lambda file: file.write(b"half") and 1 / 0)
    assert store.names("folder") == []


def test_a_statement_reads_nothing_beside_the_store(new_bucket: NewBucket) -> None:
    store = new_bucket()
    store.write("in.txt", b"inside")
    beside = open_store(f"{store.root}-beside")
    beside.write("out.txt", b"outside")
    with duck.connect(store) as connection:
        statement = f"select content from read_text('{store.path('in.txt')}')"
        assert duck.table(connection, statement, store.root)[1] == [("inside",)]
    for path in (beside.path("out.txt"), "/etc/passwd"):
        with duck.connect(store) as connection, pytest.raises(duck.QueryError, match="disabled"):
            duck.table(connection, f"select * from read_text('{path}')", store.root)
    with duck.connect(store) as connection, pytest.raises(duck.QueryError, match="were removed"):
        duck.rows(connection, f"select * from read_parquet('{beside.path('out.txt')}')")


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("s3://", "Unable to recognise URL"),
        ("ftp://host/path", "Unable to recognise URL"),
        ("s3://no-such-bucket/x", "NoSuchBucket: The specified bucket does not exist"),
    ],
)
def test_a_name_that_is_not_of_a_store(new_bucket: NewBucket, where: str, problem: str) -> None:
    with pytest.raises(StoreError, match=problem):
        open_store(where).require()


def test_an_empty_bucket_says_how_it_is_filled(new_bucket: NewBucket) -> None:
    store = new_bucket()
    store.prepare()
    with pytest.raises(StoreError, match=f"nothing is there yet.*hub --store {store.root}"):
        store.require()


def test_a_server_that_is_away(new_bucket: NewBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    store = open_store("s3://bucket/folder")
    with pytest.raises(StoreError, match="error sending request"):
        store.require()
    with pytest.raises(OSError, match=r"s3://bucket/folder/x: .*error sending request"):
        store.write("x", b"")


def test_a_compaction_that_was_killed_counts_for_an_hour(
    new_bucket: NewBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = new_bucket()
    store.write("compacting", json.dumps({"host": "h", "pid": 7}).encode())
    with pytest.raises(StoreError, match=r'"pid": 7.*wait an hour, or delete compacting'):
        store.alone().__enter__()
    later = time.time() + 3700
    monkeypatch.setattr("time.time", lambda: later)
    with store.alone():
        assert '"pid": 7}' not in (store.read("compacting") or "")
    assert store.read("compacting") is None


def test_a_compaction_ends_where_another_took_its_place(new_bucket: NewBucket) -> None:
    store = new_bucket()
    with store.alone() as keep:
        keep()
        store.write("compacting", b"another's")
        with pytest.raises(StoreError, match=r"compaction of .* ends: PreconditionFailed"):
            keep()
    assert store.read("compacting") == "another's"


def test_commands(new_bucket: NewBucket, tmp_path: Path) -> None:
    """As a user has them: the store of a hub in a bucket."""
    store = new_bucket()
    paths = []
    for number, sent in enumerate(messages(Truth(), hosts=2)):
        paths.append(tmp_path / f"{number}.otlp")
        paths[-1].write_bytes(sent.data)

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "purebpf", "fleet", *words, "--store", store.root]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("import", *map(str, paths))
    before = run("top", "--since", "2026-11-22T00:00", "--until", "2026-11-23T00:00")
    run("compact")
    assert store.names("landing")
    assert store.names("hours")
    after = run("top", "--since", "2026-11-22T00:00", "--until", "2026-11-23T00:00")
    assert before.splitlines()[2:] == after.splitlines()[2:]
    run("check")
    query = run("sql", "select count(*) > 0 as some from samples", "--since", "2026-11-22T00:00")
    assert "true" in query.lower()
