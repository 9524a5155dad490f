"""Names that BPF sends of Ruby methods, and a Ruby as BPF has it."""

from __future__ import annotations

import struct

import pytest

from purebpf.errors import NotSupportedError
from purebpf.observe.runtimes.ruby.ruby_layout import pack_ruby_process
from purebpf.observe.runtimes.ruby.ruby_names import describe_ruby
from purebpf.runtimes.memory import Memory
from purebpf.runtimes.ruby.contexts import ContextSlot
from purebpf.runtimes.ruby.frames import BUILT_IN, UNKNOWN_METHOD
from purebpf.runtimes.ruby.layout import LAYOUTS
from tests.unit.runtimes.ruby.fake_ruby import SYMBOLS, FakeRuby

LAYOUT = LAYOUTS[3, 3]
NOTHING = Memory(lambda _at, _size: b"")


def test_code_has_the_texts_of_the_record() -> None:
    texts = (b"block in run/srv/a.rb", 12, 9)
    found = describe_ruby(LAYOUT, NOTHING, 0, texts, (0x5000, 0x6000))
    assert found == ("block in run", "/srv/a.rb")


def test_a_method_of_c_has_the_name_of_its_number() -> None:
    ruby = FakeRuby(LAYOUT)
    ruby.method(b"each", 0xF20)
    memory = Memory(ruby.read)
    texts = (b"", 0, 0)
    assert describe_ruby(LAYOUT, memory, SYMBOLS, texts, (0xF20, 0)) == ("each", BUILT_IN)
    assert describe_ruby(LAYOUT, memory, SYMBOLS, texts, (1 << 40, 0)) == ("", "")
    assert describe_ruby(LAYOUT, memory, 0, texts, (0xF20, 0)) == (UNKNOWN_METHOD, BUILT_IN)


def test_a_long_name_is_read_if_it_begins_as_it_did() -> None:
    name = b"n" * 300
    memory = Memory(lambda at, size: name[:size] if at == 0x5000 else b"")
    texts = (name[:256] + b"/a.rb", 300, 5)
    assert describe_ruby(LAYOUT, memory, 0, texts, (0x5000, 0x6000)) == ("n" * 300, "/a.rb")
    for other in (NOTHING, Memory(lambda _at, size: b"m" * size)):
        found = describe_ruby(LAYOUT, other, 0, texts, (0x5000, 0x6000))
        assert found == ("n" * 256 + "...", "/a.rb")


@pytest.mark.parametrize("version", LAYOUTS)
def test_a_process_is_as_bpf_has_it(version: tuple[int, int]) -> None:
    layout = LAYOUTS[version]
    packed = pack_ruby_process(layout, ContextSlot(48, 8), 1, 2)
    assert len(packed) == 144
    assert struct.unpack_from("<QQiIBBBB", packed) == (1, 2, 8, 48, 1, 0, 4, 0)
    assert struct.unpack_from("<HH", packed, 28) == (layout.context_thread, layout.context_frame)
    assert struct.unpack_from("<H", packed, 42)[0] == layout.frame_size
    assert struct.unpack_from("<H", packed, 58)[0] == layout.line_size
    assert struct.unpack_from("<H", packed, 72)[0] == layout.thread_context
    assert packed[116] == layout.embeds_length
    assert struct.unpack_from("<I", packed, 136)[0] == layout.body_lines


def test_a_program_without_blocks_has_its_context_beside_the_thread_pointer() -> None:
    packed = pack_ruby_process(LAYOUT, ContextSlot(0, -16), 1, 2)
    assert struct.unpack_from("<iIB", packed, 16) == (-16, 0, 0)


def test_other_offsets_than_those_of_bpf_are_refused() -> None:
    with pytest.raises(NotSupportedError, match="frame_env"):
        pack_ruby_process(LAYOUT._replace(frame_env=40), ContextSlot(0, 8), 0, 1)
    with pytest.raises(NotSupportedError):
        pack_ruby_process(LAYOUT._replace(body_line_index=150), ContextSlot(0, 8), 0, 1)
