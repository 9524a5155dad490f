"""Programs that know their own callers: no stack that is called whole lacks one of them.

bench/runtimes.py has the programs, and measures them by `profile`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.runtimes import WORKLOADS, Row, Workload, measure

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "x86_64"),
]

BY_DAY = ("gcc -O2", "memfd", "python3 depth 10")
MAY_BE_CUT = {
    "cgo": "the first samples are copies, which hold one stack",
    "python3 depth 500": "deeper than the default keeps",
    "python3 depth 1000 --call-graph deep": "1,006 frames, and `deep` keeps 1,000 of Python",
    "SBCL": "the first samples are copies, which its stacks are deeper than",
}
"""Programs whose stacks need not be whole, and why."""
LEAST_WHOLE = 0.9
"""The first samples of a program are copies, of which a busy machine loses some."""


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(each, id=each.name, marks=() if each.name in BY_DAY else pytest.mark.nightly)
        for each in WORKLOADS
    ],
)
def test_whole_stacks_have_all_callers(workload: Workload, tmp_path: Path) -> None:
    row = measure(workload, tmp_path, 2, with_perf=False)
    if isinstance(row, str):
        pytest.skip(row)
    assert isinstance(row, Row)
    assert row.samples, row.example
    assert not row.wrong, row
    if workload.name not in MAY_BE_CUT:
        assert row.whole >= LEAST_WHOLE * row.samples, row
