"""What a `Symbolizer` gives back between the windows of a run that goes on for weeks."""

from __future__ import annotations

import os

import pytest

from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.symbols.frame import Frame
from purebpf.symbols.symbol_table import SymbolTable
from tests.kernel.symbol_programs import compile_program, running

pytestmark = [pytest.mark.needs("gcc")]


def _ask(symbolizer, child):
    addresses = list(child.functions.values())
    assert all(isinstance(frame, Frame) for frame in symbolizer.user(child.pid, addresses))


def test_tables_of_files_that_were_not_asked_for_in_two_windows_go(tmp_path):
    once, often = (compile_program(tmp_path / name, "-pie", "-fpie") for name in ("once", "often"))
    symbolizer = Symbolizer()
    with running(once) as first, running(often) as second:
        pids = {first.pid, second.pid}
        _ask(symbolizer, first)
        _ask(symbolizer, second)
        names = []
        for _ in range(3):
            symbolizer.forget_but(pids)
            symbolizer._user_answers.clear()
            names.append(_inodes(symbolizer))
            _ask(symbolizer, second)
    inodes = os.stat(once).st_ino, os.stat(often).st_ino
    assert [[inode in known for inode in inodes] for known in names] == [
        [True, True],
        [True, True],
        [False, True],
    ]


def _inodes(symbolizer):
    return {identity.inode for identity in symbolizer._files._tables}


def test_what_is_known_of_files_of_one_process_goes_with_it(tmp_path):
    program = compile_program(tmp_path / "program", "-pie", "-fpie")
    with running(program) as child:
        symbolizer = Symbolizer()
        _ask(symbolizer, child)
        files = symbolizer._files
        identity = next(iter(files._tables))
        mapped = symbolizer.spaces.files(child.pid)[0].file
        files._as_seen[child.pid, mapped] = identity
        symbolizer._starts._identities[child.pid, mapped] = identity
        symbolizer.forget_but({child.pid})
        assert (child.pid, mapped) in files._as_seen
        symbolizer.forget_but({1})
    assert not files._as_seen
    assert not symbolizer._starts._identities


def test_names_that_were_found_stay_known(tmp_path, monkeypatch):
    program = compile_program(tmp_path / "program", "-pie", "-fpie")
    symbolizer = Symbolizer()
    asked = []
    find = SymbolTable.find
    monkeypatch.setattr(SymbolTable, "find", lambda table, at: asked.append(at) or find(table, at))
    for number in range(3):  # windows; each time another process, at another address
        with running(program) as child:
            _ask(symbolizer, child)
            symbolizer.forget_but(set())
        assert len(asked) == 3, f"window {number}"


def test_answers_about_processes_that_have_exited_go(tmp_path):
    program = compile_program(tmp_path / "program", "-pie", "-fpie")
    symbolizer = Symbolizer()
    with running(program) as child:
        _ask(symbolizer, child)
        symbolizer.forget_but({child.pid})
        assert symbolizer._user_answers
        symbolizer.spaces.note_living(set())
        symbolizer.forget_but({child.pid})
    assert not symbolizer._user_answers
