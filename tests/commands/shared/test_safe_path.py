"""`python -m` in a directory of others: refused, with what to type, before anything is imported."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

OTHER = 65534


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A directory like /tmp, with what another user has put there."""
    directory = tmp_path / "sticky"
    directory.mkdir()
    for name in ("argparse", "demangle", "textwrap", "shlex"):
        (directory / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    directory.chmod(0o1777)
    return directory


def run(directory: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python -m purebpf profile --help` there."""
    clean = {name: os.environ[name] for name in os.environ if not name.startswith("SUDO_")}
    return subprocess.run(
        [sys.executable, *options, "-m", "purebpf", "profile", "--help"],
        cwd=directory,
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_others_may_write(planted: Path) -> None:
    refused = run(planted)
    assert refused.returncode == 2
    assert refused.stdout == ""
    said, advice = refused.stderr.splitlines()
    directory = str(planted)
    assert said == (
        f"purebpf: refusing to import Python modules from {directory!r}: any user may write there."
    )
    assert advice.startswith("Use the command `purebpf`, or: ")
    words = shlex.split(advice.partition(", or: ")[2])
    assert words == [sys.executable, "-P", "-m", "purebpf", "profile", "--help"]
    assert not (planted.parent / "ran").exists()
    helped = subprocess.run(words, cwd=planted, capture_output=True, text=True, check=False)
    assert helped.returncode == 0, helped.stderr
    assert helped.stdout.startswith("usage: purebpf profile")
    assert not (planted.parent / "ran").exists()


def test_with_a_safe_path(planted: Path) -> None:
    assert run(planted, "-P").returncode == 0
    assert run(planted, PYTHONSAFEPATH="1").returncode == 0
    assert not (planted.parent / "ran").exists()


@pytest.mark.needs("chown")
def test_a_directory_of_another_user(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert run(tmp_path).returncode == 0
    os.chown(tmp_path, OTHER, OTHER)
    refused = run(tmp_path)
    assert refused.returncode == 2
    assert f"it belongs to UID {OTHER}" in refused.stderr
    assert run(tmp_path, SUDO_UID=str(OTHER), SUDO_GID=str(OTHER)).returncode == 0


@pytest.mark.needs("chown")
def test_a_directory_of_a_group(tmp_path: Path) -> None:
    os.chown(tmp_path, -1, OTHER)
    tmp_path.chmod(0o775)
    assert f"group {OTHER} may write there" in run(tmp_path).stderr
    tmp_path.chmod(0o755)
    assert run(tmp_path).returncode == 0


def test_a_library_does_not_mind(planted: Path) -> None:
    (planted / "textwrap.py").unlink()
    done = subprocess.run(
        [sys.executable, "-c", "import purebpf; purebpf.read_object"],
        cwd=planted,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
