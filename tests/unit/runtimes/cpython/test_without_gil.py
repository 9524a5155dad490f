"""`profile --gil` says which processes have no GIL to hold."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

import pytest

from purebpf.observe.runtimes.cpython import interpreter_table
from purebpf.observe.runtimes.cpython.interpreter_table import InterpreterTable
from purebpf.runtimes.cpython.layouts import LAYOUTS
from purebpf.runtimes.cpython.thread_slot import ThreadSlot
from purebpf.symbols.budget import Budget

if TYPE_CHECKING:
    from purebpf.loader.rings.record_types import RecordMap

_VERSION = (3, 13)


class _Python:
    """What `find_python` finds."""

    version = _VERSION
    layout = LAYOUTS[_VERSION]
    runtime = 0x1000
    loop = ()
    path = "/usr/bin/python3.13t"
    file = (1, 2, 3, 4)
    is_stuck = False

    def __init__(self, *, free: bool) -> None:
        self.is_free_threaded = free

    def main_interpreter(self) -> int:
        """Not known."""
        return 0

    def close(self) -> None:
        """Nothing is open."""


class _Map:
    def fileno(self) -> int:
        return -1


def _table(monkeypatch: pytest.MonkeyPatch, *, free: bool) -> InterpreterTable:
    """With this process as one that runs an interpreter."""
    monkeypatch.setattr(interpreter_table, "find_python", lambda *_args: _Python(free=free))
    monkeypatch.setattr(interpreter_table, "_slot", lambda _python: ThreadSlot(0x310))
    for command in ("map_update_elem", "map_delete_elem"):
        monkeypatch.setattr(interpreter_table.bpf, command, lambda *_args: None)
    table = InterpreterTable(cast("RecordMap", _Map()), Budget())
    table.publish(os.getpid(), os.getpid())
    return table


def test_a_process_without_a_gil_that_has_no_samples_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (hint,) = _table(monkeypatch, free=True).without_gil(())
    assert hint == (
        f"--gil leaves process {os.getpid()} out: its CPython 3.13 is built without a GIL"
    )


def test_a_process_with_samples_had_a_gil(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _table(monkeypatch, free=True).without_gil({os.getpid()})


def test_nothing_is_said_of_other_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _table(monkeypatch, free=False).without_gil(())


def test_processes_that_are_gone_and_not_kept_are_not_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = _table(monkeypatch, free=True)
    table.forget(os.getpid(), next(iter(table.by_generation)))
    table.forget_but({os.getpid()})
    assert table.without_gil(())
    table.forget_but(())
    assert not table.without_gil(())
