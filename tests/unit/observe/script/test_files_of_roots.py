"""Patterns of paths below the root directory of another process."""

from __future__ import annotations

import glob
from pathlib import Path

import pytest

from purebpf.observe.script import user_files
from purebpf.observe.script.user_files import matching_files

PID = 4711


def test_a_pattern_means_files_below_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "[root]"
    (root / "opt").mkdir(parents=True)
    for name, content in (("liba.so", b"\x7fELF"), ("libb.so", b"text"), ("none", b"\x7fELF")):
        (root / "opt" / name).write_bytes(content)
    monkeypatch.setattr(user_files, "root_of", lambda _: str(root))
    monkeypatch.setattr(user_files, "may_meet_one", lambda _: False)
    assert matching_files("/opt/lib*", PID) == ["/opt/liba.so"]
    assert matching_files("/opt/liba.so", PID) == ["/opt/liba.so"]


def test_folders_of_another_users_file_system_are_not_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(pattern: str) -> list[str]:
        raise AssertionError(pattern)

    monkeypatch.setattr(user_files, "root_of", lambda _: f"/proc/{PID}/root")
    monkeypatch.setattr(user_files, "may_meet_one", lambda path: path == f"/proc/{PID}/root/")
    monkeypatch.setattr(user_files, "mapped_files", lambda _: ["/opt/liba.so", "/opt/tool"])
    monkeypatch.setattr(glob, "glob", refuse)
    assert matching_files("/opt/lib*", PID) == ["/opt/liba.so"]
