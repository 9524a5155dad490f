"""From the bytes of .eh_frame to rows: entries, instructions, order, gaps."""

from __future__ import annotations

import struct
import zlib

import pytest

from purebpf.unwind.cfi_file import CfiFile, Function
from purebpf.unwind.rule import CFA_EXPRESSION, UNSUPPORTED, How, Rule
from tests.unit.unwind.cfi_builder import (
    FRAME,
    TEXT,
    X86_CIE,
    Image,
    Section,
    advance,
    cfa_offset,
    cie,
    expression,
    rules,
    sleb,
    uleb,
)

END = TEXT + 0x8000
PLAIN = Rule(7, 8, None, -8, False)
UNDEFINED, SAME = (How.UNDEFINED, 0), (How.SAME, 0)


def interpreted(instructions, **options):
    """The rows of one function of 4 KiB, offsets from its start."""
    section = Section(cie(**options)).fde(TEXT, 0x1000, instructions)
    return [(at - TEXT, rule) for at, rule in rules(section.cfi(), TEXT, TEXT + 0x1000)]


def last(code, **options):
    """The rule that instructions end with, 16 bytes after the function's start."""
    rows = interpreted(advance(16) + code, **options)
    assert rows[-1][0] in (0, 16)
    return rows[-1][1]


def test_a_function_with_a_frame_pointer():
    push, move, pop = (
        advance(1) + cfa_offset(16) + b"\x86\x02",
        advance(3) + b"\x0d\x06",
        advance(9),
    )
    assert interpreted(push + move + pop + b"\x0c\x07\x08") == [
        (0, PLAIN),
        (1, Rule(7, 16, -16, -8, False)),
        (4, Rule(6, 16, -16, -8, False)),
        (13, Rule(7, 8, -16, -8, False)),
    ]


@pytest.mark.parametrize(
    ("code", "offset"),
    [
        (b"\x45", 5),
        (b"\x02\xff", 0xFF),
        (b"\x03\x34\x01", 0x134),
        (b"\x04\x34\x02\0\0", 0x234),
        (b"\x1d\x34\x03" + bytes(6), 0x334),
    ],
)
def test_every_way_to_advance(code, offset):
    assert [at for at, _ in interpreted(code + cfa_offset(16))] == [0, offset]


def test_advances_are_multiplied():
    assert [at for at, _ in interpreted(b"\x45" + cfa_offset(16), code_factor=4)] == [0, 20]


def test_set_loc_is_relative_to_its_own_address():
    section = Section()
    at = len(section.data) + 17 + 1  # head, start, size, size of the augmentation; the operation
    target = TEXT + 0x40 - (FRAME + at)
    section.fde(TEXT, 0x100, b"\x01" + struct.pack("<i", target) + cfa_offset(24))
    expected = [(TEXT, PLAIN), (TEXT + 0x40, PLAIN._replace(cfa=24))]
    assert rules(section.cfi(), TEXT, TEXT + 0x100) == expected
    assert section.cfi().row(TEXT + 0x40).cfa == 24
    assert section.cfi().row(TEXT + 0x3F).cfa == 8


def test_set_loc_cannot_go_back():
    section = Section()
    at = len(section.data) + 17 + 1
    section.fde(TEXT, 0x100, b"\x01" + struct.pack("<i", TEXT - 8 - (FRAME + at)) + cfa_offset(24))
    assert rules(section.cfi(), TEXT, TEXT + 0x100) == [(TEXT, UNSUPPORTED)]


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        (b"\x0c\x06\x20", {"cfa_register": 6, "cfa": 32}),
        (b"\x12\x06\x7c", {"cfa_register": 6, "cfa": 32}),
        (b"\x13\x7b", {"cfa": 40}),
        (b"\x0e\x80\x02", {"cfa": 256}),
        (b"\x86\x80\x01", {"fp": -1024}),
        (b"\x05\x06\x03", {"fp": -24}),
        (b"\x11\x06\x7f", {"fp": 8}),
        (b"\x2f\x06\x02", {"fp": 16}),
        (b"\x14\x06\x02", {"fp": (How.VALUE, -16)}),
        (b"\x15\x06\x7e", {"fp": (How.VALUE, 16)}),
        (b"\x09\x06\x0b", {"fp": (How.REGISTER, 11)}),
        (b"\x07\x10", {"ra": UNDEFINED}),
        (b"\x08\x06", {"fp": SAME}),
        (b"\x86\x02\xc6", {}),
        (b"\x86\x02\x06\x06", {}),
        (b"\x90\x02\xd0", {}),
        (b"\x2e\x10", {}),
        (b"\x2d", {}),
        (b"\0\0", {}),
        (
            expression(0x0F, b"\x76\x78\x06"),
            {"cfa_register": CFA_EXPRESSION, "cfa": b"\x76\x78\x06"},
        ),
        (expression(0x10, b"\x76\0", 6), {"fp": (How.EXPRESSION, b"\x76\0")}),
        (expression(0x16, b"\x30", 6), {"fp": (How.VALUE_EXPRESSION, b"\x30")}),
        (b"\x0a\x0e\x40\x86\x02\x0b", {}),
        (b"\x0e\x40" + expression(0x0F, b"\x76\0") + b"\x0d\x06", {"cfa_register": 6, "cfa": 64}),
    ],
)
def test_every_instruction_changes_the_row(code, changes):
    assert last(code) == PLAIN._replace(**changes)


@pytest.mark.parametrize(
    "code",
    [
        b"\x0b",  # nothing remembered
        b"\x0a" * 100,
        b"\x3f",  # not an instruction
        b"\x0e" + b"\xff" * 20,
        b"\x03\x01",
        b"\x0f\x20\x30",  # the expression passes the end
        b"\x0c\xff\x7f\x08",  # register 16383
    ],
)
def test_what_cannot_be_read_is_unsupported_from_there_on(code):
    rows = interpreted(advance(16) + code)
    assert rows[0] == (0, PLAIN)
    assert rows[-1] == (16, UNSUPPORTED)


def test_a_broken_cie_makes_its_functions_unsupported():
    section = Section(cie(b"\x3f")).fde(TEXT, 16)
    assert rules(section.cfi(), TEXT, END)[0] == (TEXT, UNSUPPORTED)
    assert section.cfi().row(TEXT) is None


def test_the_last_of_several_rows_at_one_address_counts():
    code = b"\x41" + cfa_offset(16) + b"\x40" + cfa_offset(24) + b"\x41" + cfa_offset(24)
    assert [(at, rule.cfa) for at, rule in interpreted(code)] == [(0, 8), (1, 24)]


def test_signal_frames_are_marked():
    section = Section(cie(augmentation=b"zRS")).fde(TEXT, 16)
    assert rules(section.cfi(), TEXT, END)[0] == (TEXT, PLAIN._replace(is_signal=True))
    assert section.cfi().row(TEXT).is_signal


@pytest.mark.parametrize(
    ("encoding", "spelt"),
    [
        (0x00, struct.pack("<QQ", TEXT, 64)),
        (0x01, uleb(TEXT) + uleb(64)),
        (0x02, struct.pack("<HH", TEXT, 64)),
        (0x03, struct.pack("<II", TEXT, 64)),
        (0x04, struct.pack("<QQ", TEXT, 64)),
        (0x09, sleb(TEXT) + uleb(64)),
        (0x0A, struct.pack("<hH", TEXT, 64)),
        (0x0B, struct.pack("<iI", TEXT, 64)),
        (0x0C, struct.pack("<qQ", TEXT, 64)),
        (0x23, struct.pack("<II", TEXT - 0x900, 64)),
        (0x3B, struct.pack("<iI", TEXT - 0x30_0000, 64)),
        (0x80, struct.pack("<QQ", 0x1200, 64)),  # the word at 0x1200 has the address
    ],
)
def test_every_encoding_of_addresses(encoding, spelt):
    section = Section(cie(data=bytes([encoding]))).raw(spelt + b"\0")
    sections = {
        ".eh_frame": (FRAME, section.data),
        ".got": (0x30_0000, b""),
        ".text": (0x900, b""),
    }
    code = bytes(0x200) + struct.pack("<Q", TEXT)
    cfi = CfiFile(Image(sections, code=code))
    assert rules(cfi, TEXT, END) == [(TEXT, PLAIN), (TEXT + 64, None)]


@pytest.mark.parametrize("encoding", [0x05, 0x4B, 0x50, 0x60])
def test_an_encoding_without_meaning_makes_the_entry_broken(encoding):
    section = Section(cie(data=bytes([encoding]))).raw(struct.pack("<QQ", TEXT, 64) + b"\0")
    cfi = section.cfi()
    assert not cfi.rows.starts
    assert cfi.broken == 1


@pytest.mark.parametrize(
    ("augmentation", "data"),
    [
        (b"zPLR", b"\x9b\1\2\3\4\x1b\x1b"),
        (b"zPR", b"\x00" + bytes(8) + b"\x1b"),
        (b"zPR", b"\x01\x85\x02\x1b"),
        (b"zPR", b"\xff\x1b"),
        (b"zLPR", b"\x1b\x0c" + bytes(8) + b"\x1b"),
        (b"zRB", b"\x1b"),
        (b"zRSG", b"\x1b"),
        (b"zR?", b"\x1b\1\2\3"),
    ],
)
def test_augmentations_are_read_or_skipped(augmentation, data):
    section = Section(cie(augmentation=augmentation, data=data)).fde(TEXT, 16)
    assert rules(section.cfi(), TEXT, END)[0][1].cfa == 8


def test_without_augmentation_addresses_are_absolute():
    section = Section(cie(augmentation=b"")).raw(struct.pack("<QQ", TEXT, 16) + cfa_offset(32))
    assert rules(section.cfi(), TEXT, END)[0][1].cfa == 32


def test_the_pointer_of_gcc_2_follows_its_augmentation():
    body = b"\x01eh\0" + bytes(8) + b"\x01\x78\x10" + X86_CIE
    body += bytes(-len(body) % 4)
    section = Section(struct.pack("<II", len(body) + 4, 0) + body)
    section.raw(struct.pack("<QQ", TEXT, 16))
    assert rules(section.cfi(), TEXT, END)[0] == (TEXT, PLAIN)


@pytest.mark.parametrize("augmentation", [b"y", b"armcc+", b"z" * 64])
def test_an_unknown_augmentation_makes_entries_broken(augmentation):
    section = Section(cie(augmentation=augmentation)).fde(TEXT, 16)
    cfi = section.cfi()
    assert not cfi.rows.starts
    assert cfi.broken == 1


def test_entries_are_sorted_and_the_later_start_wins():
    section = Section()
    section.fde(TEXT + 0x100, 0x20, cfa_offset(32))
    section.fde(TEXT, 0x40, cfa_offset(16))
    section.fde(TEXT + 0x10, 0x10, cfa_offset(24))
    found = [(at - TEXT, rule and rule.cfa) for at, rule in rules(section.cfi(), TEXT, END)]
    assert found == [(0, 16), (0x10, 24), (0x20, None), (0x100, 32), (0x120, None)]


@pytest.mark.parametrize("header", [False, True])
def test_entries_without_code_are_passed_over(header):
    section = Section().fde(TEXT, 0x40, cfa_offset(16))
    section.fde(TEXT + 4, 0, cfa_offset(24))
    cfi = section.cfi(header=header)
    assert [at - TEXT for at, _ in rules(cfi, TEXT, END)] == [0, 0x40]
    assert cfi.row(TEXT + 8).cfa == 16
    assert cfi.function(TEXT + 8) == Function(TEXT, TEXT + 0x40)


def test_padding_and_gaps_have_no_rule():
    section = Section()
    section.fde(TEXT, 0x31, cfa_offset(16)).fde(TEXT + 0x40, 0x30).fde(TEXT + 0x80, 0x10)
    found = [(at - TEXT, rule and rule.cfa) for at, rule in rules(section.cfi(), TEXT, END)]
    starts = [0, 0x31, 0x40, 0x70, 0x80, 0x90]
    assert found == list(zip(starts, [16, None, 8, None, 8, None], strict=True))


def test_rows_past_the_end_of_their_function_are_cut():
    section = Section().fde(TEXT, 8, advance(4) + cfa_offset(16) + advance(4) + cfa_offset(24))
    assert [at - TEXT for at, _ in rules(section.cfi(), TEXT, END)] == [0, 4, 8]


def test_entries_outside_of_the_text_are_left_out():
    section = Section().fde(TEXT, 8).fde(TEXT + 0x100000, 8).fde(16, 8)
    assert list(section.cfi().rows.starts) == [TEXT, TEXT + 8]


def test_terminators_in_the_middle_are_passed_over():
    section = Section().fde(TEXT, 16)
    section.data += bytes(8)
    section.fde(TEXT + 64, 16)
    assert [at - TEXT for at, _ in rules(section.cfi(), TEXT, END)] == [0, 16, 64, 80]


def test_equal_instructions_are_interpreted_once():
    section = Section()
    for number in range(100):
        section.fde(TEXT + 64 * number, 32, advance(4) + cfa_offset(16))
    cfi = section.cfi()
    assert len(cfi.rows.starts) == 300
    assert cfi.table.rows_interpreted == 2


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("version", [1, 3, 4])
def test_debug_frame_is_read_like_eh_frame(compressed, version):
    first = bytearray(cie(augmentation=b"", version=version))
    first[4:8] = b"\xff" * 4
    body = struct.pack("<IQQ", 0, TEXT, 64) + cfa_offset(48) + b"\0\0"
    data = bytes(first) + struct.pack("<I", len(body)) + body
    flags = 0
    if compressed:
        data, flags = struct.pack("<IIQQ", 1, 0, len(data), 1) + zlib.compress(data), 0x800
    cfi = CfiFile(Image({".debug_frame": (0, data, flags)}))
    assert not cfi.uses_eh_frame
    assert rules(cfi, TEXT, END) == [(TEXT, PLAIN._replace(cfa=48)), (TEXT + 64, None)]
    assert cfi.row(TEXT + 63).cfa == 48


def test_64_bit_entries():
    body = struct.pack("<I", 0) + cie()[8:]
    data = struct.pack("<IQ", 0xFFFFFFFF, len(body)) + body
    at = len(data)
    body = struct.pack("<IiI", at + 12, TEXT - (FRAME + at + 16), 64) + b"\0" + cfa_offset(56)
    data += struct.pack("<IQ", 0xFFFFFFFF, len(body)) + body
    cfi = CfiFile(Image({".eh_frame": (FRAME, data)}))
    assert rules(cfi, TEXT, END)[0] == (TEXT, PLAIN._replace(cfa=56))


def test_without_section_headers_the_segment_leads_to_the_entries():
    section = Section().fde(TEXT, 64, cfa_offset(16)).fde(TEXT + 256, 64)
    data, header = section.data + bytes(4), section.header()
    image = Image({".eh_frame": (FRAME, data), ".eh_frame_hdr": (0x50_0000, header)})
    found, table = image.section(".eh_frame"), image.section(".eh_frame_hdr")
    image.segments += [
        found._replace(flags=4),
        table._replace(type=0x6474E550),
    ]
    image._sections.clear()
    cfi = CfiFile(image)
    assert [at - TEXT for at, _ in rules(cfi, TEXT, END)] == [0, 64, 256, 320]
    assert cfi.row(TEXT + 20).cfa == 16
    assert cfi.fde(TEXT + 64) is None


def test_another_machine_has_no_rules():
    assert not Section().fde(TEXT, 64).cfi(machine=40).has_rules
    assert not CfiFile(Image({})).has_rules


@pytest.mark.parametrize("header", [False, True])
def test_function_starts_without_symbols(header):
    section = Section().fde(TEXT + 0x20, 0x30).fde(TEXT + 0x100, 0x10)
    cfi = section.cfi(header=header)
    assert cfi.function(TEXT + 0x1F) is None
    assert cfi.function(TEXT + 0x20) == (TEXT + 0x20, TEXT + 0x50)
    assert cfi.function(TEXT + 0x4F) == (TEXT + 0x20, TEXT + 0x50)
    assert cfi.function(TEXT + 0x50) is None
    assert cfi.function(TEXT + 0x10F) == (TEXT + 0x100, TEXT + 0x110)
