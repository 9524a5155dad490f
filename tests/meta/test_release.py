"""A release holds the same bytes wherever it is built, and says of what it consists."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

from scripts.release.normalize_sdist import normalize
from scripts.release.provenance import statement

_FILES = {
    "pkg/setup.cfg": b"[metadata]\n",
    "pkg/run": b"#!/bin/sh\n",
    "pkg/a/module.py": b"x = 1\n",
}


def packed(names: list[str], owner: int, time: int, mask: int) -> bytes:
    """An archive as setuptools makes one on some machine."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for folder in ("pkg", "pkg/a"):
            member = tarfile.TarInfo(folder)
            member.type, member.mode, member.mtime = tarfile.DIRTYPE, 0o777 & ~mask, time
            tar.addfile(member)
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uid, member.uname = (
                len(_FILES[name]),
                time,
                owner,
                f"u{owner}",
            )
            member.mode = (0o777 if name.endswith("run") else 0o666) & ~mask
            tar.addfile(member, io.BytesIO(_FILES[name]))
    return archive.getvalue()


def test_an_archive_is_the_same_whoever_packs_it() -> None:
    names = list(_FILES)
    here = packed(names, 1000, 1_700_000_000, 0o022)
    there = packed(names[::-1], 0, 1_800_000_000, 0o077)
    assert here != there
    assert normalize(here, 1_750_000_000) == normalize(there, 1_750_000_000)
    assert normalize(here, 1_750_000_000) != normalize(here, 1_750_000_001)


def test_an_archive_keeps_its_files() -> None:
    with tarfile.open(fileobj=io.BytesIO(normalize(packed(list(_FILES), 7, 1, 0o022), 2))) as tar:
        members = {member.name: member for member in tar.getmembers()}
        files = {
            name: stream.read()
            for name, member in members.items()
            if (stream := tar.extractfile(member)) is not None
        }
    assert files == _FILES
    assert members["pkg/run"].mode == 0o755
    assert members["pkg/setup.cfg"].mode == 0o644
    assert {(member.uid, member.uname, member.mtime) for member in members.values()} == {(0, "", 2)}


def test_provenance_names_each_file_by_its_digest(tmp_path: Path) -> None:
    files, wheels = tmp_path / "files", tmp_path / "wheels"
    files.mkdir()
    wheels.mkdir()
    (files / "purebpf.whl").write_bytes(b"purebpf")
    (wheels / "build.whl").write_bytes(b"build")
    (wheels / "complete").write_bytes(b"")
    document = statement("c" * 40, 5, files, wheels)
    assert document["subject"] == [
        {"name": "purebpf.whl", "digest": {"sha256": hashlib.sha256(b"purebpf").hexdigest()}}
    ]
    definition = document["predicate"]["buildDefinition"]
    assert [dependency["name"] for dependency in definition["resolvedDependencies"]] == [
        "purebpf",
        "build.whl",
    ]
    assert definition["externalParameters"]["commit"] == "c" * 40
