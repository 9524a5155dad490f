"""mem against a program that allocates, frees, maps and touches a known number of times."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from purebpf.observe.instruments import allocators, memory_tracer
from purebpf.report import Profile
from purebpf.tools.mem import MemOptions, Memory, MemoryUse
from tests.support.environment import ROOT, run, said

pytestmark = pytest.mark.needs(
    "bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "x86_64", "atomic_fetch"
)

LEAKS, HALVES, ALIGNED, RESIZED, MAPS, THREADS = 1009, 2003, 307, 11, 101, 13
FREED = {"frees_half": HALVES // 2, "frees_all": 503, "resizes": RESIZED - 1}
UNFREED = {"leaks": LEAKS, "frees_half": HALVES - HALVES // 2, "aligns": ALIGNED, "resizes": 1}
UNFREED_BYTES = {
    "leaks": LEAKS * 101,
    "frees_half": (HALVES - HALVES // 2) * 77,
    "aligns": ALIGNED * 320,
    "resizes": RESIZED * 1000,
}
ALLOCATED = {
    "leaks": LEAKS,
    "frees_half": HALVES,
    "frees_all": 503,
    "resizes": RESIZED,
    "aligns": ALIGNED,
    "hands_over": THREADS,
    "in_thread": THREADS,
}
TOTAL = sum(UNFREED.values())


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("mem") / "allocations"
    source = ROOT / "tests/data/allocations.c"
    subprocess.run(["gcc", "-O1", "-g", "-pthread", "-w", "-o", target, source], check=True)
    return target


@contextmanager
def waiting(program: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The program, which waits for a line."""
    words = [program, "wait"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        assert process.stdin is not None
        process.stdin.close()


def tell(process: subprocess.Popen[bytes], what: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(what)
    process.stdin.flush()


def walk_whole(process: subprocess.Popen[bytes], memory: Memory) -> None:
    """Allocate until the walk has what it lacks: an allocation is not copied any more."""
    allocations, copies = 0, -1
    for _ in range(100):
        tell(process, b"w")
        deadline = time.monotonic() + 20
        while (about := memory.so_far().about)["allocations"] == allocations:
            assert time.monotonic() < deadline, about
            memory.wait(at_most_s=0.02)
        allocations = about["allocations"]
        sent = about["copies"] + about["copies_lost"]
        if sent == copies:
            return
        copies = sent
    pytest.fail("the walk never had its tables")


def do_all(process: subprocess.Popen[bytes]) -> None:
    tell(process, b"g")
    assert process.stdout is not None
    assert process.stdout.readline() == b"done\n"


def measured(program: Path, **options: object) -> MemoryUse:
    """All that the program does, with stacks that are whole from the first."""
    asked = MemOptions(show="allocated")._replace(**options)
    with waiting(program) as process, Memory(asked._replace(pids=(process.pid,))) as memory:
        walk_whole(process, memory)
        do_all(process)
        return memory.stop()


def by_leaf(profile: Profile, kind: str | None = None) -> tuple[Counter[str], Counter[str]]:
    """Weights and events by the function at the leaf."""
    weights: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for row in profile.rows():
        if kind is None or row.labels.state == kind:
            assert row.user
            name = getattr(row.user[0], "name", "[unknown]")
            weights[name] += row.weight
            times[name] += row.marks.times
    return weights, times


def only(counts: Counter[str], names: object) -> dict[str, int]:
    """Of the program's own functions."""
    return {name: count for name, count in counts.items() if name in set(names)}


@pytest.fixture(scope="module")
def use(program: Path) -> MemoryUse:
    return measured(program)


def test_what_was_not_freed_is_exact_by_function(use):
    weights, times = by_leaf(use.unfreed)
    assert only(times, ALLOCATED) == UNFREED
    assert only(weights, ALLOCATED) == UNFREED_BYTES
    assert use.unfreed.unit == "bytes"


def test_what_was_allocated_is_exact_by_function(use):
    _, times = by_leaf(use.allocated)
    assert only(times, ALLOCATED) == ALLOCATED


def test_stacks_lead_to_main(use):
    (stack,) = [row.user for row in use.unfreed.rows() if row.user[0].name == "leaks"]
    assert [frame.name for frame in stack][:2] == ["leaks", "main"]


def test_address_spaces_grow_by_whole_pages(use):
    mapped = [row for row in use.grown.rows() if "maps" in {frame.name for frame in row.user}]
    assert sum(row.weight for row in mapped) == MAPS * 3 * 4096
    assert sum(row.marks.times for row in mapped) == MAPS
    assert {row.labels.state for row in mapped} == {"mmap"}
    assert use.grown.about["reserved_bytes"] >= 1 << 20


def test_the_heap_grows_where_memory_is_allocated(use):
    heap = [row for row in use.grown.rows() if row.labels.state == "brk"]
    assert heap
    assert {row.user[0].name for row in heap} <= {*ALLOCATED, "main"}


def test_page_faults_are_those_of_the_pages_that_were_touched(use):
    _, times = by_leaf(use.faults)
    assert times["maps"] == MAPS * 3
    assert use.faults.unit == "faults"


def test_nothing_is_lost(use):
    assert not use.unfreed.loss.any, use.unfreed.loss


def test_page_faults_are_those_that_the_kernel_counts(program, tmp_path):
    script = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:])\n"
        "usage = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(usage.ru_minflt + usage.ru_majflt)\n"
    )
    saved = tmp_path / "faults.json"
    words = [sys.executable, "-c", script, str(program)]
    done = run("mem", "--no-malloc", "--show", "faults", "-o", str(saved), "--", *words)
    assert done.returncode == 0, done.stderr
    theirs = int(done.stdout.split()[-1])
    tree = json.loads(saved.read_text())
    assert tree["about"]["allocators"] == []
    counted = Counter()
    for row in tree["stacks"]:
        counted[row["comm"]] += row["weight"]
    # the child is of the script until its execve, which it counts, too
    assert 0 <= theirs - counted[program.name] < 200
    assert sum(counted.values()) > theirs


def test_a_command_and_its_children_are_followed(program, tmp_path):
    saved = tmp_path / "unfreed.json"
    words = f"{program}; {program}; exit 5"
    done = run("mem", "--strict", "-o", str(saved), "--", "sh", "-c", words)
    assert done.returncode == 5  # not 3, whether stacks are whole or not: each event was counted
    about = json.loads(saved.read_text())["about"]
    assert about["allocations"] >= 2 * sum(ALLOCATED.values())
    assert about["unfreed"] >= 2 * TOTAL
    # on a busy machine a process of milliseconds may have ended before its tables were made
    said = " ".join(done.stderr.split())
    assert re.search(r"lost: (nothing|callers in \d+ % of the user stacks \([a-z_, ]+\))$", said)
    assert "\nnot freed " in done.stderr  # the sums, beside what was written


def test_the_text_fits_80_columns_and_says_how_to_see_more(program):
    done = run("mem", "--", str(program))
    assert done.returncode == 7
    assert max(map(len, done.stdout.splitlines()[1:])) <= 80
    lines = done.stdout.splitlines()
    assert lines[2].startswith("not freed ")
    assert lines[3].endswith("(--show allocated)")
    assert "leaks [allocations]" in done.stdout


def test_only_the_process_that_was_asked_for_is_traced(program):
    with waiting(program) as process, Memory(MemOptions(pids=(process.pid,))) as memory:
        subprocess.run([program], check=False)
        use = memory.stop()
    assert use.allocated.total == 0
    assert {row.labels.pid for row in use.faults.rows()} <= {process.pid}


def test_allocations_beyond_the_table_are_counted_and_do_not_look_like_leaks(program):
    use = measured(program, allocation_storage_size=100)
    lost = {cause.name: cause.lost for cause in use.unfreed.loss.causes}
    assert lost["allocations_full"] >= TOTAL - 100
    assert use.unfreed.about["unfreed"] <= 100
    assert use.unfreed.loss.any
    assert use.allocated.about["allocations"] >= sum(ALLOCATED.values())


def test_one_probe_for_each_function_counts_the_same(program, monkeypatch):
    """As on kernels without links of many uprobes; of three functions, as each costs time."""
    few = {allocators.Function.MALLOC, allocators.Function.FREE}
    every = allocators.allocators_of

    def some(pid: int, **given: Any) -> list[allocators.Allocator]:
        return [
            allocator._replace(code=allocator.code._replace(entries=first(allocator.code.entries)))
            for allocator in every(pid, **given)
        ]

    def first(entries: allocators.Places) -> allocators.Places:
        return tuple([place for place in entries if place[1] in few][:3])

    monkeypatch.setattr(memory_tracer, "have_uprobe_multi", lambda: False)
    monkeypatch.setattr(allocators, "allocators_of", some)
    _, times = by_leaf(measured(program).unfreed)
    assert times["leaks"] == LEAKS


def test_the_run_ends_with_its_process(program):
    with waiting(program) as process, Memory(MemOptions(pids=(process.pid,))) as memory:
        process.kill()
        assert memory.wait(at_most_s=30)
        assert memory.stop().unfreed.about["ended"] == [process.pid]


def test_a_look_while_it_runs_shows_what_was_added(program):
    with waiting(program) as process, Memory(MemOptions(pids=(process.pid,))) as memory:
        memory.last()
        do_all(process)
        _, times = by_leaf(memory.last())
        assert times["leaks"] == LEAKS
        assert memory.last().total == 0
        _, times = by_leaf(memory.so_far())
        assert times["leaks"] == LEAKS


def test_a_program_without_an_allocator_says_what_to_do(tmp_path):
    library = tmp_path / "libempty.so"
    source = tmp_path / "empty.c"
    source.write_text("int nothing;\n")
    subprocess.run(["gcc", "-shared", "-o", library, source], check=True)
    done = run("mem", "--library", str(library), "0.1")
    assert done.returncode == 1
    assert "has no symbols of malloc and free" in said(done)


def test_what_needs_malloc_says_which_target_it_needs():
    done = run("mem", "--show", "unfreed", "1")
    assert done.returncode == 2
    assert "needs a target" in done.stderr


SHORT = """#include <map>
#include <string>
#include <vector>
int main(int count, char **) {
    std::map<std::string, std::vector<int>> all;
    for (int i = 0; i < 20000; i++) all[std::to_string(i * 7919 % 10007)].push_back(i);
    return all.size() == size_t(count) + 1;
}"""


def test_stacks_of_a_program_that_ends_at_once_are_whole(tmp_path):
    """It has run before any table could be built for it. Each begins in ld.so, without rules."""
    (tmp_path / "short.cpp").write_text(SHORT)
    words = ["g++", "-O2", "-fomit-frame-pointer", "short.cpp", "-o", "short"]
    subprocess.run(words, check=True, cwd=tmp_path)
    done = run("mem", "--no-malloc", "--", str(tmp_path / "short"))
    (whole,) = re.findall(r"user stacks: ([0-9.]+) % whole", said(done))
    assert float(whole) >= 90, done.stderr
