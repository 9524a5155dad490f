"""The facts of a window about itself: samples, losses, and cost. Pure."""

from __future__ import annotations

from typing import NamedTuple

from purebpf.results import Profile
from purebpf.results.formats.otlp import Attribute

__all__ = ["Cost", "facts_of"]

PREFIX = "purebpf."


class Cost(NamedTuple):
    """The agent's cost: CPU time of the agent and of its BPF programs, in ns, and bytes."""

    cpu_ns: int = 0
    bpf_ns: int = 0
    rss_bytes: int = 0
    spool_bytes: int = 0

    def share(self, duration_ns: int) -> float:
        """Return the share of one CPU."""
        return (self.cpu_ns + self.bpf_ns) / max(1, duration_ns)


def facts_of(profile: Profile, cost: Cost, window: dict[str, str | int]) -> tuple[Attribute, ...]:
    """Attributes of the window.

    Args:
        profile: the window's profile.
        cost: of the last window that is over.
        window: facts that the agent knows.
    """
    loss = profile.loss
    facts: dict[str, str | int] = {
        **window,
        "expected": loss.expected or 0,
        "seen": loss.seen,
        "counted": profile.total,
        "missed": loss.missed,
        "agent_cpu_ns": cost.cpu_ns,
        "bpf_run_ns": cost.bpf_ns,
        "rss_bytes": cost.rss_bytes,
        "spool_bytes": cost.spool_bytes,
        "unknown_ppm": round(1e4 * profile.unnamed().percent),
    }
    idle = profile.about.get("idle")  # of CPUs with nothing to do; waits do not have it
    if isinstance(idle, int):
        facts["idle"] = idle
    facts |= {f"lost.{cause.name}": cause.lost for cause in loss.causes if not cause.is_note}
    return tuple((PREFIX + name, value) for name, value in facts.items())
