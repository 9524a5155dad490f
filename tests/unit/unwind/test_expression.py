"""DWARF expressions, and the forms that rules for BPF are made of."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.unwind.expression import (
    ExpressionError,
    added_to_word,
    evaluate,
    plt_threshold,
    register_form,
)
from tests.unit.unwind.cfi_builder import sleb, uleb

_REGISTERS = {7: 0x7000, 16: 0x100B, 6: None}
_MEMORY = struct.pack("<4Q", 0x1122334455667788, 2, 3, 4)
_WORD = 1 << 64


def _read(address, size):
    return int.from_bytes(_MEMORY[address - 0x7000 :][:size], "little")


def value(code, start=None):
    return evaluate(code, _REGISTERS.get, _read, start)


def _lit(*numbers):
    return b"".join(b"\x11" + sleb(number) for number in numbers)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (b"\x4f", 31),
        (b"\x77\x08", 0x7008),
        (b"\x92\x07\x7f", 0x6FFF),
        (b"\x03" + struct.pack("<Q", 99), 99),
        (b"\x08\xff", 255),
        (b"\x09\xff", _WORD - 1),
        (b"\x0a\x01\x02", 0x201),
        (b"\x0b\xfe\xff", _WORD - 2),
        (b"\x0c\1\0\0\1", 0x1000001),
        (b"\x0d\xff\xff\xff\xff", _WORD - 1),
        (b"\x0e" + b"\1" * 8, 0x0101010101010101),
        (b"\x0f" + b"\xff" * 8, _WORD - 1),
        (b"\x10" + uleb(300), 300),
        (b"\x11" + sleb(-300), _WORD - 300),
        (b"\x77\x00\x06", 0x1122334455667788),
        (b"\x77\x00\x94\x02", 0x7788),
        (b"\x77\x08\x06\x23\x05", 7),
        (_lit(1, 2) + b"\x12\x22\x22", 5),
        (_lit(1, 2) + b"\x13", 1),
        (_lit(1, 2) + b"\x14", 1),
        (_lit(5, 6, 7) + b"\x15\x02", 5),
        (_lit(1, 2) + b"\x16\x1c", 1),
        (_lit(1, 2, 3) + b"\x17", 2),
        (_lit(1, 2, 3) + b"\x17\x13", 1),
        (_lit(1, 2, 3) + b"\x17\x13\x13", 3),
        (_lit(-5) + b"\x19", 5),
        (_lit(5) + b"\x1f", _WORD - 5),
        (_lit(0) + b"\x20", _WORD - 1),
        (_lit(12, 10) + b"\x1a", 8),
        (_lit(12, 10) + b"\x21", 14),
        (_lit(12, 10) + b"\x27", 6),
        (_lit(-7, 2) + b"\x1b", _WORD - 3),
        (_lit(7, 2) + b"\x1d", 1),
        (_lit(-7, 2) + b"\x1e", _WORD - 14),
        (_lit(1, 70) + b"\x24", 0),
        (_lit(1, 4) + b"\x24", 16),
        (_lit(-1, 60) + b"\x25", 15),
        (_lit(-16, 2) + b"\x26", _WORD - 4),
        (_lit(2, 2) + b"\x29", 1),
        (_lit(-2, 2) + b"\x2a", 0),
        (_lit(3, 2) + b"\x2b", 1),
        (_lit(-3, 2) + b"\x2c", 1),
        (_lit(2, 2) + b"\x2d", 0),
        (_lit(2, 3) + b"\x2e", 1),
        (b"\x31\x28\x01\0\x30\x32", 2),
        (b"\x31\x2f\x01\0\x32", 1),
        (b"\x31\x96", 1),
    ],
)
def test_every_operation_has_its_value(code, expected):
    assert value(code) == expected


def test_it_can_start_with_the_cfa():
    assert value(b"\x38\x1c", 0x100) == 0xF8


@pytest.mark.parametrize(
    "code",
    [
        b"",
        b"\x2f\xfd\xff",  # jumps to itself
        b"\x30\x2f\xfc\xff",  # grows for ever
        b"\x2f\x00\x80",  # before the start
        b"\x22",
        b"\x76\0",  # a register that is lost
        b"\x50",  # reg0 is a location
        b"\x9c",
        _lit(1, 0) + b"\x1b",
        _lit(1, 0) + b"\x1d",
        b"\x77\x00\x94\x03",
        b"\x0c\1",
        b"\x15\x09",
        b"\x10" + b"\xff" * 40,
    ],
)
def test_what_has_no_value(code):
    with pytest.raises(ExpressionError):
        value(code)


@given(st.binary(max_size=200))
def test_any_bytes_have_a_value_or_none(code):
    try:
        assert 0 <= value(code, 0x7000) < _WORD
    except ExpressionError:
        pass


def test_the_expression_of_a_plt():
    code = bytes.fromhex("77088000 3f1a3b2a 332422")
    assert plt_threshold(code) == 11
    assert value(code) == 0x7010  # rip & 15 is 11
    assert plt_threshold(code.replace(b"\x3b", b"\x3a")) == 10
    assert plt_threshold(code[:-1]) is None
    assert plt_threshold(code.replace(b"\x33", b"\x34")) is None
    assert plt_threshold(bytes.fromhex("74047800 3f1a3b2a 322422")) == 11  # i386
    assert plt_threshold(bytes.fromhex("74047800 3f1a3b2a 332422")) is None


def test_a_register_form_is_taken_apart():
    assert register_form(b"\x76\x78\x06") == (6, -8, b"\x06")
    assert register_form(b"\x77\x80\x01") == (7, 128, b"")
    assert register_form(b"\x31") is None
    assert register_form(b"\x76\xff") is None
    assert register_form(b"") is None


@pytest.mark.parametrize(
    ("code", "added"),
    [
        ("06", 0),
        ("064022", 16),
        ("06087f22", 127),
        ("062308", 8),
        ("06088022", None),
        ("0640", None),
        ("06401c", None),  # minus
        ("", None),
        ("2208", None),
    ],
)
def test_a_number_that_is_added_to_a_word(code, added):
    assert added_to_word(bytes.fromhex(code)) == added
