"""The referee's scores follow from its rules, for outputs that somebody can check by hand."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from purebpf.testing.referee.profilers import PROFILERS, Profiler, installed, observe
from purebpf.testing.referee.programs import build, read_truth, run_alone
from purebpf.testing.referee.scores import (
    Observation,
    Score,
    Truth,
    own_functions,
    score,
    share_error,
)

TRUTH = Truth({("ref_a", "ref_leaf"): 0.6, ("ref_b", "ref_leaf"): 0.2, ("ref_c",): 0.2}, 1.0)

HALVES = {"ref_a": 0.5, "ref_b": 0.5}


def observed(stacks: dict[str, int], lost: int = 0) -> Observation:
    return Observation(
        {tuple(stack.split(";")): count for stack, count in stacks.items()}, lost, 0.0
    )


def test_a_perfect_profile_has_no_fault() -> None:
    seen = observed({"main;ref_a;ref_leaf": 60, "main;ref_b;ref_leaf;spin": 20, "main;ref_c": 20})
    result = score(TRUTH, seen, 100)
    assert (result.impossible, result.cut, result.missed, result.unnamed) == (0, 0, 0, 0)
    error = share_error([result])
    assert error.error == pytest.approx(0)
    assert error.chance > 0.02
    assert error.beyond == 0


def test_a_leaf_without_its_caller_is_impossible() -> None:
    result = score(TRUTH, observed({"main;ref_a;ref_leaf": 75, "main;ref_leaf": 25}), 100)
    assert result.impossible == 0.25
    assert result.cut == 0


def test_a_leaf_below_a_mark_is_cut() -> None:
    result = score(TRUTH, observed({"main;ref_a;ref_leaf": 75, "[unknown];ref_leaf": 25}), 100)
    assert (result.impossible, result.cut) == (0, 0.25)


def test_callers_in_a_wrong_order_are_impossible() -> None:
    assert score(TRUTH, observed({"main;ref_leaf;ref_a": 1}), 1).impossible == 1


def test_a_sample_on_the_way_to_a_leaf_is_possible() -> None:
    assert score(TRUTH, observed({"main;ref_a": 1}), 1).impossible == 0


def test_a_sample_on_the_way_counts_for_the_leaf() -> None:
    seen = observed({"main;ref_a": 30, "main;ref_a;ref_leaf": 50, "main;ref_c": 20})
    assert share_error([score(TRUTH, seen, 100)]).error == pytest.approx(0)


def test_shares_are_compared_by_the_leaf() -> None:
    """Half of 80 percent are shown in the wrong function."""
    seen = observed({"main;ref_a;ref_leaf": 40, "main;ref_c": 60})
    error = share_error([score(TRUTH, seen, 100)])
    assert error.error == pytest.approx(0.4)
    assert 0.3 < error.beyond < 0.4


def test_without_an_own_function_the_shares_are_all_wrong() -> None:
    assert share_error([score(TRUTH, observed({"main;0x7f00": 50}), 100)]).error == 1


def test_a_run_without_an_own_function_counts_among_the_others() -> None:
    named = Score(100, 0.0, 0.0, 0.0, 0.0, {"ref_a": 50, "ref_b": 50}, HALVES)
    nameless = named._replace(leaves={})
    assert share_error([named, nameless]).error == pytest.approx(0.5)


def test_errors_of_two_runs_that_cancel_are_chance() -> None:
    runs = [
        Score(100, 0.0, 0.0, 0.0, 0.0, {"ref_a": there, "ref_b": 100 - there}, HALVES)
        for there in (45, 55)
    ]
    assert share_error(runs).error == pytest.approx(0)
    assert share_error(runs[:1]).error == pytest.approx(0.05)


def test_few_perfect_samplers_are_beyond_chance() -> None:
    """Five of a hundred on average, as `beyond` promises."""
    dice = random.Random(4)
    beyond = 0
    for _ in range(100):
        there = sum(dice.random() < 0.5 for _ in range(400))
        run = Score(400, 0.0, 0.0, 0.0, 0.0, {"ref_a": there, "ref_b": 400 - there}, HALVES)
        beyond += share_error([run]).beyond > 0
    assert 1 <= beyond <= 14


def test_only_silent_losses_are_missed() -> None:
    stacks = {"main;ref_c": 70}
    assert score(TRUTH, observed(stacks, lost=30), 100).missed == 0
    assert score(TRUTH, observed(stacks, lost=10), 100).missed == pytest.approx(0.2)


def test_addresses_and_marks_are_unnamed() -> None:
    seen = observed({"[unknown];libx!0x40;7f00deadbeef;ref_c": 1})
    assert score(TRUTH, seen, 1).unnamed == 0.75


def test_a_frame_names_one_function() -> None:
    assert own_functions(("Shape::ref_area() const", "ref_x (file.py:3)", "main")) == (
        "ref_area",
        "ref_x",
    )


def test_no_samples_are_no_score() -> None:
    with pytest.raises(ValueError, match="no samples"):
        score(TRUTH, observed({}), 100)


@pytest.mark.parametrize("name", ["callers", "deep", "objects", "threads"])
def test_a_program_measures_itself(name: str, tmp_path: Path) -> None:
    programs = {program.name: program for program in build(tmp_path)}
    if name not in programs:
        pytest.skip("its compiler is not installed")
    run_alone(programs[name], tmp_path / "truth.json", 1)
    truth = read_truth(tmp_path / "truth.json")
    assert 0 < sum(truth.paths.values()) <= truth.cpu_s * 1.01
    assert all(function.startswith("ref_") for path in truth.paths for function in path)


def test_a_profiler_that_fails_says_why(tmp_path: Path) -> None:
    failing = Profiler(
        "x", "", False, lambda *_: [["sh", "-c", "echo no >&2; exit 3"]], lambda _: ({}, 0)
    )
    with pytest.raises(RuntimeError, match="exit status 3: no"):
        observe(failing, ("true",), 1, tmp_path, lambda: 0.0)


PERF = """\
cpus 7
\t    55d0 ref_leaf+0x12 (/x)
\t    55e0 ref_a (/x)
\t    7f00 [unknown] (/x)

cpus 7
\t    55d0 ref_leaf+0x12 (/x)
"""
BPFTRACE = """\
Attaching 1 probe...

@[
\t55d0 ref_leaf+18 (/x)
\t55e0 ref_a+5 (/x)
]: 12
@[
\t7f00 0x7f00 ([unknown])
]: 3
"""


def by_name(name: str) -> Profiler:
    return next(profiler for profiler in PROFILERS if profiler.name == name)


def test_the_output_of_perf_is_read(tmp_path: Path) -> None:
    (tmp_path / "out-1").write_text(PERF.replace(" (/x)", ""))
    (tmp_path / "err-0").write_text("")
    stacks, lost = by_name("perf, DWARF").read(tmp_path)
    assert dict(stacks) == {("[unknown]", "ref_a", "ref_leaf"): 1, ("ref_leaf",): 1}
    assert lost == 0


def test_the_output_of_bpftrace_is_read(tmp_path: Path) -> None:
    (tmp_path / "stacks").write_text("ready\n" + BPFTRACE)
    stacks, _ = by_name("bpftrace").read(tmp_path)
    assert dict(stacks) == {("ref_a+5", "ref_leaf+18"): 12, ("0x7f00",): 3}


def test_the_output_of_purebpf_is_read(tmp_path: Path) -> None:
    (tmp_path / "out-0").write_text("callers;main;ref_a;ref_leaf 12\n")
    (tmp_path / "err-0").write_text("x\nlost: 1,027 of 9,000 samples never arrived\n")
    stacks, lost = by_name("purebpf").read(tmp_path)
    assert dict(stacks) == {("main", "ref_a", "ref_leaf"): 12}
    assert lost == 1027


def test_the_output_of_austin_is_read(tmp_path: Path) -> None:
    """Each line is a sample, whose number is microseconds."""
    line = "P7;T9;/x/threads.py:<module>:3;/x/threads.py:ref_a:12 5024"
    (tmp_path / "raw").write_text(f"# mode: cpu\n\n{line}\n{line.replace('5024', '9000')}\n")
    stacks, lost = by_name("austin").read(tmp_path)
    assert dict(stacks) == {("<module>", "ref_a"): 2}
    assert lost == 0


def test_the_output_of_the_sampling_module_is_read(tmp_path: Path) -> None:
    (tmp_path / "raw").write_text("tid:7;<native>;t.py:Thread.run:11;t.py:ref_a:12 5\n")
    stacks, _ = by_name("profiling.sampling").read(tmp_path)
    assert dict(stacks) == {("<native>", "Thread.run", "ref_a"): 5}


def test_a_profiler_that_is_a_module_is_looked_for_in_the_programs_python() -> None:
    module = Profiler("x", "PYTHON -m json.tool", True, lambda *_: [], lambda _: ({}, 0))
    assert installed(module, sys.executable)
    assert not installed(module._replace(needs="PYTHON -m json.hammer"), sys.executable)
