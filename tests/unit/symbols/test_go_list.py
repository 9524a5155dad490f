"""The list of goroutines of a stripped Go program."""

from __future__ import annotations

import struct

import pytest

from purebpf.symbols import go_list
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.go_list import list_in_code
from tests.unit.symbols.test_go_table import _image

_START, _LIST = 0x1040, 0x9000


def _load(target: int, at: int) -> bytes:
    """mov rax, [rip + distance]"""
    return b"\x48\x8b\x05" + struct.pack("<i", target - (at + 7))


def _code(*targets: int) -> bytes:
    code = b""
    for target in targets:
        code += _load(target, _START + len(code))
    return code.ljust(64, b"\x90")


def _found(monkeypatch: pytest.MonkeyPatch, code: bytes, name: bytes = b"runtime.allgadd"):
    image = _image(b"\0" * 80)
    functions = [(0x1000, 0x40, b"runtime.main"), (_START, len(code), name)]
    monkeypatch.setattr(go_list, "go_functions", lambda _: iter(functions))
    text = next(one for one in image.sections if 0 <= _START - one.address < one.size)
    whole = image.read
    place = text.offset + _START - text.address

    def read(offset, size):
        return code[:size] if offset == place else whole(offset, size)

    monkeypatch.setattr(ElfImage, "read", lambda _, offset, size: read(offset, size))
    return list_in_code(image)


def test_three_words_in_a_row_are_the_list(monkeypatch):
    code = _code(0x8800, _LIST + 8, _LIST, _LIST + 16, 0xA000)
    assert _found(monkeypatch, code) == _LIST


@pytest.mark.parametrize(
    "targets",
    [
        (_LIST, _LIST + 8),
        (_LIST, _LIST + 8, _LIST + 16, _LIST + 24),
        (_LIST + 4, _LIST + 12, _LIST + 20),
    ],
    ids=["two words", "four words", "no whole words"],
)
def test_code_that_does_not_tell(monkeypatch, targets):
    assert _found(monkeypatch, _code(*targets)) is None


def test_programs_without_that_function(monkeypatch):
    code = _code(_LIST, _LIST + 8, _LIST + 16)
    assert _found(monkeypatch, code, b"main.allgadd") is None
