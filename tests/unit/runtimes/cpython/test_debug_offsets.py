"""What `_PyRuntime` of a live process says is what the headers of its version say."""

from __future__ import annotations

import struct

import pytest

from purebpf.runtimes.cpython.debug_offsets import HEADER_SIZE, read_debug_offsets
from purebpf.runtimes.cpython.layout import NONE
from purebpf.runtimes.cpython.layouts import LAYOUTS

# Read from processes of Debian's python3.13 (3.13.18), python3.14 (3.14.10), python3.15 (3.15.2).
LIVE = {
    0x030D12F0: """
        0 283408 608 632 194984 7272 7264 7344 7400 7656 7640 7648 16 7752 0 7768 7760 312 0
        8 16 72 152 160 232 32 80 8 0 56 72 70 208 112 120 128 136 68 52 96 104 200 16 8 416
        24 88 168 32 24 16 40 24 16 48 32 40 24 16 32 16 24 40 16 32 64 32 16 40 240 200""",
    0x030E0AF0: """
        0 316616 784 808 225864 7280 7272 7344 7360 7408 7688 7672 7680 16 7784 0 7800 7792
        7992 0 832 0 8 16 72 152 160 232 32 88 8 0 56 80 74 64 0 216 112 120 128 136 68 52
        96 104 208 0 16 8 416 24 88 168 40 32 16 40 24 16 200 24 40 32 48 32 40 24 16 32 16
        24 40 16 32 64 32 16 40 264 192 160 24 72 67 0 8""",
    0x030F02F0: """
        0 346568 912 936 226240 7272 7264 7336 7352 7400 7592 7576 7584 16 7736 0 7752 7744
        7944 0 888 0 8 16 72 80 88 96 176 184 256 32 36 40 136 288 0 88 8 0 56 80 74 64 0
        216 112 120 128 136 68 52 96 104 208 0 16 8 424 24 88 168 32 288 944 888 40 32 16 40
        24 16 200 24 40 32 48 32 40 24 16 32 16 24 40 16 32 64 32 16 40 56 176 112 120 1120
        104 160""",
}
"""By PY_VERSION_HEX: the words behind it."""
FREE = """
    1 361664 784 808 246528 7280 7272 7344 7360 7408 7712 7696 7704 16 7808 0 7832 7824 8024
    17628 824 0 8 16 72 152 160 232 32 88 8 0 56 80 78 64 72 240 128 136 144 152 84 68 112 120
    232 224 32 24 432 40 104 184 56 48 32 56 40 32 216 40 56 48 64 48 56 40 32 48 32 40 56 32 48
    80 48 32 56 288 192 176 40 88 83 0 8 24"""
"""Of a build of 3.14 without a GIL."""


def runtime(number: int, words: list[int]) -> bytes:
    raw = b"xdebugpy" + struct.pack(f"<Q{len(words)}Q", number, *words)
    return raw.ljust(HEADER_SIZE, b"\0")


@pytest.mark.parametrize("number", LIVE, ids=hex)
def test_live_offsets_are_those_of_the_headers(number: int) -> None:
    said = read_debug_offsets(runtime(number, list(map(int, LIVE[number].split()))))
    assert said is not None
    assert said.version == (3, number >> 16 & 255)
    assert said.layout == LAYOUTS[said.version]
    assert not said.is_free_threaded


def test_builds_without_a_gil_have_longer_objects_and_code_for_each_thread() -> None:
    said = read_debug_offsets(runtime(0x030E00A0, list(map(int, FREE.split()))))
    assert said is not None
    assert said.is_free_threaded
    layout, usual = said.layout, LAYOUTS[3, 14]
    assert layout is not None
    assert (layout.code_tlbc, layout.frame_tlbc, layout.string_shift) == (224, 72, 6)
    assert (usual.code_tlbc, usual.frame_tlbc, usual.string_shift) == (NONE, NONE, 0)
    fields = ("filename", "name", "first_line", "lines", "version")
    longer = {getattr(layout, f"code_{name}") - getattr(usual, f"code_{name}") for name in fields}
    assert longer == {16}


def test_builds_before_that_share_their_code() -> None:
    words = list(map(int, LIVE[0x030D12F0].split()))
    said = read_debug_offsets(runtime(0x030D12F0, [1, *words[1:]]))
    assert said is not None
    assert said.is_free_threaded
    assert said.layout == LAYOUTS[3, 13]


def test_a_version_that_is_not_known_has_no_layout() -> None:
    words = list(map(int, LIVE[0x030F02F0].split()))
    said = read_debug_offsets(runtime(0x031000A1, words))
    assert said is not None
    assert said.version == (3, 16)
    assert said.layout is None
