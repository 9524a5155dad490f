"""What a process of another user shows as its allocator does not stop or slow down a run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.observe.instruments import allocators
from purebpf.observe.instruments.allocators import allocators_of
from purebpf.tools.mem import MemOptions, Memory

pytestmark = pytest.mark.needs(
    "bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "x86_64", "atomic_fetch"
)

NOBODY = 65534
LIBRARY = """
asm(".globl malloc, free\\n.type malloc, @function\\n.type free, @function\\n"
    "malloc: .byte 0x06, 0x06, 0x06\\nfree: .byte 0x06, 0x06, 0x06\\n");
"""
"""An instruction that 64-bit code cannot have: the kernel refuses probes there."""
PROGRAM = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **paths) {
	for (int i = 1; i < count; i++) {
		int fd = open(paths[i], O_RDONLY);
		if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096) == MAP_FAILED)
			return 1;
		close(fd);
	}
	puts("ready");
	fflush(stdout);
	while (getchar() == 'a') {
		for (int i = 0; i < 1009; i++)
			*(void *volatile *)malloc(77) = 0;
		puts("done");
		fflush(stdout);
	}
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("libraries")
    for above in (made, *made.parents):
        if above != Path("/tmp") and above.stat().st_uid == os.getuid():
            above.chmod(above.stat().st_mode | 0o011)
    (made / "library.c").write_text(LIBRARY)
    (made / "program.c").write_text(PROGRAM)
    shared = ("gcc", "-shared", "-nostdlib", "-o", made / "libc-0.so", made / "library.c")
    subprocess.run(shared, check=True)
    command = ["gcc", "-w", "-o", made / "program", made / "program.c"]
    subprocess.run(command, check=True)
    for number in range(1, 40):
        (made / f"libc-{number}.so").write_bytes((made / "libc-0.so").read_bytes())
    return made


@contextmanager
def mapping(folder: Path, count: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process of another user that has so many of the libraries mapped."""
    pipe = subprocess.PIPE
    paths = [folder / f"libc-{number}.so" for number in range(count)]
    words = [folder / "program", *paths]
    with subprocess.Popen(
        words, stdin=pipe, stdout=pipe, user=NOBODY, group=NOBODY, extra_groups=[]
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process
        finally:
            process.kill()


def test_an_allocator_that_cannot_be_probed_does_not_stop_the_run(folder: Path) -> None:
    with mapping(folder, 1) as process, Memory(MemOptions(pids=(process.pid,))) as memory:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"a")
        process.stdin.flush()
        assert process.stdout.readline() == b"done\n"
        use = memory.stop()
    assert use.allocated.about["allocations"] >= 1009
    assert [path for path in use.allocated.about["allocators"] if path.endswith("libc.so.6")]
    (sentence,) = [hint for hint in use.allocated.hints if "not traced" in hint]
    assert "libc-0.so" in sentence


def test_a_process_shows_few_allocators(folder: Path) -> None:
    with mapping(folder, 40) as process:
        assert len(allocators_of(process.pid)) <= 16


def test_a_file_is_read_once_for_all_processes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user may start a thousand processes."""
    read = []
    image_of = allocators.image_of
    monkeypatch.setattr(
        allocators,
        "image_of",
        lambda fd, path, spend: read.append(path) or image_of(fd, path, spend),
    )
    known: dict[allocators.Identity, allocators.Functions] = {}
    with mapping(folder, 2) as process:
        first = allocators_of(process.pid, everywhere=True, by_identity=known)
        files = len(read)
        assert allocators_of(process.pid, everywhere=True, by_identity=known) == first
    assert len(first) == 3
    assert len(read) == files
