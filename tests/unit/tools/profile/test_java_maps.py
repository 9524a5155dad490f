"""JVMs that do not answer do not hold up a profile: what waiting costs is bounded for each user."""

from __future__ import annotations

import pytest

from purebpf.tools.profile import java_maps
from purebpf.tools.profile.java_maps import JavaMaps

SLOW_S = 25.0


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """PIDs that were asked; each takes as long as is waited. Those below 100 are of user 7."""
    pids: list[int] = []

    def write(pid: int) -> str:
        pids.append(pid)
        return "no answer"

    monkeypatch.setattr(java_maps, "is_java", lambda _: True)
    monkeypatch.setattr(java_maps, "write_java_perf_map", write)
    monkeypatch.setattr(java_maps.proc, "owner", lambda pid: 7 if pid < 100 else 8)
    return pids


def test_one_user_cannot_make_a_run_wait_for_ever(asked: list[int]) -> None:
    maps = JavaMaps(clock=lambda: SLOW_S * len(asked))
    maps.write(range(1, 60))
    assert len(asked) <= 2
    maps.write([100])
    assert asked[-1] == 100, "another user's are asked"
    maps.write(range(1, 60), again=True)
    assert len(asked) <= 3
    (text,) = {hint.partition(": ")[2] for hint in maps.hints()[-5:-1]}
    assert "took" in text
    assert len(maps.hints()) <= 10


def test_quick_answers_are_asked_for_again(asked: list[int]) -> None:
    maps = JavaMaps(clock=lambda: 0.01 * len(asked))
    maps.write([1, 2, 3])
    maps.write([1, 2, 3])
    maps.write([1, 2, 3], again=True)
    assert asked == [1, 2, 3, 1, 2, 3]
