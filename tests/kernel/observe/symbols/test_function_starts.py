"""Functions without a symbol, by where their file says that they start."""

from __future__ import annotations

import lzma
import mmap
import os
import re
import secrets
import subprocess
from pathlib import Path

import pytest

from purebpf.files.held_files import HeldFiles
from purebpf.observe.symbols import function_starts
from purebpf.observe.symbols.elf_files import ElfFunctions
from purebpf.observe.symbols.function_starts import FunctionStarts
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.symbols.budget import FILE, Allowance, Budget
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.frame import FileOffset, Frame, Reason, is_unnamed_function
from purebpf.symbols.proc_maps import parse_maps
from purebpf.syscall import proc
from tests.kernel.symbol_programs import SOURCE, compile_program, running

pytestmark = [pytest.mark.needs("gcc")]

_NORETURN = r"""
#include <stdlib.h>
static __attribute__((noinline)) void last(int x) { exit(x); }
void next(void) {}
""" + SOURCE.replace('printf("main', 'printf("last %p\\n", (void *)last);\n  printf("main')


def _strip(program: Path) -> dict[str, int]:
    symbols = subprocess.run(
        ["nm", "--defined-only", program], capture_output=True, text=True, check=True
    ).stdout
    subprocess.run(["objcopy", "-S", program], check=True)
    lines = (line.split() for line in symbols.splitlines())
    return {name: int(start, 16) for start, _, name in lines}


@pytest.mark.needs("nm", "objcopy")
@pytest.mark.parametrize("flags", [["-pie", "-fpie"], ["-no-pie"], ["-static"]], ids=" ".join)
def test_functions_of_a_stripped_program_by_their_starts(tmp_path, flags):
    # a build id of its own: symbols of an equal program may be in the cache from another test
    program = compile_program(
        tmp_path / "program", *flags, f"-Wl,--build-id=0x{secrets.token_hex(20)}"
    )
    starts = _strip(program)
    found = []
    for _ in range(2):  # each time at another address
        with running(program) as child:
            addresses = [at + 2 for at in child.functions.values()]
            found.append(Symbolizer().user(child.pid, addresses))
            names = list(child.functions)
    first, second = ([(frame.name, frame.offset) for frame in each] for each in found)
    assert first == second == [(f"program!{starts[name]:#x}", 2) for name in names]
    assert all(is_unnamed_function(frame) and frame.kind == "user" for frame in found[0])
    assert all(frame.build_id and frame.module == str(program) for frame in found[0])


@pytest.mark.needs("nm", "objcopy")
def test_callers_that_end_with_a_call_are_not_the_function_behind_them(tmp_path):
    flags = "-rdynamic", "-falign-functions=1", "-fno-toplevel-reorder"
    program = compile_program(tmp_path / "program", *flags, source=_NORETURN)
    starts = _strip(program)
    with running(program, functions=4) as child:
        after = child.functions["last"] - starts["last"] + starts["next"]
        (exported,) = Symbolizer().user(child.pid, [after])
        _, caller = Symbolizer().user_stack(child.pid, [child.functions["main"], after])
    assert exported.name == "next"
    assert caller.name == f"program!{starts['last']:#x}"
    assert caller.offset == starts["next"] - starts["last"]


def test_files_with_symbols_are_not_opened_again(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("opened")

    monkeypatch.setattr(function_starts, "open_place", refuse)
    program = compile_program(tmp_path / "program")
    with running(program) as child:
        found = Symbolizer().user(child.pid, child.functions.values())
    assert [frame.name for frame in found] == list(child.functions)


@pytest.fixture
def opened(monkeypatch):
    """Grows with each file that is opened for the starts of its functions."""
    times = []
    whole = function_starts.open_place
    monkeypatch.setattr(
        function_starts, "open_place", lambda *given: times.append(1) or whole(*given)
    )
    return times


def test_a_stripped_file_is_opened_once_for_each_function(tmp_path, opened):
    program = compile_program(tmp_path / "program", "-s")
    before = len(os.listdir("/proc/self/fd"))
    with running(program) as child:
        main = child.functions["main"]
        found = Symbolizer().user(child.pid, range(main, main + 40))
    assert len({frame.name for frame in found}) == 1
    assert [frame.offset for frame in found] == list(range(40))
    assert len(opened) == 1
    assert len(os.listdir("/proc/self/fd")) == before


def test_in_a_batch_a_stripped_file_is_opened_once(tmp_path, opened):
    program = compile_program(tmp_path / "program", "-s")
    names = Symbolizer()
    with running(program) as child:
        before = len(os.listdir("/proc/self/fd"))
        places = [at + 1 for at in child.functions.values()]
        with names.batch():
            for place in places:
                with names.batch():  # as one command does in another
                    names.user(child.pid, [place])
            assert (len(opened), len(os.listdir("/proc/self/fd"))) == (1, before + 1)
        assert len(os.listdir("/proc/self/fd")) == before
        assert names.user(child.pid, places) == Symbolizer().user(child.pid, places)
    assert len({frame.name for frame in names.user(child.pid, places)}) == len(places) > 2


@pytest.mark.parametrize("flags", [["-pie", "-fpie"], ["-pie", "-fpie", "-s"]], ids=" ".join)
def test_what_many_processes_run_is_looked_up_once(tmp_path, monkeypatch, flags):
    program = compile_program(tmp_path / "program", *flags)
    names = Symbolizer()
    asked = []
    for kind in (ElfFunctions, FunctionStarts):
        whole = kind.find
        monkeypatch.setattr(
            kind, "find", lambda *given, whole=whole: asked.append(1) or whole(*given)
        )
    found, times = [], []
    for _ in range(2):  # each time at another address
        with running(program) as child:
            place = child.functions["main"] + 1
            found += names.user(child.pid, [place])
        assert found[-1].address == place
        times.append(len(asked))
    first, second = found
    assert (first.name, first.offset) == (second.name, second.offset)
    assert times[0] == times[1] > 0


def test_two_names_of_one_stripped_file_are_kept_apart(tmp_path):
    program = compile_program(tmp_path / "program", "-s")
    other = tmp_path / "other"
    os.link(program, other)
    names = Symbolizer()
    found = []
    for file in (program, other):
        with running(file) as child:
            found += names.user(child.pid, [child.functions["main"]])
    assert [frame.name.partition("!")[0] for frame in found] == ["program", "other"]


def test_a_file_that_costs_too_much_says_so(tmp_path):
    program = compile_program(tmp_path / "program", "-s")
    with running(program) as child:
        main = child.functions["main"]
        names = Symbolizer(budget=Budget({FILE: Allowance(1 << 20, 1.0)}))
        assert is_unnamed_function(names.user(child.pid, [main])[0])
        names = Symbolizer(budget=Budget({FILE: Allowance(3000, 1.0)}))
        found = names.user(child.pid, [main])[0]
    assert found.reason is Reason.OVER_BUDGET
    assert names.budget.skipped == 1


@pytest.mark.needs("readelf")
def test_every_function_of_a_stripped_library_has_the_start_that_readelf_prints():
    """Of our own process: a library of Debian, which has no symbols but those that it exports."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    line = next(line for line in lines if "liblzma" in line and " r-xp " in line)
    area, _, offset, *_, path = line.split()
    assert lzma.is_check_supported(lzma.CHECK_CRC32)  # it is loaded
    start, end = (int(at, 16) for at in area.split("-"))
    entries = subprocess.run(
        ["readelf", "--debug-dump=frames", path], capture_output=True, text=True, check=True
    ).stdout
    ranges = re.findall(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", entries)
    expected = {(int(low, 16), int(high, 16)) for low, high in ranges}
    addresses = range(start, end, 16)
    found = Symbolizer().user(os.getpid(), addresses)
    unnamed = [each for each in found if isinstance(each, Frame) and is_unnamed_function(each)]
    bias = start - int(offset, 16)  # true of what GNU ld links
    assert len({each.name for each in unnamed}) > 50
    for each in unnamed:
        first = int(each.name.partition("!")[2], 16)
        (high,) = {high for low, high in expected if low == first}
        assert first <= each.address - bias < high


@pytest.mark.needs("aarch64-linux-gnu-gcc", "nm")
def test_a_leaf_of_arm64_has_its_return_address_in_a_register(tmp_path):
    """Before a frame is made, too; where there is one the slot is none of the words of a leaf."""
    program, source = tmp_path / "program", tmp_path / "program.c"
    source.write_text(
        "__attribute__((noinline)) int leaf(int x) { return x * 3; }\n"
        "__attribute__((noinline)) int caller(int x) { return leaf(x) + leaf(x + 1); }\n"
        "int main(int count, char **words) { return caller(count); }"
    )
    subprocess.run(["aarch64-linux-gnu-gcc", "-O2", "-static", "-o", program, source], check=True)
    listed = subprocess.check_output(["nm", program], text=True)
    at = {name: int(start, 16) for start, _, name in map(str.split, listed.splitlines())}
    starts = function_starts.FunctionStarts(Budget(), HeldFiles())
    image = ElfImage.of_bytes(program.read_bytes(), "program")
    with program.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC)
        maps = proc.maps(os.getpid()) or ""
        mapping = next(m for m in parse_maps(maps) if m.file.path == str(program))

        def slot(address: int) -> int | None:
            segment = next(s for s in image.segments if 0 <= address - s.address < s.file_size)
            where = FileOffset(address - segment.address + segment.offset)
            return starts.return_slot(mapping, (os.getpid(),), where)

        assert slot(at["leaf"]) == slot(at["leaf"] + 4) == 0
        assert slot(at["caller"]) == 0
        assert slot(at["caller"] + 12) is None
        assert slot(at["_start"] + 8) is None
        mapped.close()


_UNSIZED = (
    '__asm__(".text\\n .globl exported\\n .type exported, @function\\n exported: nop\\n ret\\n");\n'
    "void exported(void);\n"
) + SOURCE.replace('printf("main', 'printf("exported %p\\n", (void *)exported);\n  printf("main')


@pytest.mark.needs("nm", "objcopy")
def test_a_symbol_without_a_size_ends_where_the_next_function_begins(tmp_path):
    """The only symbol of a stripped file, of assembly: it does not have all code behind it."""
    flags = "-Wl,--export-dynamic-symbol=exported", "-fno-toplevel-reorder"
    program = compile_program(tmp_path / "program", *flags, source=_UNSIZED)
    starts = _strip(program)
    assert starts["global_function"] > starts["local_function"] > starts["exported"]
    with running(program, functions=4) as child:
        addresses = [at + 1 for at in child.functions.values()]
        found = Symbolizer().user(child.pid, addresses)
    expected = [
        name if name == "exported" else f"program!{starts[name]:#x}" for name in child.functions
    ]
    assert [frame.name for frame in found] == expected


_ASSEMBLY = """
__asm__(".text\\n"
  " .globl exported\\n .type exported, @function\\n"
  "exported: test %edi, %edi\\n je 1f\\n call hidden\\n ret\\n1: nop\\n ret\\n"
  " .type hidden, @function\\nhidden: nop\\n nop\\n ret\\n"
  " .globl hidden\\n .hidden hidden\\n");
void exported(int); void hidden(void);
""" + SOURCE.replace(
    'printf("main',
    'printf("exported %p\\nhidden %p\\n", (void *)exported, (void *)hidden);\n  printf("main',
)


@pytest.mark.needs("nm", "objcopy")
@pytest.mark.parametrize("rules", ["with unwind rules", "without unwind rules"])
def test_a_symbol_without_a_size_is_not_the_function_behind_its_code(tmp_path, rules):
    """Neither of them has an entry of the call frame information that would tell them apart."""
    flags = "-Wl,--export-dynamic-symbol=exported", "-fno-toplevel-reorder"
    program = compile_program(tmp_path / "program", *flags, source=_ASSEMBLY)
    _strip(program)
    if rules == "without unwind rules":
        remove = [f"--remove-section={name}" for name in (".eh_frame", ".eh_frame_hdr")]
        subprocess.run(["objcopy", *remove, program], check=True)
    with running(program, functions=5) as child:
        start, size = child.functions["exported"], 12  # of its code, up to the second ret
        assert child.functions["hidden"] == start + size
        own = Symbolizer().user(child.pid, range(start, start + size))
        others = [child.functions["hidden"] + 1, child.functions["local_function"] + 1]
        found = Symbolizer().user(child.pid, others)
    assert {getattr(frame, "name", None) for frame in own} == {"exported"}
    assert "exported" not in {getattr(frame, "name", None) for frame in found}
