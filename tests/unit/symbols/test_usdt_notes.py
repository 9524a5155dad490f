"""Static probes in files of gcc: readelf sees the same."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import pytest

from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.usdt import Note, UsdtProbe, parse_note, usdt_probes

SOURCE = Path(__file__).parents[2] / "data/usdt_workload.c"
ADDRESSES = struct.pack("<QQQ", 0x1000, 0x2000, 0x3000)


@pytest.fixture(scope="module", params=["-no-pie", "-pie"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("usdt") / "workload"
    option = "-fPIE" if request.param == "-pie" else "-fno-pie"
    subprocess.run(["gcc", request.param, option, "-o", path, SOURCE], check=True)
    return path


def probes(data: bytes) -> list[UsdtProbe]:
    return list(usdt_probes(ElfImage.of_bytes(data)))


@pytest.mark.needs("gcc", "readelf")
def test_probes_are_those_of_readelf(file: Path) -> None:
    answer = subprocess.run(["readelf", "-nW", file], capture_output=True, text=True, check=True)
    theirs = re.findall(
        r"Provider: (\S+)\n\s+Name: (\S+)\n\s+Location: (\S+), Base: \S+ Semaphore: (\S+)"
        r"\n\s+Arguments: (.*)",
        answer.stdout,
    )
    found = probes(file.read_bytes())
    ours = [(each.provider, each.name, each.address, each.arguments) for each in found]
    assert ours == [(row[0], row[1], int(row[2], 16), row[4]) for row in theirs]
    assert len(ours) >= 6
    assert [bool(each.semaphore) for each in found] == [int(row[3], 16) > 0 for row in theirs]
    data = file.read_bytes()
    assert all(data[each.offset] == 0x90 for each in found), "each is where a nop is"


@pytest.mark.needs("gcc")
def test_what_prelink_moved_is_found_where_it_is_now(file: Path) -> None:
    data = bytearray(file.read_bytes())
    image = ElfImage.of_bytes(bytes(data))
    index = [section.name for section in image.sections].index(".stapsdt.base")
    (headers,) = struct.unpack_from("<Q", data, 40)
    place = headers + 64 * index + 16
    (address,) = struct.unpack_from("<Q", data, place)
    struct.pack_into("<Q", data, place, address - 8)
    before, after = probes(file.read_bytes()), probes(bytes(data))
    assert [each.offset - 8 for each in before] == [each.offset for each in after]
    moved = [each.semaphore - 8 if each.semaphore else 0 for each in before]
    assert moved == [each.semaphore for each in after]


def test_a_file_without_probes_has_none() -> None:
    header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, *[0] * 10)
    assert probes(header) == []


def test_a_note_has_addresses_and_strings() -> None:
    note = parse_note(ADDRESSES + b"libc\0setjmp\x008@%rdi\0", "<", is64=True)
    assert note == Note(0x1000, 0x2000, 0x3000, "libc", "setjmp", "8@%rdi")
    short = struct.pack("<III", 1, 2, 3) + b"p\0n\0:\0"
    assert parse_note(short, "<", is64=False) == Note(1, 2, 3, "p", "n", "")


@pytest.mark.parametrize(
    "description",
    [b"", ADDRESSES, ADDRESSES + b"p\0n", ADDRESSES + b"p\0\0\0"],
)
def test_notes_that_are_damaged(description: bytes) -> None:
    with pytest.raises(ValueError, match=r"too few|strings"):
        parse_note(description, "<", is64=True)


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("address", [0, 4, 64, 1 << 40], ids=hex)
def test_a_probe_outside_of_the_code_is_left_out(file: Path, address: int) -> None:
    """lld writes a small number for a function that it removed, GNU ld and gold write 0."""
    data = file.read_bytes()
    every = probes(data)
    at = data.index(b"stapsdt\0" + struct.pack("<Q", every[0].address)) + 8
    damaged = bytearray(data)
    struct.pack_into("<Q", damaged, at, address)
    reasons: dict[str, str] = {}
    assert list(usdt_probes(ElfImage.of_bytes(bytes(damaged)), reasons)) == every[1:]
    assert reasons == {
        f"{every[0].provider}:{every[0].name}": f"its note says {address:#x}, where the file has "
        "no code: the linker removed the function (--gc-sections)"
    }


@pytest.mark.needs("gcc")
def test_a_removed_function_is_not_looked_for_in_the_headers(file: Path) -> None:
    """Older linkers put the headers into the segment of the code, at address 0 or near it."""
    data = bytearray(file.read_bytes())
    every = probes(bytes(data))
    image = ElfImage.of_bytes(bytes(data))
    at = data.index(b"stapsdt\0" + struct.pack("<Q", every[0].address)) + 8
    headers = next(segment for segment in image.segments if segment.type == 1)
    index = image.segments.index(headers)
    (table,) = struct.unpack_from("<Q", data, 32)
    struct.pack_into("<I", data, table + 56 * index + 4, headers.flags | 1)
    struct.pack_into("<Q", data, at, headers.address + 4)
    assert probes(bytes(data)) == every[1:]


@pytest.mark.needs("gcc")
def test_a_semaphore_outside_of_the_data_leaves_one_probe_out(file: Path) -> None:
    data = bytearray(file.read_bytes())
    every = probes(bytes(data))
    watched = next(probe for probe in every if probe.semaphore)
    at = data.index(b"stapsdt\0" + struct.pack("<Q", watched.address)) + 8
    struct.pack_into("<Q", data, at + 16, 1 << 40)
    reasons: dict[str, str] = {}
    assert list(usdt_probes(ElfImage.of_bytes(bytes(data)), reasons)) == [
        probe for probe in every if probe is not watched
    ]
    assert "semaphore at 0x10000000000" in reasons[f"{watched.provider}:{watched.name}"]
