"""The last lines of a profile, in words."""

from __future__ import annotations

import pytest

from purebpf.results import Profile
from purebpf.tools.profile.render import sample_lines


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({}, "no samples: the target did not run on a CPU during the run."),
        ({"without_gil": 0}, "no samples: the target did not run on a CPU during the run."),
        ({"without_gil": 198}, "no samples: in none of 198 did a thread hold the GIL"),
    ],
)
def test_why_there_are_no_samples(about: dict[str, object], said: str) -> None:
    profile = Profile("CPU", unit="samples", about={"counted": 0, "event": "cpu-clock", **about})
    assert sample_lines(profile, "PID 7")[-1].startswith(said)
