"""Answers of earlier runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("iced_x86", reason="the extra purebpf[types] is not installed")

from purebpf.dataflow.stored import Answer
from purebpf.tools.types.kept_answers import KeptAnswers

ANSWER = Answer("main", "no memory operand")


def kept(
    where: Path, build_id: str = "ab12", owner: int | None = None, **asked: bool
) -> KeptAnswers:
    own = os.geteuid() if owner is None else owner
    is_precise = asked.get("is_precise", False)
    return KeptAnswers(build_id, own, is_precise=is_precise, directory=str(where))


def test_another_run_has_the_answers_of_the_first(tmp_path: Path) -> None:
    first = kept(tmp_path / "cache")
    assert first.get(16) is None
    first.add(16, ANSWER)
    first.save()
    assert kept(tmp_path / "cache").get(16) == ANSWER
    assert kept(tmp_path / "cache", is_precise=True).get(16) is None
    assert kept(tmp_path / "cache", "cd34").get(16) is None


@pytest.mark.parametrize(("build_id", "owner"), [("", None), ("ab12", 54321)])
def test_files_of_others_and_without_a_build_id_are_not_kept(
    tmp_path: Path, build_id: str, owner: int | None
) -> None:
    first = kept(tmp_path / "cache", build_id, owner)
    first.add(16, ANSWER)
    first.save()
    assert not (tmp_path / "cache").exists()
    assert kept(tmp_path / "cache", build_id, owner).get(16) is None


@pytest.mark.parametrize("damage", [b"", b"{}", b"[" * 100_000, b"\xff", b'{"answers":[1]}'])
def test_a_damaged_file_is_dropped(tmp_path: Path, damage: bytes) -> None:
    first = kept(tmp_path / "cache")
    first.add(16, ANSWER)
    first.save()
    (file,) = (tmp_path / "cache").iterdir()
    file.write_bytes(damage)
    assert kept(tmp_path / "cache").get(16) is None
    assert not file.exists()
