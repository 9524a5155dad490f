"""Call frame information made from bytes, and a file around it."""

from __future__ import annotations

import struct
from typing import NamedTuple

from purebpf.unwind.cfi_file import CfiFile

TEXT, FRAME, HEADER = 0x1000, 0x40_0000, 0x50_0000
"""Addresses of the text, .eh_frame and .eh_frame_hdr of an `Image`."""

X86_CIE = bytes([0x0C, 7, 8, 0x80 | 16, 1])
"""def_cfa rsp+8; the return address is at CFA-8."""


class Part(NamedTuple):
    """A section or segment."""

    type: int
    flags: int
    offset: int
    address: int
    size: int

    @property
    def file_size(self):
        return self.size


FRAMES = b"\x55\x48\x89\xe5" + b"\x90" * 4
"""A function that sets up a frame pointer: code without rules is followed by it."""


class Image:
    """What of an ELF file the unwinder looks at."""

    is64, order, entry = True, "<", 0

    def __init__(self, sections, machine=62, text=0x10000, code=b""):
        self.machine = machine
        self._sections = {}
        data = code
        if text <= 1 << 20:
            fill = FRAMES * (text // len(FRAMES) + 1)
            data = (code + fill[len(code) :])[:text]
        self.segments = [Part(1, 5, 0, TEXT, text)]
        for name, (address, contents, *flags) in sections.items():
            self._sections[name] = Part(1, *(flags or [2]), len(data), address, len(contents))
            data += contents
        self.data = data

    def section(self, name):
        return self._sections.get(name)

    def read(self, offset, size):
        return self.data[offset : offset + size]


def uleb(number):
    out = b""
    while True:
        number, low = number >> 7, number & 127
        out += bytes([low | (128 if number else 0)])
        if not number:
            return out


def sleb(number):
    out = b""
    while True:
        low, number = number & 127, number >> 7
        done = (number == 0 and not low & 64) or (number == -1 and low & 64)
        out += bytes([low | (0 if done else 128)])
        if done:
            return out


def cie(  # noqa: PLR0913
    code=X86_CIE, augmentation=b"zR", data=b"\x1b", *, version=1, factor=-8, ra=16, code_factor=1
):
    """A CIE of .eh_frame."""
    column = bytes([ra]) if version == 1 else uleb(ra)
    body = bytes([version]) + augmentation + b"\0"
    body += b"\x08\0" if version == 4 else b""
    body += uleb(code_factor) + sleb(factor) + column
    if augmentation.startswith(b"z"):
        body += uleb(len(data)) + data
    return _framed(struct.pack("<I", 0) + body + code)


def _framed(body):
    body += bytes(-len(body) % 4)
    return struct.pack("<I", len(body)) + body


class Section:
    """.eh_frame under construction; entries refer to the CIE added last."""

    def __init__(self, first=None):
        self.data = b""
        self.cie_at = 0
        self.offsets = {}
        self.add_cie(cie() if first is None else first)

    def add_cie(self, data):
        self.cie_at = len(self.data)
        self.data += data
        return self

    def fde(self, start, size, code=b"", *, sized=True):
        at = len(self.data)
        self.offsets[start] = at
        body = struct.pack("<IiI", at + 4 - self.cie_at, start - (FRAME + at + 8), size)
        self.data += _framed(body + (b"\0" if sized else b"") + code)
        return self

    def raw(self, body):
        """An entry with a body of its own, after the pointer to the CIE."""
        at = len(self.data)
        self.data += _framed(struct.pack("<I", at + 4 - self.cie_at) + body)
        return self

    def header(self, starts=None):
        """.eh_frame_hdr, sorted."""
        starts = sorted(self.offsets) if starts is None else starts
        rows = b"".join(
            struct.pack("<ii", start - HEADER, FRAME + self.offsets[start] - HEADER)
            for start in starts
        )
        head = b"\x01\x1b\x03\x3b" + struct.pack("<iI", FRAME - HEADER - 4, len(starts))
        return head + rows

    def cfi(self, *, header=False, **options):
        """The file."""
        sections = {".eh_frame": (FRAME, self.data)}
        if header:
            sections[".eh_frame_hdr"] = (HEADER, self.header())
        return CfiFile(Image(sections, **options))


def advance(bytes_):
    return b"\x04" + struct.pack("<I", bytes_)


def cfa_offset(bytes_):
    return b"\x0e" + uleb(bytes_)


def expression(operation, code, register=None):
    where = b"" if register is None else uleb(register)
    return bytes([operation]) + where + uleb(len(code)) + code


def rules(cfi, start, end):
    """(start, rule) of the rows of a file in [start, end); None: no rule."""
    rows = cfi.rows
    return [
        (at, cfi.table.rules[number] if number else None)
        for at, number in zip(rows.starts, rows.ids, strict=True)
        if start <= at < end
    ]
