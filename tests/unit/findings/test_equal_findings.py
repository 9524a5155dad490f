"""Findings about several processes of one program that say the same."""

from __future__ import annotations

from purebpf.findings.facts import CallCount, Facts, Process
from purebpf.findings.find import find
from tests.support.builders.facts import facts, native, waiting

EXE = "/srv/spoold"


def sleepers(*exes: str) -> Facts:
    """A process for each executable, which sleeps thousands of times a second."""
    pids = range(7, 7 + len(exes))
    stays = [
        waiting(pid, pid, "clock_nanosleep", native("usleep"), native("take_lock", exe))
        for pid, exe in zip(pids, exes, strict=True)
    ]
    return facts(*stays)._replace(
        calls=tuple(CallCount(pid, "clock_nanosleep", 0, 20_000 + pid) for pid in pids),
        processes=tuple(
            Process(pid, 1, exe.rpartition("/")[2], exe)
            for pid, exe in zip(pids, exes, strict=True)
        ),
    )


def test_processes_of_one_program_share_a_finding() -> None:
    (finding,) = find(sleepers(*[EXE] * 4))
    assert "timers a second (clock_nanosleep)" in finding.text
    assert "so do 3 other processes of it" in finding.evidence
    assert sorted(finding.pids) == [7, 8, 9, 10]
    (alone,) = find(sleepers(EXE))
    assert finding.cost > 3.9 * alone.cost


def test_two_programs_have_a_finding_each() -> None:
    assert len(find(sleepers(EXE, "/srv/mailer"))) == 2
