"""Files of other users that are mapped as code: a reason for the stack, in bounded time."""

from __future__ import annotations

import os
import random
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from purebpf.observe.unwind.code_files import CodeFiles
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.frame import Address, FileOffset
from purebpf.symbols.proc_maps import Mapping, mapped_file
from purebpf.unwind.machine import X86_64
from tests.support.host.faults import slow_host
from tests.support.programs.walking import LEVELS, Walking, build

pytestmark = pytest.mark.needs(
    "bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "x86_64", "cgroup2"
)

_LIBRARY = LEVELS + "unsigned long enters(unsigned long x) { return level1(x) + 1; }"
_LOADER = r"""
#include <dlfcn.h>
int main(int count, char **arguments) {
  volatile unsigned long sum = 0;
  void *library = dlopen(arguments[1], RTLD_NOW);
  unsigned long (*enters)(unsigned long) = dlsym(library, "enters");
  for (;;) sum += enters(sum);
}
"""


def _long_rows(data: bytes) -> bytes:
    """Every FDE says that its rows go on for 4 GiB, by the largest advances."""
    out = bytearray(data)
    at = 0
    while at + 16 < len(out):
        (length, cie) = struct.unpack_from("<II", out, at)
        if not length:
            break
        if cie:
            struct.pack_into("<I", out, at + 12, 0xFFFFFFFF)
            for place in range(at + 17, at + 4 + length):
                out[place] = 0x7F
        at += 4 + length
    return bytes(out)


def _own_cie(data: bytes) -> bytes:
    """Every entry is its own CIE."""
    out = bytearray(data)
    at = 0
    while at + 8 < len(out):
        (length,) = struct.unpack_from("<I", out, at)
        if not length:
            break
        struct.pack_into("<I", out, at + 4, 4)
        at += 4 + length
    return bytes(out)


_DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "zeros": lambda data: bytes(len(data)),
    "ones": lambda data: b"\xff" * len(data),
    "random": lambda data: random.Random(19).randbytes(len(data)),
    "cyclic": _own_cie,
    "4 GiB of rows": _long_rows,
    "remembers without end": lambda data: data[:64] + b"\x0a" * (len(data) - 64),
}


def _damage(library: Path, change: Callable[[bytes], bytes], name: str = ".eh_frame") -> None:
    data = bytearray(library.read_bytes())
    section = ElfImage.of_bytes(bytes(data), str(library)).section(name)
    assert section is not None
    place = slice(section.offset, section.offset + section.size)
    data[place] = change(bytes(data[place]))
    library.write_bytes(data)


@pytest.mark.parametrize("name", _DAMAGES)
def test_hostile_frames_are_a_reason(tmp_path: Path, name: str) -> None:
    library = build(tmp_path, _LIBRARY, "-shared", "-fPIC", name="library")
    _damage(library, _DAMAGES[name])
    program = build(tmp_path, _LOADER)
    with Walking(copies_per_second=50) as walking:
        walking.only("program")
        walking.start(program, library)
        begun = time.thread_time()
        walking.collect(60)
        walking.stop()
        assert time.thread_time() - begun < (40 if slow_host() else 10)  # of 60
        assert len(walking.found) >= 60
        inside = [each for each in walking.found if len(each.trace.frames) < 6]
        assert any(not each.trace.reason.is_whole for each in inside)


@pytest.mark.parametrize("kind", ["fifo", "directory", "device", "missing", "text"])
def test_what_is_not_an_elf_file_has_no_rules(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "text":
        path.write_text("no ELF file\n" * 999)
    elif kind == "device":
        path = Path("/dev/zero")
    inode = path.stat().st_ino if path.exists() else 0
    file = mapped_file(str(path) if kind != "device" else f"{path}x", 0, 0, inode)
    mapping = Mapping(Address(4096), Address(8192), FileOffset(0), file)
    done = threading.Event()

    def look() -> None:
        with CodeFiles() as files:
            assert files.mapping(mapping, os.getpid()).file is None
        done.set()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    assert done.wait(10)


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    library = build(tmp_path, _LIBRARY, "-shared", "-fPIC", name="library")
    status = library.stat()
    file = mapped_file(str(library), 0, 0, status.st_ino)
    mapping = Mapping(Address(1 << 20), Address((1 << 20) + 4096), FileOffset(0x1000), file)
    with CodeFiles() as files:
        code = files.mapping(mapping, os.getpid())
        assert code.file is not None
        cfi = files.find(code.file)
        assert cfi is not None
        os.truncate(library, 0x1800)
        assert not cfi.rows.starts or cfi.rows.starts[0] >= 0
        row = cfi.row(0x1100)  # of its entry, or of its instructions
        assert row is None or row.cfa_register in (X86_64.sp, X86_64.fp)
        library.write_bytes(b"")
        assert cfi.code(0x1000, 8) == b""


@pytest.mark.parametrize("name", ["[vsyscall]", "[uprobes]"])
def test_memory_of_the_kernel_is_not_read_from_the_current_directory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = build(tmp_path, "int main(void) { return 0; }")
    program.rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    mapping = Mapping(Address(0x7000), Address(0x8000), FileOffset(0x1000), mapped_file(name))
    with CodeFiles() as files:
        assert files.mapping(mapping, os.getpid()).file is None
