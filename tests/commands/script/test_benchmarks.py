"""Blocks of `bench` probes: measured with --bench, and only then."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf"),
    pytest.mark.any_kernel,  # guests before 5.12 lack atomic exchange
]

COMMAND = (sys.executable, "-P", "-m", "purebpf", "script", "-q")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, check=False, timeout=60
    )


def test_each_block_has_a_line_and_its_runs_are_counted() -> None:
    text = 'bench:one { @one++; printf("x"); } bench:two { @two++; } end { print((@one, @two)); }'
    done = run("--bench", "-e", text)
    heading, rule, one, two, counts, *rest = done.stdout.splitlines()
    assert heading == f"{'Benchmark':41}{'Time(ns)':15}Iterations"
    assert rule == "-" * 66
    assert [line.split()[0] for line in (one, two)] == ["one", "two"]
    last_runs = [int(line.split()[2]) for line in (one, two)]
    measured = [int(word) for word in counts.strip("()").split(", ")]
    assert all(count >= runs for count, runs in zip(measured, last_runs, strict=True))
    assert (done.returncode, rest) == (0, [])


def test_results_are_lines_of_json() -> None:
    done = run("-f", "json", "--bench", "-e", "bench:a { @ = count(); }")
    result = json.loads(done.stdout)
    assert result["type"] == "benchmark_result"
    assert set(result["data"]["a"]) == {"average", "iters"}


def test_a_block_that_ends_with_an_error_has_no_time() -> None:
    done = run("--bench", "-e", "bench:bad { exit(1); } bench:good { @++; }")
    assert done.returncode == 1
    assert "Benchmark 'bad' failed" in done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[2:]] == ["good"]


def test_without_the_option_the_blocks_are_not_run() -> None:
    done = run("-e", "bench:a { exit(); }")
    assert (done.returncode, done.stdout) == (1, "")
    assert "use --bench to run benchmark probes" in done.stderr
    assert run("-e", "bench:a { exit(5); } begin { exit(3); }").returncode == 3
