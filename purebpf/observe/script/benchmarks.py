"""`measure_block`: the mean time of a `bench` block."""

from __future__ import annotations

from collections.abc import Callable

from purebpf.loader.programs.program import Program
from purebpf.tuples import NamedTuple

__all__ = ["Benchmark", "measure_block"]

_PACKET = bytes(14)
"""The shortest packet that the kernel runs a program on: an Ethernet header."""
_FACTORS = ((1_000, 10_000), (10_000, 100), (100_000, 10), (1_000_000, 2))
"""Factors by which the runs grow as long as they take less than so many ns together."""


class Benchmark(NamedTuple):
    """The mean time of a block in ns, and the number of runs; None: the block has failed."""

    name: str
    mean_ns: int | None
    runs: int


def measure_block(name: str, program: Program, drain: Callable[[], int]) -> Benchmark:
    """Run a block until its runs take a millisecond together.

    Args:
        name: of the block.
        program: the program of the block.
        drain: takes the events of the block, and returns the status of exit(), or 0.

    Raises:
        KernelError: the kernel refuses to run the program.
    """
    runs = 1
    while True:
        mean_ns = program.test_run(_PACKET, repeat=runs).duration_ns
        if drain():
            return Benchmark(name, None, runs)
        total_ns = mean_ns * runs
        factor = next((factor for limit, factor in _FACTORS if total_ns < limit), 0)
        if not factor:
            return Benchmark(name, mean_ns, runs)
        runs *= factor
