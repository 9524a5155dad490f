"""`sampleip --symbol` finds C++ functions by the names that are printed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")

SOURCE = """
#include <cstdio>
volatile unsigned long sink;
namespace shop {
[[gnu::noinline]] void wanted(unsigned long turns, int)
{
	for (unsigned long i = 0; i < turns; i++)
		sink += i;
}
[[gnu::noinline]] void other(unsigned long turns)
{
	for (unsigned long i = 0; i < turns; i++)
		sink += i + 1;
}
}
int main()
{
	puts("ready");
	fflush(stdout);
	for (;;) {
		shop::wanted(10000, 1);
		shop::other(10000);
	}
}
"""
NAMES = (
    "shop::wanted(unsigned long, int)",
    "shop::wanted",
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A process that spends half of its time in the function."""
    folder: Path = tmp_path_factory.mktemp("shop")
    (folder / "shop.cc").write_text(SOURCE)
    subprocess.run(["g++", "-O1", "-o", folder / "shop", folder / "shop.cc"], check=True)
    with subprocess.Popen([folder / "shop"], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize("name", NAMES)
def test_a_function_is_found_by_its_name(shop: int, name: str) -> None:
    words = ["--symbol", name, "-p", str(shop), "--count", "-F", "997"]
    for seconds in ("0.3", "10"):  # a busy machine may need longer to get to the first sample
        run = subprocess.run(
            [sys.executable, "-m", "purebpf", "sampleip", *words, seconds],
            capture_output=True, text=True, check=False, cwd=ROOT, timeout=60,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        found = set(re.findall(r"(shop::\w+)\(", run.stdout))
        if found:
            break
    assert found == {"shop::wanted"}
