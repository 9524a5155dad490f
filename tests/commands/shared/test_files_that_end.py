"""Names of programs whose files are gone before the run ends."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc", "unshare")

LIBRARY = """
static volatile unsigned long sink;
static __attribute__((noinline)) void in_library(void)
{
    for (unsigned long n = 0; n < 3000000UL; n++)
        sink += n;
}
void exported(void)
{
    in_library();
    sink++;
}
"""
PROGRAM = """
#include <time.h>
void exported(void);
__attribute__((noinline)) void in_program(void)
{
    exported();
    __asm__ volatile("");
}
int main(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (long end = now.tv_sec + 2; now.tv_sec < end; clock_gettime(CLOCK_MONOTONIC, &now))
        in_program();
    return 0;
}
"""
IN_A_NAMESPACE = """
mount -t tmpfs none "$2" && cp "$1"/short_app "$1"/libshort.so "$2" && cd "$2" && ./short_app
"""
"""The namespace ends with this shell, and its file system with it."""
REPLACES_ITSELF = """
cp "$1"/short_app "$1"/libshort.so "$2" && cd "$2" && ./short_app & sleep 0.8
cp "$1"/short_app "$2"/next && mv "$2"/next "$2"/short_app && rm "$2"/libshort.so; wait
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a program and its library."""
    directory = tmp_path_factory.mktemp("built")
    (directory / "library.c").write_text(LIBRARY)
    (directory / "program.c").write_text(PROGRAM)
    gcc = ["gcc", "-O1", "-fno-optimize-sibling-calls"]
    library = directory / "libshort.so"
    subprocess.run(
        [*gcc, "-shared", "-fPIC", "-Wl,-soname,libshort.so", "-o", library, "library.c"],
        cwd=directory,
        check=True,
    )
    subprocess.run(
        [*gcc, "-Wl,-rpath,$ORIGIN", "-o", "short_app", "program.c", library],
        cwd=directory,
        check=True,
    )
    return directory


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["unshare", "-m", "sh", "-c", IN_A_NAMESPACE], id="mount-namespace"),
        pytest.param(["sh", "-c", REPLACES_ITSELF], id="replaced-and-deleted"),
    ],
)
@pytest.mark.parametrize(
    "tool",
    [
        pytest.param(["profile", "-F", "199"], id="profile"),
        pytest.param(["wall", "-F", "199"], id="wall", marks=pytest.mark.nightly),
    ],
)
def test_a_program_keeps_its_names_without_its_file(
    built: Path, tmp_path: Path, command: list[str], tool: list[str]
) -> None:
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    program = shutil.which(command[0])
    assert program is not None
    measured = [program, *command[1:], "sh", built, mounted]
    done = subprocess.run(
        [sys.executable, "-m", "purebpf", *tool, "-f", "--", *measured],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    total = named = 0
    for line in done.stdout.splitlines():
        stack, _, weight = re.sub(r"_\[\w+\](?=[; ])", "", line).rpartition(" ")
        if stack.startswith("short_app"):
            total += int(weight)
            named += int(weight) * ("main;in_program;exported;in_library" in stack)
    # the first samples may precede the loading of the library
    assert named > 0.9 * total > 0, done.stdout + done.stderr
