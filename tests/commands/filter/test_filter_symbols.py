"""`symbol ==` in a program that runs: the samples of one function, as nm knows it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.filter import FilterError, parse
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.observe.filters.filter_names import MachineNames
from purebpf.observe.filters.sample_filter import SampleFilter
from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_records import Sample
from tests.commands.conftest import ROOT, SOURCES, Workloads
from tests.support.nightly import by_day

pytestmark = pytest.mark.needs("bpf", "perf_event", "vmlinux_btf", "gcc", "nm")

WHERE = bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_TID
ENOUGH = 300
PATIENCE_S = 30


KINDS = {
    "position-independent": ["-pie", "-fPIE"],
    "at a fixed address": ["-no-pie"],
    "a shared library": ["-shared", "-fPIC", "-Dmain=run"],
}
"""How the function's file is built."""


def addresses(path: str, pid: int, name: str) -> range:
    """Where a function of a running program or its library is, by nm and /proc/PID/maps."""
    shown = subprocess.run(["nm", "-S", path], check=True, capture_output=True, text=True).stdout
    (row,) = (line.split() for line in shown.splitlines() if line.endswith(f" {name}"))
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    base = int(next(line for line in maps if line.endswith(path)).split("-")[0], 16)
    start = int(row[0], 16) + (base if int(row[0], 16) < base else 0)
    return range(start, start + int(row[1], 16))


@contextmanager
def built(folder: Path, kind: str) -> Iterator[tuple[int, str]]:
    """The process that runs the split, and the file that has its functions."""
    file = str(folder / "split")
    command = ["gcc", "-O1", *KINDS[kind], "-o", file, str(SOURCES / "split.c")]
    subprocess.run(command, check=True)
    program = file
    if kind == "a shared library":
        program = str(folder / "caller")
        code = "int run(void); int main(void) { return run(); }"
        command = ["gcc", "-x", "c", "-", "-x", "none", file, "-o", program]
        subprocess.run(command, input=code, text=True, check=True)
    with subprocess.Popen([program], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process.pid, file
        finally:
            process.kill()


def record(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the recorder in `folder`."""
    command = [sys.executable, "-m", "purebpf", "record", "-v", "-o", "perf.data", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=environment
    )


@pytest.mark.parametrize("target", by_day(["-p", "-t"], ["-p"]))
@pytest.mark.parametrize("kind", by_day(KINDS, ["at a fixed address", "a shared library"]))
def test_only_the_samples_of_a_function_are_in_the_file(
    kind: str, target: str, tmp_path: Path
) -> None:
    with built(tmp_path, kind) as (pid, file):
        place = addresses(file, pid, "spend_thirty")
        for seconds in ("1", "4", "20"):  # what a busy machine may take
            run = record(
                tmp_path, "-e", "cpu-clock:u", "-F", "997", target, str(pid),
                "--filter", "symbol == spend_thirty", seconds,
            )  # fmt: skip
            assert run.returncode == 0, run.stderr
            (line,) = [line for line in run.stderr.splitlines() if line.startswith("loss:")]
            words = {name: value for name, _, value in (w.partition("=") for w in line.split())}
            ips = sampled(tmp_path / "perf.data")
            assert int(words["seen"]) == len(ips) + int(words["rejected"])
            if ips and words["rejected"] != "0":
                break
    assert ips
    assert words["rejected"] != "0"
    assert all(ip in place for ip in ips)


def sampled(path: Path) -> list[int]:
    """The addresses of the samples in a file."""
    data = path.read_bytes()
    records = PerfData(lambda at, size: data[at : at + size], len(data), str(path)).records()
    return [each.record.ip for each in records if isinstance(each.record, Sample)]


@pytest.mark.parametrize(("name", "share"), [("spend_seventy", 0.7), ("spend_thirty", 0.3)])
def test_the_samples_of_one_function(workloads: Workloads, name: str, share: float) -> None:
    with (
        workloads.running("split") as pid,
        SampleFilter(parse(f"symbol == {name}"), WHERE, names=MachineNames([pid])) as chosen,
        PerfEvent.sampling(
            frequency=2000, event="cpu-clock", pid=pid, sample_type=WHERE, disabled=1,
            exclude_kernel=1,
        ) as event,
    ):  # fmt: skip
        event.map_ring(64)
        chosen.attach(event)
        event.enable()
        deadline = time.monotonic() + PATIENCE_S
        while chosen.counts().seen < ENOUGH and time.monotonic() < deadline:
            time.sleep(0.05)
        event.disable()
        found = {each.ip for each in event.records()}
        counts = chosen.counts()
        place = addresses(workloads.path("split"), pid, name)
    assert counts.seen >= ENOUGH
    assert found
    assert all(ip in place for ip in found)
    assert share - 0.15 < counts.passed / counts.seen < share + 0.15


def test_a_function_that_does_not_exist_is_shown(workloads: Workloads) -> None:
    with workloads.running("split") as pid, pytest.raises(FilterError) as caught:
        SampleFilter(parse("symbol == spend_fifty"), WHERE, names=MachineNames([pid]))
    said = f"unknown function 'spend_fifty' in /proc/kallsyms, process {pid}; similar: spend_"
    assert said in str(caught.value)
    assert caught.value.column == len("symbol == s")


def test_a_misspelt_function_of_the_kernel_is_answered_with_the_nearest() -> None:
    with pytest.raises(FilterError, match=r"'vfs_raed' in /proc/kallsyms; similar: .*vfs_read"):
        SampleFilter(parse("symbol == vfs_raed"), WHERE)
    with pytest.raises(
        FilterError, match=r"'zzzzzzzzzzz' in /proc/kallsyms; purebpf searches only"
    ):
        SampleFilter(parse("symbol == zzzzzzzzzzz"), WHERE)


@pytest.mark.parametrize("instead", ["another file", "a FIFO"])
def test_a_replaced_file_is_not_searched(tmp_path: Path, instead: str) -> None:
    with built(tmp_path, "at a fixed address") as (pid, file):
        expected = addresses(file, pid, "spend_seventy")
        other = str(tmp_path / "other")
        if instead == "a FIFO":
            os.mkfifo(other)
        else:
            moved = 'void other(void) { __asm__(".skip 4096"); }'
            command = ["gcc", "-O1", "-no-pie", "-x", "c", "-", str(SOURCES / "split.c")]
            subprocess.run([*command, "-o", other], input=moved, text=True, check=True)
        os.replace(other, file)
        ((tgid, start, last),) = MachineNames([pid]).symbol("spend_seventy")
        assert (tgid, start, last + 1) == (pid, expected.start, expected.stop)


CPP = """
#include <cstdio>
namespace shop {
__attribute__((noinline)) unsigned long leaf_a(unsigned long n, int step)
{
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < n; i++)
        sum = sum + step;
    return sum;
}
struct Cart {
    __attribute__((noinline)) unsigned long total() const { return leaf_a(1000, 3); }
};
}
int main()
{
    std::puts("ready");
    std::fflush(stdout);
    for (;;)
        shop::Cart().total();
}
"""
SPELLINGS = {
    "_ZN4shop6leaf_aEmi": (
        *("shop::leaf_a(unsigned long, int)", "shop::leaf_a(ulong, int)"),
        "shop::leaf_a",
    ),
    "_ZNK4shop4Cart5totalEv": ("shop::Cart::total() const", "shop::Cart::total"),
}


def test_a_cpp_function_has_the_names_that_purebpf_prints(tmp_path: Path) -> None:
    program = str(tmp_path / "shop")
    command = ["gcc", "-O1", "-x", "c++", "-", "-o", program]
    subprocess.run(command, input=CPP, text=True, check=True)
    with subprocess.Popen([program], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            names = MachineNames((process.pid,))
            for mangled, spelt in SPELLINGS.items():
                for name in spelt:
                    assert names.symbol(name) == names.symbol(mangled), name
            with pytest.raises(LookupError, match="unknown function 'leaf_a'"):
                names.symbol("leaf_a")
            done = record(
                tmp_path,
                *("-F", "999", "-p", str(process.pid)),
                *("--filter", 'symbol == "shop::leaf_a(unsigned long, int)"', "0.5"),
            )
            assert done.returncode == 0, done.stderr
        finally:
            process.kill()
    assert sampled(tmp_path / "perf.data")
