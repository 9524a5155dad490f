"""A process whose Ruby is spoiled: its profile and its dump end, without control characters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from purebpf.measure.targets import PidNamespace
from purebpf.observe.instruments.thread_registers import ThreadRegisters
from purebpf.observe.runtimes.ruby.ruby_process import RubyProcess, find_ruby
from purebpf.runtimes.memory import Memory
from purebpf.runtimes.ruby.contexts import read_context
from purebpf.runtimes.ruby.objects import text_place
from tests.support.nightly import by_day
from tests.support.programs import rubies
from tests.support.programs.spoiled import EVIL, Put, profiles_and_dump, started, writable

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "x86_64"),
    pytest.mark.skipif(not rubies.default(), reason="there is no ruby"),
]
PROGRAM = """
define_method(:spin) do
  $stdout.puts "ready"
  $stdout.flush
  while true; end
end
spin
"""


def spoil_name(ruby: RubyProcess, body: int, put: Put) -> None:
    """The name of the method has 2^62 characters."""
    put(word(ruby, body + ruby.layout.body_label) + 16, 1 << 62)


def spoil_label(ruby: RubyProcess, body: int, put: Put) -> None:
    """The name of the method is nowhere."""
    put(body + ruby.layout.body_label, 1 << 62)


def spoil_lines(ruby: RubyProcess, body: int, put: Put) -> None:
    """The table of lines has 2^32 entries, and its index is nowhere."""
    put(body + ruby.layout.body_lines_size, (1 << 32) - 1)
    put(body + ruby.layout.body_line_index, 1 << 62)


def spoil_path(ruby: RubyProcess, body: int, put: Put) -> None:
    """The file of the method is a method."""
    put(body + ruby.layout.body_path, body)


def spoil_text(ruby: RubyProcess, body: int, put: Put) -> None:
    """The name of the method, as long as "block in <main>", has controls and markup."""
    label = word(ruby, body + ruby.layout.body_label)
    place, length = text_place(ruby.layout, Memory(ruby.read), label)
    assert length == len(EVIL) - 1
    for at in (0, 8):
        put(place + at, int.from_bytes(EVIL[at : at + 8], "little"))


def word(ruby: RubyProcess, at: int) -> int:
    """A word of the process."""
    return Memory(ruby.read).number(at)


@pytest.mark.parametrize(
    "spoil",
    by_day(
        [spoil_text, spoil_name, spoil_label, spoil_lines, spoil_path], [spoil_text, spoil_lines]
    ),
)
def test_a_spoiled_interpreter_ends_no_profile(
    spoil: Callable[[RubyProcess, int, Put], None], tmp_path: Path
) -> None:
    (path,) = rubies.default()
    program = tmp_path / "spin.rb"
    program.write_text(PROGRAM)
    with started([path, program], 0.5) as process:  # then it is in the method itself
        ruby = find_ruby(process.pid)
        assert ruby is not None
        with ruby, ThreadRegisters(process.pid, PidNamespace.own()) as threads:
            pointer = threads.list()[process.pid].pthread
            context = read_context(Memory(ruby.read), ruby.slot, pointer)
            frame = word(ruby, context + ruby.layout.context_frame)
            code = word(ruby, frame + ruby.layout.frame_iseq)
            body = word(ruby, code + ruby.layout.iseq_body)
            with writable(process.pid) as put:
                spoil(ruby, body, put)
        names = {spoil_text: "evil", spoil_lines: "block in "}
        folded, html = profiles_and_dump(process.pid)
        assert names.get(spoil, "<main>") in folded
        assert names.get(spoil, "") in html
        assert process.poll() is None
