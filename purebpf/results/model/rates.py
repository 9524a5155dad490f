"""The rate of sampled profiles. Pure."""

from __future__ import annotations

from purebpf.results.model.profile import Profile

__all__ = ["cpus_of_sample"]


def cpus_of_sample(profile: Profile) -> float:
    """Return the number of busy CPUs for each sample; 0.0 if samples do not come at a rate."""
    about = profile.about
    frequency, elapsed_s = about.get("frequency_hz"), about.get("elapsed_s")
    if isinstance(frequency, int) and isinstance(elapsed_s, int | float) and elapsed_s > 0:
        return 1 / frequency / elapsed_s
    return 0.0
