"""Page faults beside system calls: equal to the kernel's own counters of the process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from purebpf.tools.summary import Summary, SummaryOptions
from purebpf.tools.summary.table import Table

pytestmark = pytest.mark.needs("bpf", "gcc", "vmlinux_btf", "x86_64")

MEMORY, FILE = 1009, 17
PAGE, APART = 4096, 64


class Faulting(NamedTuple):
    """A process that waits to touch its pages, and the minor and major faults until now."""

    process: Any

    def touch(self) -> None:
        self.process.stdin.write(b"x")
        assert self.process.stdout.readline() == b"done\n"

    def counted(self) -> Counter[str]:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return Counter({"minor": int(fields[7]), "major": int(fields[9])})


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("faults") / "faults"
    source = Path(__file__).with_name("faults.c")
    subprocess.run(["gcc", "-O1", "-w", "-pthread", "-o", target, source], check=True)
    with target.with_name("pages.bin").open("wb") as file:
        file.write(os.urandom(FILE * APART * PAGE))
        file.flush()
        os.fsync(file.fileno())  # dirty pages would stay in memory
    return target


@pytest.fixture
def faulting(program: Path) -> Iterator[Faulting]:
    command = [str(program), str(program.with_name("pages.bin"))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == b"ready\n"
        yield Faulting(process)
        process.kill()


def observed(faulting: Faulting, **asked: Any) -> tuple[Table, Counter[str]]:
    """The table, and what the kernel counted meanwhile."""
    with Summary(SummaryOptions(pids=(faulting.process.pid,), **asked)) as summary:
        before = faulting.counted()
        faulting.touch()
        happened = faulting.counted() - before
        table = summary.stop()
    lost = {cause.name: cause.lost for cause in table.loss.causes if "fault" in cause.name}
    if lost.pop("faults_missed"):  # another program on this machine was updating a BPF map
        pytest.skip("the kernel ran no program for a fault: another task was inside of bpf(2)")
    assert not any(lost.values())
    return table, happened


def sums(table: Table) -> Counter[str]:
    counted: Counter[str] = Counter()
    for group in table.groups:
        assert group.faults is not None
        counted.update({"minor": group.faults.minor or 0, "major": group.faults.major or 0})
    return +counted


@pytest.mark.parametrize("mode", ["total", "thread", "process", "cgroup", "command"])
def test_faults_are_those_that_the_kernel_counts(faulting: Faulting, mode: str) -> None:
    table, happened = observed(faulting, mode=mode, faults="all")
    assert sums(table) == happened
    assert happened["minor"] >= MEMORY
    assert happened.total() >= MEMORY + FILE


@pytest.mark.parametrize(("asked", "kind"), [("min", "minor"), ("maj", "major")])
def test_one_kind_can_be_asked_for(faulting: Faulting, asked: str, kind: str) -> None:
    table, happened = observed(faulting, faults=asked)
    assert sums(table) == Counter({kind: happened[kind]})
    (faults,) = (group.faults for group in table.groups)
    assert faults is not None
    assert {faults.minor, faults.major} == {happened[kind], None}


def test_threads_and_commands_have_their_own(faulting: Faulting) -> None:
    table, _ = observed(faulting, mode="command", faults="all")
    by_name = {group.label.name: group for group in table.groups}
    assert set(by_name) == {"faults", "toucher"}
    (own, thread) = by_name["faults"].faults, by_name["toucher"].faults
    assert own is not None
    assert thread is not None
    assert own.minor >= 1000
    assert 9 <= thread.minor < 100
    assert {row.call.name for row in by_name["faults"].rows} >= {"write", "read"}


def test_places_say_the_function_and_the_mapping(faulting: Faulting) -> None:
    table, _ = observed(faulting, faults="all", fault_places=True)
    (faults,) = (group.faults for group in table.groups)
    assert faults is not None
    counted: Counter[tuple[str, str]] = Counter()
    for place in faults.places:
        counted[place.function.partition("+")[0], place.mapping] += place.times
    assert counted["touch_memory", "[anonymous]"] == MEMORY
    assert counted["touch_file", "pages.bin"] == FILE
    assert counted.total() == faults.minor + faults.major


@pytest.mark.alone  # a BPF program at the tracepoint would hide its passes
@pytest.mark.needs("perf")
def test_perf_trace_counts_the_same(program: Path) -> None:
    """But for the few faults from the start of execve to the new program's first instruction."""
    words = [str(program), str(program.with_name("pages.bin"))]
    perf = ["perf", "trace", "-s", "-F", "all", "--", *words]
    said = subprocess.run(perf, input=b"xx", capture_output=True, check=True).stderr.decode()
    theirs = {
        kind: sum(map(int, re.findall(rf"(\d+) {kind}faults", said))) for kind in ("min", "maj")
    }
    summary = [
        sys.executable,
        "-m",
        "purebpf",
        "summary",
        "--faults",
        "all",
        "--format",
        "json",
        "--",
    ]
    run = subprocess.run([*summary, *words], input=b"xx", capture_output=True, check=True)
    ours = next(json.loads(line) for line in run.stdout.splitlines() if line.startswith(b"{"))
    (group,) = ours["groups"]
    assert group["faults"]["major"] == theirs["maj"]
    assert abs(group["faults"]["minor"] - theirs["min"]) <= 10
