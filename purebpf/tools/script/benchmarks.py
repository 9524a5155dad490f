"""The results of `bench` blocks as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from purebpf.observe.script.benchmarks import Benchmark

__all__ = ["benchmark_json", "benchmark_table"]

_NAME, _TIME, _RUNS = "Benchmark", "Time(ns)", "Iterations"
_LEAST_NAME, _TIME_WIDTH = 40, 15


def benchmark_table(benchmarks: Sequence[Benchmark]) -> str:
    """Return a line for each block that did not fail, below a heading."""
    width = max(_LEAST_NAME, *(len(item.name) for item in benchmarks)) + 1
    lines = [
        f"{_NAME:{width}}{_TIME:{_TIME_WIDTH}}{_RUNS}\n",
        "-" * (width + _TIME_WIDTH + len(_RUNS)) + "\n",
    ]
    lines += [
        f"{item.name:{width}}{item.mean_ns:<{_TIME_WIDTH}}{item.runs}\n"
        for item in benchmarks
        if item.mean_ns is not None
    ]
    return "".join(lines)


def benchmark_json(benchmark: Benchmark) -> str:
    """Return the line of JSON for a block."""
    result = {"average": benchmark.mean_ns, "iters": benchmark.runs}
    return f"{json.dumps({'type': 'benchmark_result', 'data': {benchmark.name: result}})}\n"
