"""What a window says of itself."""

from __future__ import annotations

from purebpf.results import Labels, Loss, Profile, count_cause
from purebpf.services.agent.facts import Cost, facts_of


def test_each_sample_is_counted_idle_or_lost() -> None:
    profile = Profile(about={"idle": 7})
    profile.add((), (), 11, Labels("a", 1))
    full = count_cause("map_full", 2, "samples")
    profile.loss = Loss(20, 20, 0, (full,))
    facts = dict(facts_of(profile, Cost(), {}))
    assert facts["purebpf.seen"] == sum(
        int(facts[f"purebpf.{name}"]) for name in ("counted", "idle", "lost.map_full")
    )


def test_waits_have_no_idle_samples() -> None:
    assert "purebpf.idle" not in dict(facts_of(Profile(), Cost(), {"start_id": "a"}))
