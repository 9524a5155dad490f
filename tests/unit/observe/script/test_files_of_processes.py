"""Files by the name that a process in another mount namespace has for them."""

from __future__ import annotations

import os

import pytest

from purebpf.observe.script import user_files
from purebpf.observe.script.user_files import in_process

LIBC, PROGRAM = "/usr/lib/x86_64-linux-gnu/libc.so.6", "/srv/shop"
PID = 4711


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that sees its own program and library, and nothing else that has code."""
    root = f"/proc/{PID}/root"
    monkeypatch.setattr(user_files, "mapped_files", lambda _: [PROGRAM, LIBC])
    monkeypatch.setattr(user_files, "_has_own_mounts", lambda _: True)
    monkeypatch.setattr(os.path, "exists", {root + LIBC, root + PROGRAM}.__contains__)


@pytest.mark.parametrize("name", [LIBC, "libc.so.6", "libc", "c"])
def test_a_library_by_path_and_by_name(name: str) -> None:
    assert in_process(name, PID) == f"/proc/{PID}/root{LIBC}"


def test_a_program_by_name() -> None:
    assert in_process("shop", PID) == f"/proc/{PID}/root{PROGRAM}"


@pytest.mark.parametrize("name", ["libm.so.6", "/usr/bin/other", "./shop"])
def test_a_file_that_it_does_not_have_keeps_its_name(name: str) -> None:
    assert in_process(name, PID) == name


def test_the_files_of_this_mount_namespace_keep_their_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(user_files, "_has_own_mounts", lambda _: False)
    assert in_process("libc", PID) == "libc"
    assert in_process(LIBC, PID) == LIBC
