"""The budget of an agent: what costs more is sampled less, and each window says how much less."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from purebpf.services.agent import budget, session
from purebpf.services.agent.config import parse_config
from tests.commands.agent.test_agent import fact, files, profiles, to_directory
from tests.commands.agent.test_agent_failures import busy

pytestmark = [pytest.mark.needs("bpf", "perf_event"), pytest.mark.any_kernel]


def test_a_budget_takes_windows_away_and_what_is_left_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "_FEWER", (2,))
    text = Path(to_directory(tmp_path, more="[cpu]\ncall_graph = 'fp'\npython = false")).read_text()
    said: list[str] = []
    config = parse_config(text.replace("budget = 0.0", "budget = 0.000001"))
    with busy(1), session.Agent(config, said.append, is_once=True) as one:
        sampled = []
        for _ in range(16):
            time.sleep(0.1)
            one.end_window()
            state = one._state()  # noqa: SLF001
            sampled.append((state.frequency, state.every))
        one.stop()
    assert sampled[-1][1] == 2
    assert {*sampled[-8:]} == {(4, 2), (0, 2)}, "some of the windows are sampled"
    assert said[-1].endswith("% of a CPU: 4 Hz in one of 2 windows instead of 19 Hz")
    windows = [profiles(path) for path in files(tmp_path)]
    assert 8 < len(windows) < 16
    assert sum(fact(services[0], "rate_reduced") for services in windows[-3:]) == 3
    for services in windows:
        frequency, share = fact(services[0], "frequency_hz"), fact(services[0], "probability_ppm")
        assert services[0].window.period_ns == round(1e15 / (frequency * share))
        samples = sum(sum(each.series.samples.values()) for each in services)
        lost = fact(services[0], "lost.map_full") + fact(services[0], "lost.map_busy")
        assert samples == fact(services[0], "counted")
        assert samples + fact(services[0], "idle") + lost == fact(services[0], "seen")
    assert {fact(services[0], "probability_ppm") for services in windows[-3:]} == {500_000}
