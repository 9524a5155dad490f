"""Addresses of processes that exited, live elsewhere, or have files that changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.symbols.address_spaces import AddressSpaces
from purebpf.symbols.frame import Reason
from purebpf.symbols.proc_maps import parse_maps
from purebpf.wire.perf_records import Comm, Exit, Fork, Mmap2
from tests.kernel.symbol_programs import compile_program, running


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compile_program(tmp_path_factory.mktemp("program") / "program")


def _records(pid: int, parent: int, comm: str) -> list[object]:
    """What the kernel would have reported of a process: fork, exec, mappings, exit."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    records: list[object] = [
        Fork(pid, parent, pid, parent, 1),
        Comm(pid, pid, comm, exec=True, time=2),
    ]
    records += [
        Mmap2(
            pid, pid, each.start, each.end - each.start, each.offset, each.file.path,
            each.file.major, each.file.minor, each.file.inode, b"", 5, 2, 3,
        )
        for each in parse_maps(maps)
    ]  # fmt: skip
    return [*records, Exit(pid, parent, pid, parent, 4)]


@pytest.mark.needs("gcc")
def test_a_process_that_exited_is_named_from_what_was_recorded(program):
    spaces = AddressSpaces()
    with running(program) as child:
        for record in _records(child.pid, os.getpid(), "program"):
            spaces.feed(record)
    assert not Path(f"/proc/{child.pid}").exists()
    found = Symbolizer(spaces).user_stack(child.pid, [*child.functions.values()], "program")
    assert found[0].name == "local_function"
    assert found[1].address == child.functions["global_function"]


@pytest.mark.needs("gcc")
def test_a_process_that_exited_unseen_has_a_reason(program):
    with running(program) as child:
        pass
    found = Symbolizer().user_stack(child.pid, list(child.functions.values()))
    assert [each.reason for each in found] == [Reason.EXITED] * 3


@pytest.mark.needs("gcc")
def test_a_process_keeps_its_names_after_its_exit_once_it_was_read(program):
    symbolizer = Symbolizer()
    with running(program) as child:
        symbolizer.user(child.pid, [child.functions["main"]])
    (found,) = symbolizer.user(child.pid, [child.functions["global_function"]])
    assert found.name == "global_function"


@pytest.mark.needs("gcc")
def test_a_deleted_file_is_read_while_its_process_lives(program, tmp_path):
    copy = shutil.copy(program, tmp_path / "copy")
    spaces = AddressSpaces()
    with running(copy) as child:
        os.unlink(copy)
        (found,) = Symbolizer().user(child.pid, [child.functions["main"]])
        assert (found.name, found.module) == ("main", str(copy))
        spaces.snapshot(child.pid, Path(f"/proc/{child.pid}/maps").read_text())
    (found,) = Symbolizer(spaces).user(child.pid, [child.functions["main"]])
    assert found.reason is Reason.REPLACED


@pytest.mark.needs("gcc")
def test_a_file_that_was_deleted_after_its_process_exited_is_not_found(program, tmp_path):
    copy = shutil.copy(program, tmp_path / "copy")
    spaces = AddressSpaces()
    with running(copy) as child:
        for record in _records(child.pid, os.getpid(), "copy"):
            spaces.feed(record)
    os.unlink(copy)
    (found,) = Symbolizer(spaces).user(child.pid, [child.functions["main"]])
    assert found.reason is Reason.NOT_FOUND


@pytest.mark.needs("gcc")
def test_a_file_that_was_replaced_names_nothing(program, tmp_path):
    copy = shutil.copy(program, tmp_path / "copy")
    spaces = AddressSpaces()
    with running(copy) as child:
        for record in _records(child.pid, os.getpid(), "copy"):
            spaces.feed(record)
    shutil.copy(program, tmp_path / "new")
    os.rename(tmp_path / "new", copy)
    (found,) = Symbolizer(spaces).user(child.pid, [child.functions["main"]])
    assert found.reason is Reason.REPLACED
    assert found.module == str(copy)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\2\3\1" + bytes(100)])
def test_a_file_that_is_not_elf_names_nothing(tmp_path, content):
    file = tmp_path / "data"
    file.write_bytes(content)
    spaces = AddressSpaces()
    status = file.stat()
    device = (os.major(status.st_dev), os.minor(status.st_dev))
    spaces.feed(Mmap2(1 << 22, 1, 0x1000, 0x1000, 0, str(file), *device, status.st_ino, b"", 5, 2))
    (found,) = Symbolizer(spaces).user(1 << 22, [0x1234])
    assert found.reason is Reason.NOT_ELF
    assert found.detail
    assert found.file_offset == 0x234


def test_what_is_not_a_regular_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null"), tmp_path / "missing"):
        spaces = AddressSpaces()
        spaces.feed(Mmap2(1 << 22, 1, 0x1000, 0x1000, 0, str(path), 0, 0, 0, b"", 5, 2))
        (found,) = Symbolizer(spaces).user(1 << 22, [0x1234])
        assert found.reason is Reason.NOT_FOUND


@pytest.mark.needs("gcc")
def test_a_build_id_says_whether_it_is_the_same_file(program):
    symbolizer = Symbolizer()
    with running(program) as child:
        (frame,) = symbolizer.user(child.pid, [child.functions["main"]])
    for build_id, name in ((bytes.fromhex(frame.build_id), "main"), (bytes(20), None)):
        spaces = AddressSpaces()
        offset = frame.file_offset & ~0xFFF
        spaces.feed(
            Mmap2(1 << 22, 1, 0x1000, 0x1000, offset, str(program), 0, 0, 0, build_id, 5, 2)
        )
        (found,) = Symbolizer(spaces).user(1 << 22, [0x1000 + frame.file_offset - offset])
        assert (getattr(found, "name", None), getattr(found, "reason", None)) == (
            name,
            None if name else Reason.REPLACED,
        )


@pytest.mark.needs("gcc", "unshare")
def test_a_file_in_another_mount_namespace(program, tmp_path):
    """The child sees its program at a path where we have something else."""
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "program").write_text("not this one")
    shell = 'mount -t tmpfs none "$1" && cp "$2" "$1/program" && exec "$1/program"'
    command = ["unshare", "--mount", "sh", "-c", shell, "sh", inside, program]
    with running(*command) as child:
        assert (inside / "program").read_text() == "not this one"
        (found,) = Symbolizer().user(child.pid, [child.functions["local_function"]])
    assert (found.name, found.module) == ("local_function", str(inside / "program"))


@pytest.mark.needs("gcc")
def test_a_process_in_another_root(tmp_path):
    compile_program(tmp_path / "program", "-static")
    launcher = (
        "import os, sys; os.chroot(sys.argv[1]); os.chdir('/'); os.execv('/program', ['program'])"
    )
    with running(sys.executable, "-c", launcher, tmp_path) as child:
        (found,) = Symbolizer().user(child.pid, [child.functions["local_function"]])
    assert found.name == "local_function"


_JIT = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **arguments) {
  int all = PROT_READ | PROT_WRITE | PROT_EXEC;
  char *code = mmap(0, 4096, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  printf("code %p\n", (void *)code);
  char name[64];
  snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
  FILE *map = count > 1 ? fopen(name, "w") : 0;
  char byte;
  fflush(stdout);
  for (int i = 0; read(0, &byte, 1) == 1; i++) {
    fprintf(map, "%lx 10 function_%d\n", (unsigned long)code + 16 * i, i);
    fflush(map);
    printf("wrote %p\n", (void *)code);
    fflush(stdout);
  }
  if (map) { fclose(map); unlink(name); }
  return 0;
}
"""


@pytest.mark.needs("gcc")
def test_generated_code_is_named_by_its_perf_map_as_it_grows(tmp_path):
    program = compile_program(tmp_path / "jit", source=_JIT)
    child = subprocess.Popen(
        [program, "map"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    symbolizer = Symbolizer()
    try:
        code = int(child.stdout.readline().split()[1], 16)
        assert symbolizer.user(child.pid, [code])[0].reason is Reason.ANONYMOUS
        for index in range(3):
            child.stdin.write("x")
            child.stdin.flush()
            assert child.stdout.readline().startswith("wrote")
            address = code + 16 * index
            (found,) = symbolizer.user(child.pid, [address + 1])
            assert (found.name, found.offset, found.module) == (f"function_{index}", 1, "[jit]")
        assert symbolizer.user(child.pid, [code + 100])[0].reason is Reason.NOT_IN_PERF_MAP
    finally:
        child.communicate()


@pytest.mark.needs("gcc")
def test_generated_code_without_a_map_has_a_reason(tmp_path):
    program = compile_program(tmp_path / "jit", source=_JIT)
    with running(program, functions=1) as child:
        found = Symbolizer().user_stack(child.pid, [child.functions["code"] + 4] * 2)
    assert [each.reason for each in found] == [Reason.ANONYMOUS] * 2


@pytest.mark.needs("gcc", "unshare")
def test_a_container_s_perf_map(tmp_path):
    """The child has another pid, and another /tmp, than we see."""
    program = compile_program(tmp_path / "jit", source=_JIT)
    shell = 'exec 3<"$1" && mount -t tmpfs none /tmp && exec /proc/self/fd/3 map'
    command = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", shell, "sh", program]
    unshare = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        code = int(unshare.stdout.readline().split()[1], 16)
        children = Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children").read_text()
        unshare.stdin.write("x")
        unshare.stdin.flush()
        assert unshare.stdout.readline().startswith("wrote")
        (found,) = Symbolizer().user(int(children), [code + 3])
    finally:
        unshare.communicate()
    assert (found.name, found.offset) == ("function_0", 3)
