"""Rows of Go programs get the functions that the compiler inlined."""

from __future__ import annotations

import pytest

from purebpf.results.model.profile import Labels, Row
from purebpf.symbols.frame import Frame
from purebpf.tools.triage import inlined_frames
from purebpf.tools.triage.inlined_frames import with_inlined


def frame(name: str, address: int) -> Frame:
    return Frame(name, 4, "/srv/app", address, "user")


STACK = (frame("main.list", 0x100), frame("main.serve", 0x200))


def row(pid: int) -> Row:
    return Row(STACK, None, 3, Labels("app", pid))


def test_inlined_functions_stand_before_the_one_whose_code_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def functions(pid: int, addresses: set[int]) -> dict[int, tuple[str, ...]]:
        asked.append((pid, addresses))
        return {0x200: ("main.inner", "main.outer")}

    monkeypatch.setattr(inlined_frames, "inlined_functions", functions)
    (found, other) = with_inlined([row(7), row(8)], {7})
    assert asked == [(7, {0x101, 0x200})], "the innermost instruction is not over"
    names = [(one.name, one.kind) for one in found.user or ()]
    assert names == [
        ("main.list", "user"),
        ("main.inner", "inlined"),
        ("main.outer", "inlined"),
        ("main.serve", "user"),
    ]
    assert (found.weight, other) == (3, row(8))
