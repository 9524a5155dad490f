"""A release holds the same bytes wherever it is built, and says of what it consists."""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from scripts.release.normalize_sdist import normalize
from scripts.release.provenance import statement

ROOT = Path(__file__).resolve().parents[2]
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


@pytest.fixture
def signed(tmp_path: Path) -> Path:
    """A folder with files, and their sums signed by the command of release.sh with a new key."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    public = key.with_suffix(".pub").read_text()
    out = tmp_path / "out"
    out.mkdir()
    (out / "allowed_signers").write_text(f"release {public}")
    (out / "purebpf.whl").write_bytes(b"purebpf")
    digest = hashlib.sha256(b"purebpf").hexdigest()
    (out / "SHA256SUMS").write_text(f"{digest}  purebpf.whl\n")
    script = (ROOT / "scripts/release/release.sh").read_text()
    (line,) = re.findall(r"^ *(ssh-keygen -Y sign .*)$", script, re.MULTILINE)
    shell = f"SIGNING_KEY={key} out={out}; {line}"
    subprocess.run(["sh", "-euc", shell], check=True, capture_output=True)
    return out


def check_as_the_page_says(out: Path) -> int:
    """Run the page's commands for a downloaded release; return their exit status."""
    page = (ROOT / "docs/releases.md").read_text()
    block = page.partition("## Check what you downloaded")[2].partition("```console\n")[2]
    lines = re.findall(r"^\$ (.*)$", block.partition("```")[0], re.MULTILINE)
    assert [line.split()[0] for line in lines] == ["sha256sum", "ssh-keygen"]
    script = "\n".join(lines)
    done = subprocess.run(["sh", "-euc", script], cwd=out, capture_output=True, check=False)
    return done.returncode


def test_a_signed_release_is_verified_as_its_page_says(signed: Path) -> None:
    assert check_as_the_page_says(signed) == 0


def test_a_changed_file_is_noticed(signed: Path) -> None:
    (signed / "purebpf.whl").write_bytes(b"another")
    assert check_as_the_page_says(signed) != 0


def test_a_changed_list_of_files_is_noticed(signed: Path) -> None:
    """Somebody replaced a file with its sum, and cannot sign."""
    (signed / "purebpf.whl").write_bytes(b"another")
    digest = hashlib.sha256(b"another").hexdigest()
    (signed / "SHA256SUMS").write_text(f"{digest}  purebpf.whl\n")
    assert check_as_the_page_says(signed) != 0


def test_a_signature_by_another_key_is_noticed(signed: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
    public = other.with_suffix(".pub").read_text()
    (signed / "allowed_signers").write_text(f"release {public}")
    assert check_as_the_page_says(signed) != 0
