"""Processes with another file than this machine by a library's name, each for its own reason."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["LIBRARY", "WAYS", "build_program", "running_with_own_library"]

LIBRARY = "libwork.so"
NOTE = """
asm(".pushsection .stapsdt.base, \\"aG\\", \\"progbits\\", .stapsdt.base, comdat\\n"
    ".weak _.stapsdt.base\\n.hidden _.stapsdt.base\\n"
    "_.stapsdt.base: .space 1\\n.size _.stapsdt.base, 1\\n.popsection\\n");
#define PASS(name) asm volatile("990: nop\\n"                              \\
    ".pushsection .note.stapsdt, \\"\\", \\"note\\"\\n.balign 4\\n"        \\
    ".4byte 992f - 991f, 994f - 993f, 3\\n991: .asciz \\"stapsdt\\"\\n"    \\
    "992: .balign 4\\n993: .8byte 990b, _.stapsdt.base, 0\\n"              \\
    ".asciz \\"own\\"\\n.asciz \\"" name "\\"\\n.asciz \\"\\"\\n"          \\
    "994: .balign 4\\n.popsection\\n")
"""
SOURCE = f"""
#include <unistd.h>
{NOTE}
static char room[64];
__attribute__((noipa)) void *malloc(unsigned long size) {{ return size > 64 ? 0 : room; }}
__attribute__((noipa)) void free(void *place) {{ }}
__attribute__((noipa)) void work(void)
{{
    PASS("begin");
    free(malloc(8));
    usleep(1000);
    PASS("end");
}}
"""
PROGRAM = """
#include <unistd.h>
void work(void);
int main(int count, char **words)
{
    char byte;
    while (count < 2 || read(0, &byte, 1) == 1)
        work();
}
"""
"""Calls `work` all the time, or, with an argument, once for each byte of its input."""


def by_mount(build: Path, place: Path) -> list[str]:
    """The command of a process in another mount namespace, with its library at `place`."""
    script = f"mount -t tmpfs none {place} && cp {build}/* {place} && cd {place} && exec ./program"
    return ["unshare", "-m", "sh", "-c", script]


def by_root(build: Path, place: Path) -> list[str]:
    """The command of a process in another root directory, with its library at `place` there."""
    root = build.parent / "root"
    listed = subprocess.run(
        ["ldd", build / "program"], capture_output=True, text=True, check=True,
        env=os.environ | {"LD_LIBRARY_PATH": str(build)},
    ).stdout  # fmt: skip
    needed = [word for word in listed.split() if word.startswith("/") and LIBRARY not in word]
    for path in needed:
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path[1:])
    shutil.copytree(build, root / str(place)[1:])
    return ["env", f"LD_LIBRARY_PATH={place}", "chroot", str(root), f"{place}/program"]


def by_environment(build: Path, _: Path) -> list[str]:
    """The command of a process that LD_LIBRARY_PATH leads to its library."""
    return ["env", f"LD_LIBRARY_PATH={build}", str(build / "program")]


def by_update(build: Path, place: Path) -> list[str]:
    """The command of a process whose library is replaced at `place` when it runs."""
    for name in (LIBRARY, "program"):
        shutil.copy(build / name, place / name)
    return [str(place / "program")]


WAYS: dict[str, Callable[[Path, Path], list[str]]] = {
    "mount namespace": by_mount,
    "root directory": by_root,
    "environment": by_environment,
    "update": by_update,
}


def _compile(folder: Path) -> None:
    flags = ["-O1", "-fno-builtin", "-x", "c", "-"]
    library = ["gcc", "-shared", "-fPIC", "-o", LIBRARY, *flags]
    subprocess.run(library, input=SOURCE, text=True, check=True, cwd=folder)


def build_program(folder: Path) -> None:
    """Build the program and its library in a new folder."""
    folder.mkdir()
    _compile(folder)
    link = ["gcc", "-o", "program", "-x", "c", "-", "-L.", "-lwork", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(link, input=PROGRAM, text=True, check=True, cwd=folder)


@contextmanager
def running_with_own_library(way: str, folder: Path) -> Iterator[tuple[int, Path]]:
    """The PID of a process that calls `work` of its own `libwork.so` a thousand times a second.

    The path leads to another such library here, which no process has mapped.
    """
    build, place = folder / "build", folder / "place"
    place.mkdir()
    build_program(build)
    command = WAYS[way](build, place)
    with subprocess.Popen(command) as process:
        try:
            deadline = time.monotonic() + 30
            while LIBRARY not in Path(f"/proc/{process.pid}/maps").read_text():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            (place / LIBRARY).unlink(missing_ok=True)
            _compile(place)
            yield process.pid, place / LIBRARY
        finally:
            process.kill()
