"""stat -b: what happens while BPF programs run, with their own runs as the truth."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import purebpf
from purebpf.tools.stat import Counter, Result, StatOptions
from purebpf.tools.stat.programs import RUNS
from tests.support.environment import run

pytestmark = pytest.mark.needs("perf_event", "trampolines")

SPEC = purebpf.read_object(Path(__file__).parents[2] / "data" / "load_replace.bpf.o")
FRAME = bytes(64)


@pytest.fixture
def programs() -> Iterator[tuple[purebpf.Program, purebpf.Program]]:
    with purebpf.load(SPEC.only("ask", "ask_as_well")) as loaded:
        yield loaded.programs["ask"], loaded.programs["ask_as_well"]


def values(result: Result) -> dict[tuple[str, str], float | None]:
    return {(count.key, count.event.name): count.value for count in result.counts}


def test_runs_are_counted_exactly_for_each_program(
    programs: tuple[purebpf.Program, purebpf.Program],
) -> None:
    first, second = programs
    options = StatOptions(bpf_programs=(first.info.id, second.info.id))
    first.test_run(FRAME, repeat=11)
    with Counter(options) as counter:
        first.test_run(FRAME, repeat=1009)
        second.test_run(FRAME, repeat=101)
        result = counter.stop()
    first.test_run(FRAME, repeat=13)
    counted = values(result)
    names = (f"{first.name}-{first.info.id}", f"{second.name}-{second.info.id}")
    assert [counted[name, RUNS.name] for name in names] == [1009, 101]
    assert not result.loss.any


def test_the_clock_runs_while_the_program_does(
    programs: tuple[purebpf.Program, purebpf.Program],
) -> None:
    """Its nanoseconds are less than those of the whole run, and those of none without one."""
    first, second = programs
    asked = StatOptions((("cpu-clock",),), bpf_programs=(first.info.id, second.info.id))
    with Counter(asked) as counter:
        first.test_run(FRAME, repeat=1009)
        result = counter.stop()
    counted = values(result)
    spent_ns = counted[f"ask-{first.info.id}", "cpu-clock"]
    assert spent_ns is not None
    assert 0 < spent_ns < 1e9 * result.elapsed_s
    assert counted[f"ask_as_well-{second.info.id}", "cpu-clock"] == 0


def test_an_interval_has_its_own_runs(
    programs: tuple[purebpf.Program, purebpf.Program],
) -> None:
    first = programs[0]
    with Counter(StatOptions(bpf_programs=(first.info.id,))) as counter:
        first.test_run(FRAME, repeat=17)
        counted = values(counter.interval())
        first.test_run(FRAME, repeat=19)
        later = values(counter.stop())
    key = (f"ask-{first.info.id}", RUNS.name)
    assert (counted[key], later[key]) == (17, 19)


def test_the_command_shows_a_program(
    programs: tuple[purebpf.Program, purebpf.Program],
) -> None:
    number = str(programs[0].info.id)
    words = ("-b", number, "-e", "cpu-clock,page-faults")
    text = run("stat", *words, "--", "true")
    assert re.search(rf"ask-{number}\n +COUNT +EVENT +RATE\n +0  runs", text.stdout), text.stdout
    document = json.loads(run("stat", *words, "--format", "json", "--", "true").stdout)
    assert [count["event"] for count in document["counts"]] == ["runs", "cpu-clock", "page-faults"]


def test_a_program_that_is_not_there_is_said() -> None:
    result = run("stat", "-b", "4294967295", "1")
    assert result.returncode == 1
    assert "no BPF program has ID 4294967295" in result.stderr
