"""Children of a fork that wait for a lock which a thread of their parent had."""

from __future__ import annotations

from purebpf.findings.facts import Blocked, Facts, Process
from purebpf.findings.find import find
from tests.support.builders.facts import LOCKING, PYTHON, facts, own, waiting


def forked(*, threads: int = 2) -> Facts:
    """Three children that wait all the time in one function."""
    pids = (11, 12, 13)
    stays = [waiting(pid, pid, "futex", *LOCKING, own("audit", 18), seconds=10.0) for pid in pids]
    parent = Process(7, 1, "python3", PYTHON, command="python3 audit.py", threads=threads)
    children = tuple(Process(pid, 7, "python3", PYTHON, command="python3 audit.py") for pid in pids)
    return facts(*stays)._replace(
        processes=(parent, *children),
        blocked=tuple(Blocked(pid, pid, "futex", (0x1000,)) for pid in pids),
    )


def test_children_of_a_program_with_threads_are_one_finding() -> None:
    (finding,) = find(forked())
    assert (finding.kind, finding.pids, finding.cost) == ("deadlock", (11, 12, 13), 3.0)
    assert finding.text.startswith("3 processes, in each a lock that nobody gives back: 1 thread")
    assert finding.evidence[0] == (
        "forked by python3 (7), which has 2 threads: one of them may have had the lock"
    )


def test_children_of_a_program_without_threads_have_another_reason() -> None:
    (finding,) = find(forked(threads=1))
    assert "forked" not in "; ".join(finding.evidence)
