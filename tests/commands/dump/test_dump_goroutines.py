"""`purebpf dump` of a Go program shows its goroutines that wait."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from purebpf.tools.dump.render import document, lines
from purebpf.tools.dump.session import dump
from tests.support.programs import goroutines

pytestmark = pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf", "go")


def test_goroutines_are_counted_by_function(tmp_path: Path) -> None:
    with goroutines.waiting(tmp_path) as pid:
        dumped = dump(pid)
    text = "".join(lines(dumped))
    assert f"  {goroutines.LOCKING} goroutines wait for a lock in main.takeLock\n" in text
    assert (
        f"  {goroutines.SENDING} goroutines idle: wait to send to a channel in main.sendItem\n"
        in text
    )
    groups = json.loads(document(dumped))["goroutines"]
    put = next(one for one in groups if one["number"] == goroutines.PASSING)
    assert {"kind": "inlined", "name": "main.putItem"}.items() <= put["frames"][-3].items()
    locking = next(one for one in groups if one["number"] == goroutines.LOCKING)
    names = [frame["name"] for frame in locking["frames"]]
    assert names[-2:] == ["main.takeLock", "runtime.goexit.abi0"]
    assert "sync.(*Mutex).lockSlow" in names


def test_a_stripped_program_has_its_goroutines_too(tmp_path: Path) -> None:
    with goroutines.waiting(tmp_path, "-ldflags=-s -w") as pid:
        text = "".join(lines(dump(pid)))
    assert f"  {goroutines.LOCKING} goroutines wait for a lock in main.takeLock\n" in text


def test_a_program_without_goroutines_has_none() -> None:
    dumped = dump(os.getpid())
    assert dumped.goroutines == ()
    assert " goroutine" not in "".join(lines(dumped))
