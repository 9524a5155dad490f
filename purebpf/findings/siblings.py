"""Workers that could serve the requests of a busy one, and have nothing to do. Pure."""

from __future__ import annotations

from purebpf.findings.evidence import Evidence

__all__ = ["describe_idle_siblings"]

_BUSY, _IDLE = 0.3, 0.02
"""CPUs of a worker that has much to do, and of one that has nothing."""


def describe_idle_siblings(evidence: Evidence, pid: int) -> str:
    """A clause about idle processes of the same program that listen on the port of a busy one.

    Clients stay with the worker that accepted their connections. "" if others work, too: the
    first process of a server, which only waits for its workers, does not count.
    """
    if evidence.cpu_of.get(pid, 0.0) < _BUSY:
        return ""
    for port, listening in evidence.connections.listeners.items():
        others = [
            other
            for other in listening - {pid, evidence.process(pid).ppid}
            if evidence.family(other) == evidence.family(pid)
        ]
        used = [evidence.cpu_of.get(other, 0.0) for other in others]
        is_new = any(evidence.process(other).is_new for other in others)
        if pid in listening and others and max(used) < _IDLE and not is_new:
            many = f"{len(others)} other workers" if len(others) > 1 else "the other worker"
            verb = "are" if len(others) > 1 else "is"
            return f"{many} on port {port} {verb} idle: the work is not shared"
    return ""
