"""RLIMIT_MEMLOCK, which limits maps and programs before Linux 5.11 (commit 97306be45fbe)."""

from __future__ import annotations

__all__ = ["raise_memlock"]


def raise_memlock() -> bool:
    """Lift RLIMIT_MEMLOCK as far as this process may; False when that changes nothing.

    Before Linux 5.11 a too low limit is EPERM. Harmless elsewhere; being refused is, too.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    unlimited = resource.RLIM_INFINITY
    for limits in ((unlimited, unlimited), (hard, hard)):
        if soft in limits:
            return False
        try:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, limits)
        except (ValueError, OSError):  # no CAP_SYS_RESOURCE: only up to the hard limit
            continue
        return True
    return False
