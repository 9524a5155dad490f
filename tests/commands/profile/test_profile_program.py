"""A user's own program sees the samples of the target, and decides which are counted."""

from __future__ import annotations

import re
import time

import pytest

from purebpf.results import Profile
from purebpf.tools.profile import ProfileOptions, Profiler
from purebpf.tools.profile.render import sample_lines
from purebpf.tools.sampleip.request import SampleIpOptions
from purebpf.tools.sampleip.session import IpCounts, Sampler
from tests.commands.conftest import ROOT, Workloads

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")

OBJECT = ROOT / "tests" / "data" / "sample_programs.bpf.o"


def profile(pid: int, program: str, call_graph: str) -> Profile:
    options = ProfileOptions(
        pids=(pid,), frequency=999, program=f"{OBJECT}:{program}", call_graph=call_graph
    )
    with Profiler(options) as profiler:
        time.sleep(0.5)
        return profiler.stop()


def numbers(text: object) -> tuple[int, int]:
    """The samples that were dropped, and those that the program saw."""
    match = re.search(r"dropped (\d+) of (\d+) sample", str(text))
    assert match
    return int(match[1]), int(match[2])


@pytest.mark.parametrize("call_graph", ["auto", "fp"])
def test_the_profile_has_what_the_program_keeps(workloads: Workloads, call_graph: str) -> None:
    with workloads.running("split") as pid:
        kept = profile(pid, "keep_all", call_graph)
        dropped = profile(pid, "drop_all", call_graph)
    none, asked = numbers(kept.about["program"])
    assert none == 0
    assert asked == kept.total > 0
    all_dropped, asked = numbers(dropped.about["program"])
    assert all_dropped == asked > 0
    assert (dropped.total, dropped.about["counted"]) == (0, 0)
    assert dropped.loss.seen == asked + dropped.about["filtered"] + dropped.about["idle"]
    lines = " ".join(sample_lines(dropped, "PID 1"))
    assert f"program drop_all: dropped {asked} of" in lines
    assert "only purebpf record reads these records" in lines
    assert "did not run" not in lines


def sample(pid: int, program: str, **more: object) -> IpCounts:
    options = SampleIpOptions(
        pids=(pid,), frequency=999, program=f"{OBJECT}:{program}", counting=True
    )
    with Sampler(options._replace(**more)) as sampler:
        time.sleep(0.5)
        return sampler.stop()[1]


def test_addresses_are_those_that_the_program_keeps(workloads: Workloads) -> None:
    with workloads.running("split") as pid:
        kept, dropped = sample(pid, "keep_all"), sample(pid, "drop_all")
        outside = sample(pid, "keep_all", ranges=((1, 2),))
    assert numbers(kept.program) == (0, sum(row[2] for row in kept.rows))
    assert kept.rows
    all_dropped, asked = numbers(dropped.program)
    assert all_dropped == asked == dropped.stats["seen"] > 0
    assert not dropped.rows
    assert numbers(outside.program) == (0, 0)
    assert outside.stats["outside"] > 0
