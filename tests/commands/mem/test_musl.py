"""Programs of musl, as Alpine has them: its functions jump to others that have no symbols."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("bpf", "perf_event", "musl-gcc", "x86_64")
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *volatile places[300];
__attribute__((noinline)) void keep(void) {
    for (int i = 0; i < 137; i++)
        memset(places[i] = malloc(1000), 1, 1000);
}
__attribute__((noinline)) void drop(void) {
    for (int i = 0; i < 59; i++) {
        places[200] = calloc(10, 10);
        places[200] = realloc(places[200], 300);
        free(places[200]);
    }
}
int main(int count, char **words) {
    if (count > 1) { puts("ready"); fflush(stdout); getchar(); }
    keep();
    drop();
    if (count > 1) getchar();
    return 0;
}
"""


@pytest.fixture(scope="module", params=["dynamic", "static"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("musl")
    (folder / "program.c").write_text(SOURCE)
    link = ["-static"] if request.param == "static" else []
    target = str(folder / "program")
    subprocess.run(["musl-gcc", "-O1", *link, "-o", target, folder / "program.c"], check=True)
    return target


def measure(*words: str) -> dict[str, int]:
    """Allocations and bytes of each function of the program, by what was not freed."""
    command = [sys.executable, "-P", "-m", "purebpf", "mem", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "not traced" not in done.stdout + done.stderr, done.stdout + done.stderr
    # where much else runs, the first stacks may be a few more than the ring of their copies takes
    assert re.search(
        r"^lost: (nothing|callers in <?0\.\d % of the user stacks \(copy_lost\))$",
        done.stdout + done.stderr,
        re.MULTILINE,
    ), done.stderr
    sums: dict[str, int] = {}
    for line in done.stdout.splitlines():
        stack, _, value = line.rpartition(" ")
        for name in ("keep", "drop"):
            if f";{name}" in stack:
                sums[name] = sums.get(name, 0) + int(value)
    return sums


@pytest.mark.parametrize(
    ("show", "sums"),
    [
        ("unfreed", {"keep": 137_000}),
        ("allocated", {"keep": 137_000, "drop": 59 * 400}),
    ],
)
def test_a_command(program: str, show: str, sums: dict[str, int]) -> None:
    assert measure("--show", show, "-f", "--", program) == sums


def test_a_process(program: str) -> None:
    with subprocess.Popen(
        [program, "waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        begins = "import sys, time; time.sleep(3); print()"
        with subprocess.Popen([sys.executable, "-c", begins], stdout=process.stdin):
            words = ("-p", str(process.pid), "--show", "allocated", "-f", "6")
            assert measure(*words) == {"keep": 137_000, "drop": 59 * 400}
        process.kill()
