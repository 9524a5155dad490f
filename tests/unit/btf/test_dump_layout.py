"""Dumped C, compiled by clang, has the layout it was dumped from; bpftool writes it alike."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from random import Random

import pytest
from elftools.elf.elffile import ELFFile

from purebpf.btf.types import kinds
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf
from purebpf.errors import FormatError
from tests.support.builders.btf_builder import BtfBuilder

pytestmark = [pytest.mark.slow, pytest.mark.needs("clang")]
VMLINUX = Path("/sys/kernel/btf/vmlinux")


def compiled(source: str) -> Btf:
    """The BTF that clang makes of C."""
    command = ["clang-19", "-target", "bpf", "-g", "-O0", "-c", "-x", "c", "-", "-o", "/dev/stdout"]
    done = subprocess.run(command, input=source.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    section = ELFFile(BytesIO(done.stdout)).get_section_by_name(".BTF")
    return Btf(section.data())


def anchored(header: str, btf: Btf) -> str:
    """`header` with a variable of each struct and union, so that clang describes all of them."""
    found = re.findall(r"^((?:struct|union) \w+) \{", header, re.MULTILINE)
    assert len(found) <= len(btf)
    return header + "".join(f"{line} *anchor_{at};\n" for at, line in enumerate(found))


def layouts(btf: Btf) -> dict[str, list[object]]:
    """Size and members of every named struct and union, by name without its number."""
    found = defaultdict(set)
    for type_id in range(1, len(btf)):
        if btf.kind(type_id) in (Kind.STRUCT, Kind.UNION) and (name := btf.name(type_id)):
            plain = name.split("___")[0]
            found[plain].add((btf.sizeof(type_id), tuple(fields(btf, type_id, 0))))
    return found


def fields(btf: Btf, type_id: int, base: int):
    """(name, first bit, bits) of each member, those of anonymous ones included."""
    found = btf.type(btf.resolve(type_id))
    for member in found.members:
        resolved = btf.resolve(member.type_id)
        inner = btf.type(resolved)
        offset = base + member.bit_offset
        if member.name:
            yield member.name, offset, member.bit_size or 8 * btf.sizeof(resolved)
        elif isinstance(inner, (kinds.Struct, kinds.Union)):
            yield from fields(btf, resolved, offset)


def compare(original: Btf, header: str) -> int:
    mine, theirs = layouts(original), layouts(compiled(anchored(header, original)))
    assert mine.keys() == theirs.keys()
    different = [name for name in mine if mine[name] != theirs[name]]
    assert not different, (different[:3], [(mine[n], theirs[n]) for n in different[:1]])
    return len(mine)


@pytest.fixture(scope="module")
def vmlinux() -> Btf:
    return Btf(VMLINUX.read_bytes(), source="vmlinux")


@pytest.fixture(scope="module")
def header(vmlinux: Btf) -> str:
    return vmlinux.dump_c()


def assertions(btf: Btf) -> list[str]:
    """What the compiler must find: size and offsets of each struct with a name of its own."""
    found = defaultdict(list)
    tagged = (Kind.STRUCT, Kind.UNION, Kind.ENUM, Kind.ENUM64)
    for type_id in range(1, len(btf)):
        if btf.kind(type_id) in tagged and (name := btf.name(type_id)):
            found[name].append(type_id)
    lines = []
    for name, (type_id, *others) in found.items():
        if others or btf.kind(type_id) not in tagged[:2]:
            continue
        c_name = f"{btf.kind(type_id).name.lower()} {name}"
        lines.append(f'_Static_assert(sizeof({c_name}) == {btf.sizeof(type_id)}, "{c_name}");')
        lines += (
            f'_Static_assert(__builtin_offsetof({c_name}, {field}) == {bit // 8}, "{c_name}");'
            for field, bit, _ in plain_fields(btf, type_id)
        )
    for type_id in range(1, len(btf)):
        if btf.kind(type_id) is Kind.TYPEDEF and len(btf.find(btf.name(type_id))) == 1:
            name = btf.name(type_id)
            with suppress(FormatError):  # functions and void have no size
                lines.append(f'_Static_assert(sizeof({name}) == {btf.sizeof(type_id)}, "{name}");')
    return [line for line in lines if "(__builtin_va_list)" not in line]


def plain_fields(btf: Btf, type_id: int):
    """Those that are not bit fields."""
    whole = {each.name for each in bit_fields(btf, type_id)}
    return [each for each in fields(btf, type_id, 0) if each[0] not in whole]


def bit_fields(btf: Btf, type_id: int):
    for member in btf.type(btf.resolve(type_id)).members:
        inner = btf.type(btf.resolve(member.type_id))
        if member.bit_size:
            yield member
        elif not member.name and isinstance(inner, (kinds.Struct, kinds.Union)):
            yield from bit_fields(btf, member.type_id)


@pytest.mark.needs("vmlinux_btf")
def test_this_kernels_types(vmlinux, header):
    lines = assertions(vmlinux)
    assert len(lines) > 30_000
    check(header, lines)


@pytest.mark.parametrize("bytes_of_long", [4, 8])
def test_types_that_clang_has_otherwise_for_bpf(bytes_of_long: int) -> None:
    built = BtfBuilder()
    u32 = built.int("unsigned int", 4)
    signed_long = built.int("long int", bytes_of_long, signed=True)
    unsigned_long = built.int("long unsigned int", bytes_of_long)
    tag = built.struct("__va_list_tag", [("gp_offset", u32), ("rest", built.array(u32, 5))])
    va_list = built.typedef("va_list", built.typedef("__builtin_va_list", built.array(tag, 1)))
    built.struct("warning", [("level", u32), ("arguments", va_list), ("line", u32)])
    built.struct("times", [("seconds", signed_long), ("flags", built.array(unsigned_long, 3))])
    btf = built.btf()
    check(btf.dump_c(), assertions(btf))


@pytest.mark.needs("vmlinux_btf", "bpftool")
def test_bpftool_writes_the_same(vmlinux, header):
    """To the letter, apart from padding and the mode of small enums.

    Layouts are not compared: bpftool 7.1 forgets that mode, and with it the size of `struct inode`.
    """
    command = ["bpftool", "btf", "dump", "file", str(VMLINUX), "format", "c"]
    bpftools = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ours, theirs = definitions(header), definitions(bpftools)
    different = {name for name in theirs if theirs[name] != ours.get(name)}
    assert len(theirs) > 5000
    assert len(different) < len(theirs) / 100


def check(header: str, lines: list[str]) -> None:
    source = header + "\n".join(lines)
    # some types have other sizes for the machine that this runs on
    command = ["clang-19", "-target", "bpf", "-fsyntax-only", "-Wno-everything", "-x", "c", "-"]
    done = subprocess.run(command, input=source.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]


def definitions(header: str) -> dict[str, str]:
    """Bodies by their first line, for names that one type has."""
    found = {}
    for block in header.split(";\n\n"):
        first = block.partition("\n")[0]
        if first.endswith(" {") and "___" not in first:
            found[first] = block
    return found


@pytest.mark.parametrize("seed", range(4))
def test_random_structs_are_laid_out_as_by_the_compiler(seed):
    source = random_structs(Random(seed), 120)
    original = compiled(source)
    assert compare(original, original.dump_c()) >= 120


SCALARS = ("char", "short", "int", "long", "_Bool", "enum e", "void *", "__int128", "double")
WIDTHS = {"char": 8, "short": 16, "int": 32, "long": 64, "_Bool": 1, "enum e": 32}


def random_structs(random: Random, count: int) -> str:
    """Structs and unions, packed, aligned, with bit fields, arrays and each other."""
    lines = ["enum e { A, B = 70000 };"]
    for number in range(count):
        keyword = random.choice(("struct", "struct", "struct", "union"))
        members = [member(random, number, at) for at in range(random.randint(1, 7))]
        attribute = random.choice(("", "", "packed", "aligned(32)", "packed, aligned(2)"))
        suffix = f" __attribute__(({attribute}))" if attribute else ""
        lines.append(f"{keyword} s{number} {{ {' '.join(members)} }}{suffix};")
        lines.append(f"{keyword} s{number} *anchor{number};")
        lines.append(f"typedef {keyword} s{number} t{number};")
    return "\n".join(lines)


def member(random: Random, number: int, at: int, depth: int = 0) -> str:
    choice = random.random()
    name = f"m{depth}_{at}_{random.randrange(1 << 30)}"
    if choice < 0.35:
        kind = random.choice(list(WIDTHS))
        return f"{kind} {name} : {random.randint(1, WIDTHS[kind])};"
    if choice < 0.5 and number:
        return f"t{random.randrange(number)} {name};"
    if choice < 0.6 and depth < 2:
        keyword = random.choice(("struct", "union"))
        inside = " ".join(member(random, number, i, depth + 1) for i in range(3))
        return f"{keyword} {{ {inside} }}{random.choice(('', f' {name}'))};"
    if choice < 0.7:
        return f"{random.choice(SCALARS)} {name}[{random.randint(1, 5)}];"
    return f"{random.choice(SCALARS)} {name};"
