"""A node whose heap or file lies: its profile and its dump end, without control characters."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from purebpf.observe.runtimes.v8.v8_process import V8Reading, find_v8
from tests.support.nightly import by_day
from tests.support.programs import nodes
from tests.support.programs.spoiled import EVIL, Put, profiles_and_dump, started, writable

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "x86_64"),
    pytest.mark.skipif(not nodes.default(), reason="there is no node"),
]
NAME = "spins_for_ever_x"
PROGRAM = f"""
function {NAME}() {{ let x = 0; while (true) x = (x * 31 + 1) % 1000003; }}
function outer() {{ require('fs').writeSync(1, 'ready\\n'); {NAME}(); }}
outer();
"""
LARGEST = (1 << 31) - 1


class Place:
    """The innermost function of the first thread of a process.

    Attributes:
        reading: of its V8.
        shared: its SharedFunctionInfo.
    """

    def __init__(self, pid: int, reading: V8Reading) -> None:
        self.reading, self.layout = reading, reading.layout
        self.heap = reading.functions._heap
        for word in words_of_stack(pid):
            shared = reading.functions.shared_of(word) if word & 3 == 1 else 0
            function = reading.functions.find(shared) if shared else None
            if function is not None and function.name == NAME:
                self.shared = shared
                return
        raise AssertionError("the function is not on the stack")

    def script(self) -> int:
        return self.heap.word(self.shared, self.layout.shared_script)

    def name(self) -> int:
        """The string with the name: the function's, or its scope's."""
        holder = self.heap.word(self.shared, self.layout.shared_name)
        words = [holder, *(self.heap.word(holder, 8 * at) for at in range(1, 12))]
        return next(each for each in words if self.heap.is_string(each))

    def bytecode(self) -> int:
        return self.reading.code._bytecode_of(self.shared)


def words_of_stack(pid: int) -> tuple[int, ...]:
    """The words of the stack of the first thread."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    (text,) = [line.split()[0] for line in lines if line.endswith("[stack]")]
    begin, end = (int(each, 16) for each in text.split("-"))
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        raw = os.pread(memory.fileno(), end - begin, begin)
    return struct.unpack(f"<{len(raw) // 8}Q", raw)


Spoil = Callable[[Place, Put], None]


def spoil_text(place: Place, put: Put) -> None:
    """The name of the function has controls and markup."""
    text = place.name() - 1 + 16
    for at in (0, 8):
        put(text + at, int.from_bytes(EVIL[at : at + 8], "little"))


def spoil_length(place: Place, put: Put) -> None:
    """The name has 2^31 characters."""
    at = place.name() - 1 + 8
    put(at, LARGEST << 32)


def spoil_name(place: Place, put: Put) -> None:
    """The scope with the name is the function."""
    put(place.shared - 1 + place.layout.shared_name, place.shared)


def spoil_scope(place: Place, put: Put) -> None:
    """The scope has 2^31 variables."""
    scope = place.heap.word(place.shared, place.layout.shared_name)
    put(scope - 1 + 8 * (1 + place.layout.scope_locals), LARGEST << 32)


def spoil_script(place: Place, put: Put) -> None:
    """The script of the function is the function."""
    put(place.shared - 1 + place.layout.shared_script, place.shared)


def spoil_source(place: Place, put: Put) -> None:
    """The source has 2^31 characters, and its lines are not known."""
    put(place.script() - 1 + place.layout.script_line_ends, 0)
    source = place.heap.word(place.script(), place.layout.script_source)
    put(source - 1 + 8, LARGEST << 32)


def spoil_positions(place: Place, put: Put) -> None:
    """The table of lines has 2^31 bytes."""
    table = place.heap.word(place.bytecode(), place.layout.bytecode_positions)
    put(table - 1 + 8, LARGEST << 32)


def spoil_bytecode(place: Place, put: Put) -> None:
    """The bytecodes of the function are the function."""
    put(place.shared - 1 + place.layout.shared_data, place.shared)


NAMES: dict[Spoil, str] = {
    spoil_text: "evil",
    spoil_length: "outer",
    spoil_name: "outer",
    spoil_scope: "outer",
    spoil_script: "outer",
    spoil_source: f"outer;{NAME}",
    spoil_positions: f"outer;{NAME}",
    spoil_bytecode: f"outer;{NAME}",
}
"""Names that profiles still have."""
OPTIONS = {"interpreter": ["--jitless"], "compiled": []}


@pytest.mark.parametrize("kind", by_day(list(OPTIONS), ["interpreter"]))
@pytest.mark.parametrize("spoil", by_day(list(NAMES), [spoil_text, spoil_source]))
def test_a_spoiled_heap_ends_no_profile(spoil: Spoil, kind: str, tmp_path: Path) -> None:
    (node,) = nodes.default()
    program = tmp_path / "spin.js"
    program.write_text(PROGRAM)
    command = [node, *OPTIONS[kind], program]
    with started(command, 0.5) as process:
        v8 = find_v8(process.pid)
        assert v8 is not None
        with v8, writable(process.pid) as put:
            spoil(Place(process.pid, v8.look()), put)
        folded, html = profiles_and_dump(process.pid)
        assert NAMES[spoil] in folded
        assert NAMES[spoil].rpartition(";")[2] in html
        assert process.poll() is None
