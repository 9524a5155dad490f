"""What sampleip shows and counts is where the program was."""

from __future__ import annotations

import math
import re
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from tests.commands.conftest import ROOT, Workloads

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")

SampleIp = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def sampleip() -> SampleIp:
    """Run `purebpf sampleip` with arguments."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "purebpf", "sampleip", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            timeout=120,
        )

    return run


def shown(sampleip: SampleIp, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run that shows samples: a busy machine may need longer to get to the first."""
    for seconds in ("1", "10"):
        run = sampleip(*arguments, seconds)
        assert run.returncode == 0, run.stderr
        if "samples: 0 in the ranges" not in run.stderr:
            return run
    raise AssertionError(run.stderr)


def functions(run: subprocess.CompletedProcess[str]) -> Counter[str]:
    """The counts of `--count` by function."""
    assert run.returncode == 0, run.stderr
    found: Counter[str] = Counter()
    for count, name in re.findall(r"^0x\w+ +\S+ +(\d+) (\w+)\+", run.stdout, re.MULTILINE):
        found[name] += int(count)
    return found


def test_only_the_function_is_counted(workloads: Workloads, sampleip: SampleIp) -> None:
    with workloads.running("split") as pid:
        run = sampleip("--symbol", "spend_thirty", "-p", str(pid), "--count", "-F", "4999", "1")
    found = functions(run)
    assert set(found) == {"spend_thirty"}
    inside, outside = map(int, re.findall(r"(\d+) in the ranges, (\d+) outside", run.stderr)[0])
    assert found["spend_thirty"] == inside
    deviation = 100 * math.sqrt(0.7 * 0.3 / (inside + outside))
    # the rest is its other function and the kernel, which takes what it likes
    assert 100 * inside / (inside + outside) <= 30 + 2 + 4 * deviation
    assert inside > 5


@pytest.mark.any_kernel
def test_a_module_of_a_process_is_all_its_functions(
    workloads: Workloads, sampleip: SampleIp
) -> None:
    with workloads.running("split") as pid:
        run = sampleip("--module", "split", "-p", str(pid), "--count", "-F", "4999", "1")
    found = functions(run)
    assert {"spend_seventy", "spend_thirty"} <= set(found)
    both = found["spend_seventy"] + found["spend_thirty"]
    deviation = 100 * math.sqrt(0.7 * 0.3 / both)
    assert 100 * found["spend_seventy"] / both == pytest.approx(70, abs=2 + 4 * deviation)


def test_kernel_functions_are_shown_with_their_process(
    workloads: Workloads, sampleip: SampleIp
) -> None:
    with workloads.running("calls") as pid:
        run = shown(sampleip, "--symbol", "vfs_read", "-p", str(pid), "-F", "1999")
    table, _, samples = run.stdout.partition("\n\n")
    (function,) = re.findall(r"^ +(\d+) 100.0% vfs_read \[kernel\]$", table, re.MULTILINE)
    header, *lines = samples.splitlines()
    assert len(lines) == int(function)
    assert header.split() == ["TIME", "CPU", "COMM", "PID/TID", "IP", "SYMBOL"]
    assert lines
    fields = [line.split(maxsplit=5) for line in lines]
    assert {each[2:4] and (each[2], each[3]) for each in fields} == {("calls", f"{pid}/{pid}")}
    assert all(re.fullmatch(r"vfs_read\+0x\w+ \[kernel\]", each[5]) for each in fields)
    times = [float(each[0]) for each in fields]
    assert times == sorted(times)
    assert re.search(rf"samples: {len(lines)} in the ranges", run.stderr)


@pytest.mark.any_kernel
def test_the_bytes_begin_with_the_address(workloads: Workloads, sampleip: SampleIp) -> None:
    with workloads.running("split") as pid:
        run = shown(sampleip, "--symbol", "spend_seventy", "-p", str(pid), "--hex", "-F", "499")
    first = run.stdout.splitlines()[:2]
    assert re.fullmatch(rf"split {pid} \d+\.\d{{6}}:", first[0])
    assert re.fullmatch(r" +BPF output: 0000:( \w\w){8}  .{8}", first[1])


def test_a_full_map_is_reported(workloads: Workloads, sampleip: SampleIp) -> None:
    with workloads.running("split") as pid:
        arguments = ["-v", "-p", str(pid), "--count", "--map-entries", "1", "-F", "997", "--strict"]
        run = sampleip(*arguments, "1")
    assert run.returncode == 3
    words = dict(word.split("=") for word in re.findall(r"\w+=\d+", run.stderr))
    assert int(words["map_full"]) > 0
    assert "Raise --map-entries" in " ".join(run.stderr.split())


def test_a_command_is_sampled(workloads: Workloads, sampleip: SampleIp) -> None:
    run = sampleip("--count", "-F", "997", "--", workloads.path("brief"))
    assert functions(run)["burn_briefly"] > 0


@pytest.mark.needs("vmlinux_btf")
def test_children_that_end_sooner_than_a_period_are_sampled(sampleip: SampleIp) -> None:
    """At 49 Hz, which inherited events of children that live for a few ms never count."""
    script = "i=0; while [ $i -lt 150 ]; do expr $i + 1; i=$((i+1)); done"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["sh", "-c", script], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    run = sampleip("--count", "-F", "49", "--", "sh", "-c", script)
    (inside,) = re.findall(r"samples: (\d+) in the ranges, 0 outside", run.stderr)
    assert sum(functions(run).values()) <= int(inside)
    assert 49 * cpu_s / 4 <= int(inside) <= 49 * cpu_s * 4


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--symbol", "no_such_function"], "unknown function 'no_such_function'"),
        (["--symbol", "vfs_read+0xffffff"], "0xffffff is past its end"),
        (["--module", "no_such_module"], "unknown module 'no_such_module'"),
        (["-p", "4194304"], "no process or thread has ID"),
    ],
)
def test_names_that_stand_for_nothing(sampleip: SampleIp, arguments: list[str], said: str) -> None:
    run = sampleip(*arguments, "1")
    assert run.returncode == 1
    assert said in " ".join(run.stderr.split())
