"""A process whose PHP is spoiled: its profile and its dump end, without control characters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from purebpf.observe.runtimes.php.php_process import PhpProcess, find_php
from purebpf.runtimes.memory import Memory
from purebpf.syscall.process_memory import open_process_memory
from tests.support.nightly import by_day
from tests.support.programs import phps
from tests.support.programs.spoiled import EVIL, Put, profiles_and_dump, started, writable

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "x86_64"),
    pytest.mark.skipif(not phps.default(), reason="there is no php"),
]
PROGRAM = """<?php
function spins_for_ever() { $x = 0; echo "ready\\n"; while (true) $x = ($x * 31 + 1) % 1000003; }
function outer() { spins_for_ever(); }
outer();
"""


class Place:
    """The innermost frame of a process.

    Attributes:
        php: its engine.
        memory: its memory.
        frame, function: addresses.
    """

    def __init__(self, php: PhpProcess, memory: Memory) -> None:
        self.php, self.memory, layout = php, memory, php.layout
        self.frame = memory.number(php.state.executor + layout.current)
        self.function = memory.number(self.frame + layout.frame_function)

    def name(self) -> int:
        """The address of the name of the function."""
        return self.memory.number(self.function + self.php.layout.function_name)


Spoil = Callable[[Place, Put], None]


def spoil_text(place: Place, put: Put) -> None:
    """The name of the function has controls and markup."""
    text = place.name() + place.php.layout.string_text
    for at in (0, 8):
        put(text + at, int.from_bytes(EVIL[at : at + 8], "little"))


def spoil_length(place: Place, put: Put) -> None:
    """The name has 2^62 characters."""
    put(place.name() + place.php.layout.string_length, 1 << 62)


def spoil_name(place: Place, put: Put) -> None:
    """The name is nowhere."""
    put(place.function + place.php.layout.function_name, 1 << 62)


def spoil_file(place: Place, put: Put) -> None:
    """The file of the function is the function."""
    put(place.function + place.php.layout.function_file, place.function)


def spoil_class(place: Place, put: Put) -> None:
    """The class of the function is its frame."""
    put(place.function + place.php.layout.function_scope, place.frame)


def spoil_chain(place: Place, put: Put) -> None:
    """The frame is its own caller."""
    put(place.frame + place.php.layout.frame_previous, place.frame)


def spoil_function(place: Place, put: Put) -> None:
    """The function of the caller is the frame."""
    caller = place.memory.number(place.frame + place.php.layout.frame_previous)
    put(caller + place.php.layout.frame_function, place.frame)


def spoil_lines(place: Place, put: Put) -> None:
    """The instructions of the function are nowhere, and there are 2^32 of them."""
    put(place.function + place.php.layout.function_opcodes, 1 << 62)
    put(place.function + place.php.layout.function_last, (1 << 32) - 1)


def spoil_delegation(place: Place, put: Put) -> None:
    """The caller has no function, and its object is the frame."""
    caller = place.memory.number(place.frame + place.php.layout.frame_previous)
    put(caller + place.php.layout.frame_function, 0)
    put(caller + place.php.layout.frame_object, place.frame)
    put(caller + place.php.layout.frame_info, 8)


NAMES: dict[Spoil, str] = {
    spoil_text: "evil",
    spoil_length: "outer",
    spoil_name: "outer",
    spoil_file: "outer",
    spoil_class: "outer",
    spoil_chain: "spins_for_ever",
    spoil_function: "spins_for_ever",
    spoil_lines: "outer;spins_for_ever",
    spoil_delegation: "spins_for_ever",
}
"""Names that profiles still have."""


@pytest.mark.parametrize("spoil", by_day(list(NAMES), [spoil_text, spoil_chain]))
def test_a_spoiled_engine_ends_no_profile(spoil: Spoil, tmp_path: Path) -> None:
    (path,) = phps.default()
    program = tmp_path / "spin.php"
    program.write_text(PROGRAM)
    with started([path, program], 0.2) as process:
        php, memory = find_php(process.pid), open_process_memory(process.pid)
        assert php is not None
        assert memory is not None
        with php, memory, writable(process.pid) as put:
            spoil(Place(php, Memory(memory.read)), put)
        folded, html = profiles_and_dump(process.pid)
        assert NAMES[spoil] in folded
        assert NAMES[spoil].rpartition(";")[2] in html
        assert process.poll() is None
