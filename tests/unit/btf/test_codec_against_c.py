"""Compilers as oracles: clang describes a struct, gcc fills it, the codec reads and writes it."""

from __future__ import annotations

import io
import subprocess

import pytest
from elftools.elf.elffile import ELFFile

from purebpf.btf.codec.codecs import codec
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf

DECLARATION = r"""
typedef unsigned char u8;
enum color { RED = -1, GREEN = 7 };
struct point { short x; long long y; };
struct sample {
    u8 tag;
    _Bool flag;
    char name[11];
    unsigned low : 3;
    int middle : 9;
    unsigned long long high : 40;
    enum color color;
    float f;
    double d;
    struct point points[2];
    union { unsigned int word; struct { unsigned short a, b; }; };
    int matrix[2][3];
    __int128 wide;
    u8 raw[3];
    void *pointer;
    unsigned char last : 5;
};
"""

PROGRAM = """
#include <stdio.h>
#include <string.h>
DECLARATION
int main(void) {
    struct sample s;
    memset(&s, 0, sizeof s);
    s.tag = 200; s.flag = 1; strcpy(s.name, "hello");
    s.low = 5; s.middle = -200; s.high = 0xabcdef0123ULL;
    s.color = RED; s.f = 1.5f; s.d = -2.25;
    s.points[0].x = -3; s.points[0].y = 1LL << 40; s.points[1].x = 4; s.points[1].y = -5;
    s.a = 0x1122; s.b = 0x3344;
    for (int i = 0; i < 6; i++) s.matrix[i / 3][i % 3] = i - 2;
    s.wide = -((__int128)1 << 100);
    s.raw[0] = 1; s.raw[1] = 2; s.raw[2] = 255;
    s.pointer = (void *)0x123456789abcULL;
    s.last = 21;
    return fwrite(&s, sizeof s, 1, stdout) != 1;
}
"""

FIELDS = {
    "tag": 200,
    "flag": True,
    "name": "hello",
    "low": 5,
    "middle": -200,
    "high": 0xABCDEF0123,
    "color": -1,
    "f": 1.5,
    "d": -2.25,
    "points": ((-3, 1 << 40), (4, -5)),
    "word": 0x33441122,
    "a": 0x1122,
    "b": 0x3344,
    "matrix": ((-2, -1, 0), (1, 2, 3)),
    "wide": -(1 << 100),
    "raw": b"\1\2\xff",
    "pointer": 0x123456789ABC,
    "last": 21,
}


@pytest.mark.needs("clang", "gcc")
def test_a_struct_as_two_compilers_see_it(tmp_path):
    described = tmp_path / "sample.c"
    described.write_text(DECLARATION + "struct sample sample;\n")
    bpf = tmp_path / "sample.o"
    target = ["-target", "bpfel", "-g", "-O2", "-c"]
    subprocess.run(["clang-19", *target, described, "-o", bpf], check=True)
    section = ELFFile(io.BytesIO(bpf.read_bytes())).get_section_by_name(".BTF")
    btf = Btf(section.data(), source="sample.o")

    source, program = tmp_path / "main.c", tmp_path / "main"
    source.write_text(PROGRAM.replace("DECLARATION", DECLARATION))
    subprocess.run(["gcc", "-g", source, "-o", program], check=True)
    raw = subprocess.run([program], check=True, capture_output=True).stdout

    (type_id,) = btf.find("sample", Kind.STRUCT)
    c = codec(btf, type_id)
    value = c.decode(raw)
    assert value._asdict() == FIELDS
    assert value.color.name == "RED"
    assert c.encode(value) == raw
    assert c.encode({k: v for k, v in FIELDS.items() if k not in ("a", "b")}) == raw
