"""Claims about programs whose accesses are known, as gcc and clang compile them."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.symbols.elf_image import ElfImage

pytest.importorskip("iced_x86", reason="the extra purebpf[types] is not installed")

from purebpf.dataflow.claims import Claim, Unclaimed, claim_at  # noqa: E402
from purebpf.dataflow.flow import Flow  # noqa: E402
from purebpf.dataflow.layout import SEVERAL  # noqa: E402
from purebpf.dataflow.program import MissingPartError, NoDebugInfoError, Program  # noqa: E402

pytestmark = pytest.mark.needs("gcc")

SOURCE = Path(__file__).with_name("golden.c")

MEMBERS = {
    "walk_hot": {"node.hot", "node.next"},
    "mark_flags": {"node.flags"},
    "sum_cells": {"grid.cells[]"},
    "sum_totals": {"grid.totals[]"},
    "pool_keys": {"node.[].key", "node.key"},
    "text_bytes": {"node.text[]"},
    "global_high": {"grid.pairs[].high"},
    "nested_low": {"node.next", "node.in.low", "node *."},
    "bag_count": {"bag.count", "bag.(several members)"},
    "backwards_key": {"node.key"},
    "union_number": {"either.(union)"},
    "after_call_key": {"node.key", "node *."},
    "no_type": set(),
    "derived_value": {"link.next", "item.value"},
    "derived_other": {"link.next", "item.other"},
    "derived_address": {"item.value", "item.weight", "int."},
    "stepped_links": {"link.next"},
    "coordinate": {"vector.(several members)"},
    "words_of": {"item.(several members)"},
    "flags_last": {"flags.last"},
    "board_z": {"board.cells[].z"},
    "packed_tail": {"packed.tail"},
    "packed_large": {"packed.large", "packed.small/large"},
    "row_third": {"row.items[]", "node.key"},
}
"""The data that each function touches; a pointer in an array or a variable is `node *.`."""

SEEN = {
    "walk_hot": "node.hot", "mark_flags": "node.flags",
    "global_high": "grid.pairs[].high", "nested_low": "node.in.low", "bag_count": "bag.count",
    "union_number": "either.(union)", "after_call_key": "node.key",
    "stepped_links": "link.next", "board_z": "board.cells[].z", "packed_tail": "packed.tail",
    "row_third": "row.items[]", "flags_last": "flags.last",
}  # fmt: skip
"""Members that a claim must name, whatever the compiler does."""


def compilers() -> Iterator[tuple[str, ...]]:
    clang = next((name for name in ("clang-19", "clang") if shutil.which(name)), "")
    for compiler in filter(None, ("gcc", clang)):
        for level in ("-O0", "-O1", "-O2", "-O3"):
            yield compiler, level, "-gdwarf-5"
        yield compiler, "-O2", "-gdwarf-4"
        yield compiler, "-O2", "-gdwarf-5", "-no-pie"
        yield compiler, "-O2", "-gdwarf-5", "-gsplit-dwarf"
        yield compiler, "-O1", "-gdwarf-5", "-gsplit-dwarf", "-ffunction-sections"
        yield compiler, "-O2", "-gdwarf-4", "-gsplit-dwarf"
        yield compiler, "-O2", "-gdwarf-5", "-fdebug-types-section"
        yield compiler, "-O2", "-gdwarf-4", "-fdebug-types-section"
        yield compiler, "-O2", "-gdwarf-5", "-gsplit-dwarf", "-fdebug-types-section"
        yield compiler, "-O2", "-gdwarf-4", "-gsplit-dwarf", "-fdebug-types-section"


@pytest.fixture(scope="module", params=[*compilers()], ids=" ".join)
def golden(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Program, dict[str, int]]:
    """The golden program, by one compiler with one set of options."""
    compiler, *flags = request.param
    target = tmp_path_factory.mktemp("golden") / "golden"
    subprocess.run(
        [compiler, *flags, "-o", target, SOURCE], check=True, timeout=60, cwd=target.parent
    )
    return read(target.read_bytes(), target.parent)


def read(
    data: bytes, folder: Path = Path("/none"), package: str = "", path: str = ""
) -> tuple[Program, dict[str, int]]:
    """The program, and the addresses of its functions; its split DWARF is in the folder."""
    image = ElfImage.of_bytes(data)

    def code(address: int, size: int) -> bytes:
        for segment in image.segments:
            if segment.type == 1 and 0 <= address - segment.address < segment.file_size:
                at = address - segment.address + segment.offset
                return data[at : at + size]
        return b""

    symbols = image.section_of_type(2)
    assert symbols is not None
    names = image.contents(image.linked_section(symbols))
    raw = image.contents(symbols)
    found = {}
    for at in range(0, len(raw), 24):
        name_at = int.from_bytes(raw[at : at + 4], "little")
        value = int.from_bytes(raw[at + 8 : at + 16], "little")
        found[names[name_at : names.index(b"\0", name_at)].decode()] = value

    def open_part(path: str) -> io.BytesIO | None:
        assert folder in Path(path).parents or not path.startswith(str(folder.parent))
        return io.BytesIO(Path(path).read_bytes()) if os.path.exists(path) else None

    return Program(io.BytesIO(data), code, open_part, package, path), found


def flow_of(program: Program, address: int) -> Flow:
    function = program._info.function(address)
    assert function is not None
    return program._flow(function)


def claims_of(flow: Flow) -> list[Claim | Unclaimed]:
    return [claim_at(flow, instruction.ip) for instruction in flow.code.instructions]


def test_every_claim_is_right(golden: tuple[Program, dict[str, int]]) -> None:
    program, functions = golden
    for name, allowed in MEMBERS.items():
        claims = claims_of(flow_of(program, functions[name]))
        found = {f"{one.name}.{one.member}" for one in claims if isinstance(one, Claim)}
        structs = {member.partition(".")[0] for member in allowed}
        allowed = allowed | {f"{struct}.{SEVERAL}" for struct in structs}  # an index of gcc -O0
        assert found <= allowed, f"{name}: {found - allowed}"
        if name in SEEN:
            assert SEEN[name] in found, f"{name}: {set(claims)}"


def test_a_claim_has_the_place_and_the_use(golden: tuple[Program, dict[str, int]]) -> None:
    program, functions = golden
    claims = claims_of(flow_of(program, functions["global_high"]))
    writes = [one for one in claims if isinstance(one, Claim) and one.access.writes]
    assert len(writes) == 1
    assert (writes[0].offset, writes[0].size, writes[0].access.size) == (8 + 512 + 512 + 2, 2, 2)


def test_a_sample_belongs_to_the_instruction_before(golden: tuple[Program, dict[str, int]]) -> None:
    program, functions = golden
    flow = flow_of(program, functions["walk_hot"])
    instructions = flow.code.instructions
    number = next(
        n for n, one in enumerate(instructions)
        if isinstance(claim := claim_at(flow, one.ip), Claim) and claim.member == "hot"
    )  # fmt: skip
    _, claim = program.claim(instructions[number + 1].ip, is_precise=False)
    assert isinstance(claim, Claim)
    assert claim.member == "hot"
    assert program.claim(instructions[number].ip, is_precise=True)[1] == claim
    entry = program.claim(functions["walk_hot"], is_precise=False)
    assert entry == ("walk_hot", Unclaimed.ENTRY)


def test_layouts_are_those_of_the_compiler(golden: tuple[Program, dict[str, int]]) -> None:
    """offsetof and sizeof, computed by hand from the ABI."""
    program, functions = golden
    claims = claims_of(flow_of(program, functions["walk_hot"]))
    node = next(one.type for one in claims if isinstance(one, Claim) and one.member == "hot")
    assert node is not None
    assert node.size == 72
    assert [(member.name, member.offset) for member in node.members] == [
        ("key", 0), ("next", 8), ("text", 16), ("hot", 56), ("flags", 64), ("in", 68),
    ]  # fmt: skip


def test_a_package_has_the_types_of_all_units(tmp_path: Path) -> None:
    """A .dwp file of two units, without their .dwo files.

    llvm-dwp 19 does not end on gcc's DWARF 5.
    """
    packer = next(filter(shutil.which, ("llvm-dwp-19", "llvm-dwp")), None)
    if packer is None:
        pytest.skip("no llvm-dwp")
    other = tmp_path / "other.c"
    other.write_text("struct other { long pad[3]; long hits; };\n"
                     "long count_other(struct other *o) { return o->hits++; }\n")  # fmt: skip
    clang = next(filter(shutil.which, ("clang-19", "clang")), "gcc")
    for compiler, version in ((clang, "-gdwarf-5"), ("gcc", "-gdwarf-4")):
        target = tmp_path / f"golden{version}"
        command = [compiler, "-O2", version, "-gsplit-dwarf", "-o", target, SOURCE, other]
        subprocess.run(command, check=True, timeout=60, cwd=tmp_path)
        package = f"{target}.dwp"
        subprocess.run([packer, "-e", target, "-o", package], check=True, timeout=60)
        for part in tmp_path.glob("*.dwo"):
            part.unlink()
        program, functions = read(target.read_bytes(), tmp_path, package)
        claims = claims_of(flow_of(program, functions["walk_hot"]))
        assert "hot" in {one.member for one in claims if isinstance(one, Claim)}
        claims = claims_of(flow_of(program, functions["count_other"]))
        assert {(one.name, one.member) for one in claims if isinstance(one, Claim)} == {
            ("other", "hits")
        }


@pytest.mark.parametrize("version", ["-gdwarf-5", "-gdwarf-4"])
def test_types_that_dwz_moved_to_a_file_of_several_programs(tmp_path: Path, version: str) -> None:
    if shutil.which("dwz") is None:
        pytest.skip("dwz is not installed")
    targets = [tmp_path / name for name in ("one", "two")]
    for target in targets:
        command = ["gcc", "-O2", version, "-Wl,--build-id=sha1", "-o", target, SOURCE]
        subprocess.run([*command, f"-DNAME={target.name}"], check=True, timeout=60)
    shared = tmp_path / "shared.debug"
    subprocess.run(["dwz", "-m", shared, "-r", *targets], check=True, timeout=60)
    data = targets[0].read_bytes()
    assert ElfImage.of_bytes(data).section(".gnu_debugaltlink") is not None
    program, functions = read(data, tmp_path, path=str(targets[0]))
    for name, member in SEEN.items():
        claims = claims_of(flow_of(program, functions[name]))
        assert member in {f"{one.name}.{one.member}" for one in claims if isinstance(one, Claim)}
    shared.unlink()
    program, functions = read(data, tmp_path, path=str(targets[0]))
    with pytest.raises(MissingPartError, match="dwz moved types to is not there"):
        program.claim(functions["walk_hot"] + 4, is_precise=False)


def test_split_types_that_are_missing_or_of_another_build_are_said(tmp_path: Path) -> None:
    target = tmp_path / "golden"
    command = ["gcc", "-g", "-O2", "-gsplit-dwarf", "-o", target, SOURCE]
    subprocess.run(command, check=True, timeout=60, cwd=tmp_path)
    (part,) = tmp_path.glob("*.dwo")
    data = target.read_bytes()
    part.rename(tmp_path / "elsewhere")
    program, functions = read(data, tmp_path)
    with pytest.raises(MissingPartError, match="is not there"):
        program.claim(functions["walk_hot"] + 4, is_precise=False)
    subprocess.run([*command, "-DOTHER=1", "-O1"], check=True, timeout=60, cwd=tmp_path)
    program, functions = read(data, tmp_path)
    with pytest.raises(MissingPartError, match="of another build"):
        program.claim(functions["walk_hot"] + 4, is_precise=False)


def test_damaged_split_types_are_no_answer(tmp_path: Path) -> None:
    target = tmp_path / "golden"
    for version in ("-gdwarf-5", "-gdwarf-4"):
        command = ["gcc", "-O2", version, "-gsplit-dwarf", "-o", target, SOURCE]
        subprocess.run(command, check=True, timeout=60, cwd=tmp_path)
        (part,) = tmp_path.glob("*.dwo")
        whole = part.read_bytes()
        refused = 0
        for step in range(71, len(whole), len(whole) // 40):
            damaged = bytearray(whole)
            damaged[step] ^= 0x5A
            part.write_bytes(damaged)
            program, functions = read(target.read_bytes(), tmp_path)
            for name in MEMBERS:
                try:
                    _, claim = program.claim(functions[name] + 4, is_precise=False)
                    refused += isinstance(claim, str)
                except MissingPartError:
                    refused += 1
        assert refused


def test_a_program_without_types_says_so(tmp_path: Path) -> None:
    target = tmp_path / "plain"
    subprocess.run(["gcc", "-O2", "-o", target, SOURCE], check=True, timeout=60)
    with pytest.raises(NoDebugInfoError, match="no DWARF"):
        read(target.read_bytes())


def test_damaged_types_are_no_answer(tmp_path: Path) -> None:
    """Whatever the bytes, there is an answer with a reason."""
    target = tmp_path / "golden"
    subprocess.run(["gcc", "-O2", "-g", "-o", target, SOURCE], check=True, timeout=60)
    whole = target.read_bytes()
    section = ElfImage.of_bytes(whole).section(".debug_info")
    assert section is not None
    refused = 0
    for step in range(11, min(section.size, 600), 61):
        damaged = bytearray(whole)
        damaged[section.offset + step] ^= 0x5A
        try:
            program, functions = read(bytes(damaged))
        except NoDebugInfoError:
            refused += 1
            continue
        for name in MEMBERS:
            _, claim = program.claim(functions[name] + 4, is_precise=False)
            refused += isinstance(claim, str)
    assert refused
