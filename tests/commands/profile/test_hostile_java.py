"""A program that says it is a JVM, and lies: profiles and dumps end, and say what is missing."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.environment import run
from tests.support.nightly import by_day
from tests.unit.runtimes.hotspot.fake_jvm import (
    ARRAY,
    BASE,
    HEAP,
    LOW,
    SEGMENTS,
    FakeJvm,
    Tables,
    packed,
)

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "x86_64"),
]
METHOD, INLINED = BASE + 0x70000, BASE + 0x72000
STACK, STACK_WORDS = BASE + 0x208000, 0x1000
EVIL = "\x1b[2J\n;evil"
LONGEST_S = 60
PROGRAM = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(int count, char **words) {
  unsigned long number[4];
  for (int at = 0; at < 4; at++) number[at] = strtoul(words[3 + at], 0, 0);
  int image = open(words[1], O_RDONLY);
  void *base = mmap((void *)number[0], 0x220000, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_FIXED_NOREPLACE, image, 0);
  if (base != (void *)number[0] || !dlopen(words[2], RTLD_NOW)) return 1;
  puts("ready");
  fflush(stdout);
  register unsigned long bp asm("rdx") = number[3];
  asm volatile("mov %1, %%rsp; mov %2, %%rbp; jmp *%0"
               :: "r"(number[1]), "r"(number[2]), "r"(bp));
}
"""


class Start(NamedTuple):
    """What the program jumps to, and its registers."""

    code: int
    sp: int = STACK
    fp: int = STACK


def compiled(jvm: FakeJvm) -> Start:
    """A compiled method that calls itself; each word of the stack is a return address."""
    least = jvm.layout.least_byte
    jvm.method(METHOD, "outer", b"\xff" + packed(least, 0, 20) + bytes([6 << 3 | 1, 0]))
    jvm.method(INLINED, "inner")
    scopes = b"\0" + packed(least, 0, 1, 8)
    first = len(scopes)
    scopes += packed(least, 1, 2, 4)
    tables = Tables([(-1, 0), (0x20, 1), (0x7FFFFFFF, first)], scopes, (METHOD, INLINED))
    code = jvm.compiled(LOW + 0x2000, METHOD, 77, tables) + 0x20
    jvm.put_bytes(code, b"\xeb\xfe")
    jvm.put(STACK, *[code + 2] * STACK_WORDS)
    jvm.blob(LOW + 0x4000, 0x400, "native nmethod")
    jvm.blob(LOW + 0x5000, 0x400, "vtable chunks")
    jvm.blob(LOW, 0x1000, "Interpreter", 0)
    return Start(code)


def interpreted(jvm: FakeJvm) -> Start:
    """A frame of the interpreter that is its own caller."""
    compiled(jvm)
    code = LOW + 0x200
    jvm.put_bytes(code, b"\xeb\xfe")
    fp = STACK + 0x400
    jvm.put(fp, fp, code + 2)
    jvm.put(fp - 8, fp + 16)
    jvm.put(fp - 24, METHOD)
    jvm.put(fp - 64, jvm.bytecodes(METHOD) + 4)
    return Start(code, STACK, fp)


def frames_of_2_gb(jvm: FakeJvm) -> Start:
    start = compiled(jvm)
    blob = LOW + 0x2000 + jvm.layout.block_size
    jvm.put_number(blob + jvm.layout.blob_frame_size, 4, 0x7FFFFFFF)
    return start


def frames_of_nothing(jvm: FakeJvm) -> Start:
    start = compiled(jvm)
    blob = LOW + 0x2000 + jvm.layout.block_size
    jvm.put_number(blob + jvm.layout.blob_frame_size, 4, 0)
    return start


def segments_without_a_begin(jvm: FakeJvm) -> Start:
    """The map of segments leads back for ever, behind the first block of each kind."""
    start = compiled(jvm)
    jvm.put_bytes(SEGMENTS + 0x40, b"\1" * 16)
    return start


def many_heaps(jvm: FakeJvm) -> Start:
    start = compiled(jvm)
    jvm.put_number(ARRAY + jvm.layout.array_length, 4, 0x7FFFFFFF)
    return start


def shift_of_255(jvm: FakeJvm) -> Start:
    start = compiled(jvm)
    jvm.put_number(HEAP + jvm.layout.heap_shift, 4, 255)
    return start


def evil_name(jvm: FakeJvm) -> Start:
    start = compiled(jvm)
    jvm.method(METHOD, EVIL)
    return start


def name_of_64_kb(jvm: FakeJvm) -> Start:
    start = compiled(jvm)
    jvm.put_number(METHOD + 0x640 + jvm.layout.symbol_length, 2, 0xFFFF)
    return start


def method_of_itself(jvm: FakeJvm) -> Start:
    """The parts of a method are the method."""
    start = compiled(jvm)
    layout = jvm.layout
    jvm.put(METHOD + layout.method_constant, METHOD)
    jvm.put(METHOD + layout.constant_pool, METHOD)
    jvm.put(METHOD + layout.pool_class, METHOD)
    jvm.put(METHOD + layout.class_name, METHOD)
    return start


def scopes_in_a_circle(jvm: FakeJvm) -> Start:
    start = compiled(jvm)
    least = jvm.layout.least_byte
    scopes = b"\0" + packed(least, 1, 1, 8) + packed(least, 1, 2, 4)
    tables = Tables([(-1, 0), (0x7FFFFFFF, 1)], scopes, (METHOD, INLINED))
    jvm._put_tables(LOW + 0x2000 + jvm.layout.block_size, start.code - 0x20, tables)
    return start


def lines_without_end(jvm: FakeJvm) -> Start:
    start = compiled(jvm)
    jvm.put_number(METHOD + 0x80 + jvm.layout.constant_flags, 2, jvm.layout.line_flag)
    jvm.put_bytes(jvm.bytecodes(METHOD) + 40, b"\x09" * 0x100)
    return start


def no_fields(jvm: FakeJvm) -> Start:
    """The JVM describes none of its fields."""
    start = compiled(jvm)
    jvm.fields = {}
    return start


LIES: dict[Callable[[FakeJvm], Start], str | None] = {
    compiled: "shop.Orders.outer",
    interpreted: "shop.Orders.outer",
    frames_of_2_gb: "",
    frames_of_nothing: None,
    segments_without_a_begin: "",
    many_heaps: "",
    shift_of_255: "",
    evil_name: "",
    name_of_64_kb: "",
    method_of_itself: "",
    scopes_in_a_circle: None,
    lines_without_end: "shop.Orders.outer",
    no_fields: "",
}
"""A name that a profile shows; "": no name of this JVM; None: any."""


def built(folder: Path, jvm: FakeJvm) -> tuple[Path, Path, Path]:
    """The program, the library that describes the JVM, and the JVM's memory."""
    words = {
        name: int.from_bytes(jvm.memory[at - BASE : at - BASE + 8], "little")
        for name, at in jvm.symbols.items()
    }
    library, program, image = folder / "libjvm.so", folder / "java", folder / "image"
    text = "".join(f"unsigned long {name} = {word:#x};\n" for name, word in words.items())
    (folder / "library.c").write_text(text)
    (folder / "program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-shared", "-o", library, folder / "library.c"], check=True)
    subprocess.run(["gcc", "-O1", "-w", "-o", program, folder / "program.c", "-ldl"], check=True)
    image.write_bytes(jvm.memory)
    return program, library, image


@pytest.mark.parametrize("version", by_day([17, 11, 21, 25], [17]))
@pytest.mark.parametrize(
    "lie", by_day(list(LIES), [compiled, interpreted, frames_of_2_gb, method_of_itself])
)
def test_a_false_jvm_ends_no_profile(
    lie: Callable[[FakeJvm], Start], version: int, tmp_path: Path
) -> None:
    jvm = FakeJvm(version)
    start = lie(jvm)
    jvm.describe()
    program, library, image = built(tmp_path, jvm)
    numbers = [hex(each) for each in (BASE, *start)]
    command = [program, image, library, *numbers]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            began = time.monotonic()
            asked = ("--lines", "-U", "-F", "199", "-p", str(process.pid))
            result = run("profile", "--format", "json", *asked, "2")
            check(result)
            profile = json.loads(result.stdout)
            names = "\n".join(frame.get("name") or "" for frame in profile["frames"])
            expected = LIES[lie]
            assert expected is None or expected in names
            assert expected != "" or "shop.Orders" not in names
            is_cut = [bool(stack.get("cut")) for stack in profile["stacks"]]
            assert is_cut
            assert all(is_cut)  # none has a first function
            dumped = run("dump", str(process.pid))
            check(dumped)
            assert time.monotonic() - began < LONGEST_S
            assert process.poll() is None
        finally:
            process.kill()


def check(result: subprocess.CompletedProcess[str]) -> None:
    """Check a result that has no text of the program's as it is."""
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    assert "\x1b[2J" not in result.stdout
    assert "\n;evil" not in result.stdout
