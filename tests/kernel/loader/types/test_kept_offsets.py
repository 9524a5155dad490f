"""Offsets that an index of all types gave are kept for this kernel; nothing else is believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.loader.host.kernel_build_id import kernel_build_id
from purebpf.loader.types import task_offsets
from purebpf.loader.types.kept_offsets import keep_offsets, kept_offsets

pytestmark = pytest.mark.needs("vmlinux_btf")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The directory of a user without any."""
    if not kernel_build_id():
        pytest.skip("this kernel has no build id in /sys/kernel/notes")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "purebpf" / "offsets"


def test_the_second_run_asks_no_index(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = task_offsets.stack_offsets()
    assert list(first) == ["mm", "end_code"]
    texts = {file.read_text() for file in kept.iterdir()}
    assert texts == {f"mm {first['mm']}\n", f"end_code {first['end_code']}\n"}
    monkeypatch.setattr(task_offsets, "kernel_btf", lambda: pytest.fail("asked the index"))
    monkeypatch.setattr(task_offsets, "read_kernel_btf", lambda: pytest.fail("read the types"))
    assert task_offsets.stack_offsets() == first


def test_another_kernel_has_its_own(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_offsets("mm_struct", {"end_code": 8})
    assert kept_offsets("mm_struct", ("end_code",)) == {"end_code": 8}
    for other in (b"\1" * 20, b""):
        monkeypatch.setattr(
            "purebpf.loader.types.kept_offsets.kernel_build_id", lambda build_id=other: build_id
        )
        assert kept_offsets("mm_struct", ("end_code",)) == {}


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"\n", b"\xff", b"end_code", b"end_code 8 8\n", b"other 1\n", b"end_code x\n"),
        *(b"end_code -1\n", b"end_code 99999999\n", b"end_code 8\nother 1\n", b"\0" * 3000),
    ],
)
def test_a_damaged_file_says_nothing(kept: Path, text: bytes) -> None:
    keep_offsets("mm_struct", {"end_code": 8})
    (file,) = kept.iterdir()
    file.write_bytes(text)
    assert kept_offsets("mm_struct", ("end_code",)) == {}


def test_what_others_may_write_is_not_read(kept: Path) -> None:
    keep_offsets("mm_struct", {"end_code": 8})
    (file,) = kept.iterdir()
    file.chmod(0o666)
    assert kept_offsets("mm_struct", ("end_code",)) == {}
    file.chmod(0o600)
    kept.chmod(0o777)
    assert kept_offsets("mm_struct", ("end_code",)) == {}
