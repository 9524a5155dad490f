"""A program that is written over while it is profiled: each process keeps the names of its file.

cp(1) writes into the file that is there: the path, the device and the inode stay.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from purebpf.files.held_files import HeldFiles
from purebpf.observe.symbols.elf_files import ElfFiles, ElfFunctions, Problem
from purebpf.observe.symbols.function_starts import FunctionStarts
from purebpf.observe.unwind.code_files import CodeFiles
from purebpf.symbols.budget import Budget
from purebpf.symbols.elf_image import PT_LOAD, ElfImage
from purebpf.symbols.frame import Address, FileOffset, Reason, VirtualOffset
from purebpf.symbols.proc_maps import MappedFile, Mapping
from purebpf.tools.profile import ProfileOptions, Profiler

BEFORE, SINCE = (1 << 22) + 1, (1 << 22) + 2
"""Processes that have ended: no process has such a number."""
SOURCE = """
#include <time.h>
static volatile unsigned long spent;
__attribute__((noinline)) static void %(name)s(void)
{
	struct timespec now;
	do {
		for (int at = 0; at < 20000; at++)
			spent += at;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < 400);
}
%(filler)s
int main(void)
{
	%(name)s();
	return 0;
}
"""


def build(folder: Path, name: str, filler: int = 0) -> Path:
    """Build a program whose CPU time is in one function, at a place that depends on `filler`."""
    source, program = folder / f"{name}.c", folder / name
    unused = "".join(
        f"__attribute__((noinline)) void unused_{at}(void) {{ spent *= {at + 3}; }}\n"
        for at in range(filler)
    )
    source.write_text(SOURCE % {"name": name, "filler": unused})
    command = ["gcc", "-O1", "-Wl,--build-id=none", "-fno-toplevel-reorder", "-o", program, source]
    subprocess.run(command, check=True)
    return program


def code_of(program: Path) -> Mapping:
    """The mapping of a program's code."""
    image = ElfImage.of_bytes(program.read_bytes(), program.name)
    segment = next(one for one in image.segments if one.type == PT_LOAD and one.flags & 1)
    status = program.stat()
    device = os.major(status.st_dev), os.minor(status.st_dev)
    file = MappedFile(str(program), *device, status.st_ino)
    start = Address(0x400000)
    return Mapping(start, Address(start + (1 << 20)), FileOffset(segment.offset), file)


def named(functions: ElfFunctions | Problem) -> set[str] | Reason:
    """The functions of a file that begin with `spend`, or the reason why there are none."""
    if isinstance(functions, Problem):
        return functions.reason
    found = map(functions.table.find, map(VirtualOffset, range(0x1000, 0x1400, 2)))
    return {entry[0] for entry in found if entry and entry[0].startswith("spend")}


@pytest.mark.needs("gcc")
def test_each_process_has_the_functions_of_its_file(tmp_path: Path) -> None:
    program = tmp_path / "program"
    shutil.copyfile(build(tmp_path, "spend_before"), program)
    other = build(tmp_path, "spend_since", filler=5)
    with CodeFiles() as opened:
        files = ElfFiles(opened=opened)
        assert opened.noted(code_of(program), BEFORE) is None
        opened.mapping(code_of(program), BEFORE)
        assert named(files.functions(code_of(program), (BEFORE,))) == {"spend_before"}
        shutil.copyfile(other, program)
        opened.mapping(code_of(program), SINCE)
        for _ in range(2):
            assert named(files.functions(code_of(program), (BEFORE,))) == {"spend_before"}
            assert named(files.functions(code_of(program), (SINCE,))) == {"spend_since"}
        late = ElfFiles(opened=opened)
        for _ in range(2):
            assert named(late.functions(code_of(program), (BEFORE,))) is Reason.REPLACED
            assert named(late.functions(code_of(program), (SINCE,))) == {"spend_since"}


@pytest.mark.needs("gcc")
def test_starts_of_functions_are_of_the_file_of_each_process(tmp_path: Path) -> None:
    program = tmp_path / "program"
    shutil.copyfile(build(tmp_path, "spend_before"), program)
    other = build(tmp_path, "spend_since", filler=5)
    with CodeFiles() as opened:
        mapping = code_of(program)
        opened.mapping(mapping, BEFORE)
        shutil.copyfile(other, program)
        opened.mapping(mapping, SINCE)
        starts = FunctionStarts(Budget(), HeldFiles())
        starts.opened = opened
        where = FileOffset(mapping.offset + 0x139)
        for _ in range(2):
            assert starts.find(mapping, (SINCE,), where) is not None
            assert starts.find(mapping, (BEFORE,), where) is None


@pytest.mark.needs("bpf", "perf_event", "gcc")
def test_no_sample_has_a_function_of_the_later_program(tmp_path: Path) -> None:
    before, since = build(tmp_path, "spend_before"), build(tmp_path, "spend_since", filler=40)
    program = tmp_path / "program"
    script = f"cp {before} {program} && {program}; cp {since} {program} && {program}; :"
    with Profiler(ProfileOptions(frequency=499, by_thread=True)) as profiler:
        with subprocess.Popen(["/bin/sh", "-c", script]) as shell:
            while shell.poll() is None:
                profiler.wait(at_most_s=0.05)
        rows = [row for row in profiler.stop().rows() if row.labels.comm == "program"]
    seen: dict[int, dict[str, int]] = {}
    for row in rows:
        names = seen.setdefault(row.labels.pid, {})
        for frame in row.user or ():
            name = getattr(frame, "name", "?")
            if name.startswith(("spend", "unused", "?")):
                names[name] = names.get(name, 0) + row.weight
    first, second = (seen[pid] for pid in sorted(seen))
    assert set(first) <= {"spend_before", "?"}, seen
    assert max(first.values()) > 50
    assert max(second, key=second.__getitem__) == "spend_since"
    assert set(second) <= {"spend_since", "?"}, seen
