"""JVMs that do not answer do not hold up a profile: a run waits six seconds for all of them."""

from __future__ import annotations

import pytest

from purebpf.tools.profile import java_maps
from purebpf.tools.profile.java_maps import JavaMaps


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """PIDs that were asked, and the seconds that each was given."""
    calls: list[tuple[int, float]] = []

    def write(pid: int, patience_s: float) -> str:
        calls.append((pid, patience_s))
        return "no answer"

    monkeypatch.setattr(java_maps, "is_java", lambda _: True)
    monkeypatch.setattr(java_maps, "write_java_perf_map", write)
    return calls


def test_all_jvms_that_do_not_answer_have_six_seconds_together(
    asked: list[tuple[int, float]],
) -> None:
    maps = JavaMaps(clock=lambda: sum(patience_s for _, patience_s in asked))
    maps.write(range(1, 60))
    maps.write([100])
    maps.write(range(1, 60), again=True)
    assert asked == [(1, 3.0), (2, 3.0)]
    assert "together" in maps.hints()[-2]
    assert len(maps.hints()) <= 10


def test_a_jvm_that_did_not_answer_is_not_asked_again(asked: list[tuple[int, float]]) -> None:
    maps = JavaMaps(clock=lambda: sum(patience_s for _, patience_s in asked))
    maps.write([1])
    maps.write([1], again=True)
    assert asked == [(1, 3.0)]
    assert maps.hints() == ["Java (PID 1) wrote no perf map: no answer"]


def test_quick_answers_are_asked_for_again(asked: list[tuple[int, float]]) -> None:
    maps = JavaMaps(clock=lambda: 0.01 * len(asked))
    maps.write([1, 2, 3])
    maps.write([1, 2, 3])
    maps.write([1, 2, 3], again=True)
    assert [pid for pid, _ in asked] == [1, 2, 3, 1, 2, 3]
