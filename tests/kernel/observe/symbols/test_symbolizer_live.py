"""Addresses of real programs, while they run."""

from __future__ import annotations

import _ctypes
import ctypes
import os
import re
import shutil
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from purebpf.observe.symbols import elf_files
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.symbols import elf_symbols
from purebpf.symbols.frame import Frame, Reason, Unknown, is_unnamed_function
from tests.kernel.symbol_programs import compile_program, running

_DATA = Path(__file__).parents[3] / "data" / "symbols"


@pytest.mark.needs("gcc")
@pytest.mark.parametrize(
    "flags", [["-pie", "-fpie"], ["-no-pie"], ["-static"], ["-static-pie"]], ids=" ".join
)
def test_a_program_s_own_functions(tmp_path, flags):
    program = compile_program(tmp_path / "program", *flags)
    with running(program) as child:
        found = Symbolizer().user(child.pid, [at + 2 for at in child.functions.values()])
    assert [(frame.name, frame.offset) for frame in found] == [
        (name, 2) for name in ("local_function", "global_function", "main")
    ]
    assert {frame.module for frame in found} == {str(program)}
    assert [frame.address for frame in found] == [at + 2 for at in child.functions.values()]
    assert all(frame.build_id and frame.file_offset > 0 for frame in found)


@pytest.mark.needs("gcc")
def test_a_library_that_is_opened_later(tmp_path):
    program = compile_program(tmp_path / "program")
    library = shutil.copy(_DATA / "tiny.so", tmp_path / "tiny.so")
    source = "int imported(int x) { return x; }"
    needed = compile_program(tmp_path / "needed.so", "-shared", "-fPIC", source=source)
    environment = ["env", f"LD_PRELOAD={needed}"]
    with running(*environment, program, library, functions=4) as child:
        (found,) = Symbolizer().user(child.pid, [child.functions["exported"]])
    assert (found.name, found.offset, found.module) == ("exported", 0, str(library))


@pytest.mark.needs("gcc")
def test_a_stripped_program_without_unwind_information_has_a_reason(tmp_path):
    program = compile_program(tmp_path / "program", "-s")
    remove = [f"--remove-section={name}" for name in (".eh_frame", ".eh_frame_hdr")]
    subprocess.run(["objcopy", *remove, program], check=True)
    with running(program) as child:
        (found,) = Symbolizer().user(child.pid, [child.functions["local_function"]])
    assert isinstance(found, Unknown)
    assert found.reason is Reason.STRIPPED
    assert found.module == str(program)
    assert len(found.build_id) == 40
    assert found.file_offset > 0


@pytest.mark.needs("gcc", "objcopy", "xz")
def test_a_stripped_program_with_mini_debug_info(tmp_path):
    program = compile_program(tmp_path / "program")
    subprocess.run(
        ["objcopy", "-S", "--keep-symbol=local_function", program, tmp_path / "m"], check=True
    )
    subprocess.run(["xz", tmp_path / "m"], check=True)
    add = f".gnu_debugdata={tmp_path / 'm.xz'}"
    subprocess.run(["objcopy", "-S", "--add-section", add, program], check=True)
    with running(program) as child:
        found = Symbolizer().user(
            child.pid, [child.functions["local_function"], child.functions["main"]]
        )
    assert found[0].name == "local_function"
    assert is_unnamed_function(found[1])


@pytest.mark.needs("gcc", "objcopy")
@pytest.mark.parametrize("build_id", ["sha1", "none"])
def test_a_stripped_program_with_a_debug_file_beside_it(tmp_path, build_id):
    program = compile_program(tmp_path / "program", f"-Wl,--build-id={build_id}")
    debug = tmp_path / ".debug" / "program.debug"
    debug.parent.mkdir()
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["objcopy", "-S", f"--add-gnu-debuglink={debug}", program], check=True)
    with running(program) as child:
        address = child.functions["local_function"]
        assert Symbolizer().user(child.pid, [address])[0].name == "local_function"
        other = compile_program(tmp_path / "other", "-DOTHER")
        subprocess.run(["objcopy", "--only-keep-debug", other, debug], check=True)
        if build_id == "none":
            debug.write_bytes(debug.read_bytes() + b"x")
            assert is_unnamed_function(Symbolizer().user(child.pid, [address])[0])


@pytest.mark.needs("g++")
def test_a_cxx_program(tmp_path):
    source = r"""
    #include <cstdio>
    #include <unistd.h>
    namespace shop { struct Cart { int add(int, const char *); }; }
    __attribute__((noinline)) int shop::Cart::add(int x, const char *) { return x; }
    int main() {
      auto add = &shop::Cart::add;
      std::printf("add %p\n", *(void **)&add);
      std::fflush(stdout);
      char byte;
      return read(0, &byte, 1) < 0;
    }
    """
    program = compile_program(tmp_path / "program", source=source, compiler="g++")
    with running(program, functions=1) as child:
        (found,) = Symbolizer().user(child.pid, [child.functions["add"]])
    assert found.name == "shop::Cart::add(int, char const*)"


def test_a_symbolizer_says_how_many_processes_it_knows():
    names = Symbolizer()
    assert repr(names) == "Symbolizer(AddressSpaces(0 processes))"
    names.remember(os.getpid())
    assert repr(names) == "Symbolizer(AddressSpaces(1 processes))"


def test_addresses_in_the_vdso_have_names():
    line = next(
        line for line in Path("/proc/self/maps").read_text().splitlines() if "[vdso]" in line
    )
    start, end = (int(part, 16) for part in line.split()[0].split("-"))
    found = Symbolizer().user(os.getpid(), range(start, end, 4))
    names = {frame.name for frame in found if isinstance(frame, Frame)}
    assert "__vdso_clock_gettime" in names
    assert {frame.module for frame in found} == {"[vdso]"}


def test_functions_of_libraries_by_their_addresses():
    libc = ctypes.CDLL(None)
    for name in ("qsort", "getenv", "Py_Initialize", "PyObject_Repr"):
        address = ctypes.cast(getattr(libc, name), ctypes.c_void_p).value
        (found,) = Symbolizer().user(os.getpid(), [address])
        assert (found.name.lstrip("_"), found.offset) == (name.lstrip("_"), 0)


def test_tables_that_were_dropped_are_read_again(monkeypatch):
    reads = _reads(monkeypatch)
    libraries = (None, "getenv"), (None, "PyObject_Repr"), (_ctypes.__file__, "PyInit__ctypes")
    _name_each(libraries, times=3)
    assert len(reads) > 3


def test_the_largest_table_is_not_dropped_for_a_small_one_nor_that_for_it(monkeypatch):
    reads = _reads(monkeypatch)
    _name_each(((None, "getenv"), (None, "PyObject_Repr")), times=3)
    assert len(reads) == 2


def _reads(monkeypatch):
    """What is read from now on; nothing is kept that need not be."""
    monkeypatch.setattr(elf_files, "_KEEP_BYTES", 1)
    reads = []
    read = elf_symbols.read_symbols
    monkeypatch.setattr(
        elf_symbols, "read_symbols", lambda *each: reads.append(each) or read(*each)
    )
    monkeypatch.setattr(elf_files.SymbolCache, "load", lambda _cache, _key: None)
    return reads


def _name_each(functions, times):
    symbolizer = Symbolizer()
    for offset in range(times):
        for library, name in functions:
            function = getattr(ctypes.CDLL(library), name)
            address = ctypes.cast(function, ctypes.c_void_p).value + offset
            (found,) = symbolizer.user(os.getpid(), [address])
            assert (found.name, found.offset) == (name, offset)


def test_a_stack_s_offsets_are_those_of_its_addresses():
    start = ctypes.cast(ctypes.CDLL(None).getenv, ctypes.c_void_p).value
    symbolizer = Symbolizer()
    found = symbolizer.user_stack(os.getpid(), [start + 8, start + 8])
    expected = ("getenv", 8, start + 8)
    assert [(frame.name, frame.offset, frame.address) for frame in found] == [expected] * 2
    assert symbolizer.user_stack(os.getpid(), []) == []


_LAYOUT = r"""
#include <stdio.h>
#include <unistd.h>
#define FUNCTION(name, code) \
  ".type " #name ", @function\n" #name ": " code "\n.size " #name ", . - " #name "\n"
__asm__(".text\n" FUNCTION(last_call, "call abort") FUNCTION(behind, "nop; ret")
        ".balign 64\n" FUNCTION(padded, "ret"));
void last_call(void), behind(void), padded(void);
int main() {
  printf("last_call %p\nbehind %p\npadded %p\n", last_call, behind, padded);
  fflush(stdout);
  char byte;
  return read(0, &byte, 1) < 0;
}
"""


@pytest.mark.needs("gcc")
def test_callers_are_looked_up_one_byte_earlier_unless_nothing_is_there(tmp_path):
    program = compile_program(tmp_path / "program", source=_LAYOUT)
    with running(program) as child:
        behind, padded = child.functions["behind"], child.functions["padded"]
        found = Symbolizer().user_stack(child.pid, [behind, behind, behind + 1, padded])
    assert [(frame.name, frame.offset) for frame in found] == [
        ("behind", 0), ("last_call", 5), ("behind", 1), ("padded", 0),
    ]  # fmt: skip


def test_addresses_outside_code_have_no_name():
    found = Symbolizer().user_stack(os.getpid(), [0x10, 0, 5, 1 << 63, (1 << 64) - 1])
    assert [each.reason for each in found] == [Reason.GARBAGE] * 5
    (leaf,) = Symbolizer().user(os.getpid(), [0x7000])
    assert leaf.reason is Reason.UNMAPPED


def test_a_kernel_function():
    row = re.search(
        r"^([0-9a-f]+) [tT] (do_sys_openat2)$", Path("/proc/kallsyms").read_text(), re.MULTILINE
    )
    start = int(row[1], 16)
    symbolizer = Symbolizer()
    expected = ("do_sys_openat2", 7, "kernel", start + 7, "kernel")
    assert symbolizer.kernel([start + 7])[0][:5] == expected
    leaf, caller = symbolizer.kernel_stack([start, start])
    assert (leaf.name, leaf.offset) == ("do_sys_openat2", 0)
    assert caller.name != "do_sys_openat2"
    assert caller.address == start
    assert symbolizer.kernel([0x10])[0].reason is Reason.NO_KERNEL_FUNCTION


def test_kernel_addresses_do_not_pile_up_between_windows():
    """20,000 of them, 5 MB of answers, are forgotten; asked again, they have the same names."""
    start = int(re.search(r"^([0-9a-f]+) [tT] do_sys_openat2$", _kallsyms(), re.MULTILINE)[1], 16)
    symbolizer = Symbolizer()
    first = symbolizer.kernel([start])
    tracemalloc.start()
    try:
        names = [frame[:3] for frame in symbolizer.kernel(range(start, start + 20_000))][::4000]
        symbolizer.forget_but(())
        left, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most > 5 * left
    assert symbolizer.kernel([start]) == first
    again = symbolizer.kernel(range(start, start + 20_000, 4000))
    assert [frame[:3] for frame in again] == names


def _kallsyms() -> str:
    return Path("/proc/kallsyms").read_text()
