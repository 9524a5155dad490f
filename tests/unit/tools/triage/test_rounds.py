"""The rounds of a measurement, on a machine so busy that a look at the threads takes seconds."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from purebpf.tools.triage import session
from purebpf.tools.triage.session import Triage

LOOK_S, WAIT_S = 4.7, 1.1


def test_connections_are_asked_for_before_and_after_a_long_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two readings of a connection tell more than one."""
    now, asked = [100.0], list[float]()

    def spend(seconds: float) -> bool:
        now[0] += seconds
        return False

    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: now[0]))
    triage = Triage(20.0)
    triage._profiler = SimpleNamespace(  # type: ignore[assignment]
        looks_at_s=0.0,
        wait=lambda *_, at_most_s: spend(WAIT_S),
        look_if_due=lambda: spend(LOOK_S),
    )
    triage._unanswered = SimpleNamespace(tick=lambda: asked.append(now[0]))  # type: ignore[assignment]
    triage._unix = SimpleNamespace(tick=lambda: None)  # type: ignore[assignment]
    triage._started_s = triage._asked_s = now[0]
    triage._ticked_s = now[0] + 100.0
    for _ in range(2):
        assert not triage.wait()
    assert asked == pytest.approx([101.1, 105.8, 106.9, 111.6])
