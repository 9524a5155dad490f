"""A recommended command looks at a process that lives, or at the whole machine."""

from __future__ import annotations

import pytest

from purebpf.findings.aims import aim
from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import Facts, Process, Start
from purebpf.findings.find import find
from purebpf.findings.finding import Finding
from tests.support.builders.facts import facts, own, waiting

SHELL = Process(5, 1, "sh")
ENDED = Process(7, 5, "cc1", is_new=True, is_gone=True)
LIVING = Process(8, 5, "cc1")


def aimed(command: tuple[str, ...], *processes: Process, starts: tuple[Start, ...] = ()) -> str:
    evidence = Evidence(Facts(10.0, 2, processes=processes, starts=starts))
    finding = Finding("cpu", "cc1", (7, 8), 1.0, "uses 1.00 CPUs", command=command)
    return " ".join(aim(evidence, finding).command)


def test_a_process_that_lives_stays_the_aim() -> None:
    assert aimed(("offcpu", "-p", "7"), ENDED._replace(is_gone=False)) == "offcpu -p 7"
    assert aimed(("top",), ENDED) == "top"


def test_another_process_of_the_finding_is_the_next_choice() -> None:
    assert aimed(("offcpu", "-p", "7"), SHELL, ENDED, LIVING) == "offcpu -p 8"


def test_children_of_the_closest_living_ancestor_are_looked_at() -> None:
    assert aimed(("profile", "--tree", "-p", "7"), SHELL, ENDED) == "profile --tree -p 5"
    dead_parent = SHELL._replace(pid=6, ppid=5, is_gone=True)
    orphan = ENDED._replace(ppid=6)
    assert aimed(("exec", "-p", "7", "--tree"), SHELL, dead_parent, orphan) == "exec -p 5 --tree"
    assert aimed(("exec", "-p", "7", "--tree"), ENDED) == "exec"


@pytest.mark.parametrize(
    ("command", "whole"),
    [
        (("tcp", "--dns", "-p", "7"), "tcp --dns"),
        (("mem", "--show", "faults", "-p", "7"), "mem --show faults"),
        (("dump", "7"), "offcpu"),
        (("open", "-p", "7"), "open --summary"),
        (("lock", "--userspace", "-p", "7"), "offcpu"),
        (("trace", "-p", "7"), "summary -x"),
    ],
)
def test_the_whole_machine_is_the_last_choice(command: tuple[str, ...], whole: str) -> None:
    assert aimed(command, ENDED) == whole
    assert aimed(command, SHELL._replace(is_new=True), ENDED) == whole


@pytest.mark.parametrize(
    ("command", "tree"),
    [
        (("offcpu", "-p", "7"), "offcpu --tree -p 5"),
        (("dump", "7"), "dump --tree -p 5"),
        (("dump", "--async", "7"), "dump --async --tree -p 5"),
        (("lock", "--userspace", "-p", "7"), "lock --tree --userspace -p 5"),
        (("profile", "--tree", "-p", "7"), "profile --tree -p 5"),
    ],
)
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_young_process_is_looked_at_through_its_parent(
    command: tuple[str, ...], tree: str, *, is_gone: bool
) -> None:
    """It may end before somebody types the command; its parent was there before it."""
    assert aimed(command, SHELL, ENDED._replace(is_gone=is_gone)) == tree


def test_a_young_process_without_a_parent_that_stays_is_the_aim_itself() -> None:
    assert aimed(("offcpu", "-p", "7"), ENDED._replace(is_gone=False)) == "offcpu -p 7"
    service = ENDED._replace(is_gone=False, ppid=1)
    assert aimed(("offcpu", "-p", "7"), Process(1, 0, "init"), service) == "offcpu -p 7"


def test_a_program_that_is_started_again_and_again_is_no_aim() -> None:
    young, parent = ENDED._replace(is_gone=False), SHELL._replace(is_new=True)
    starts = (Start(5, "sh", "cc1", is_fork=False, times=9),)
    assert aimed(("offcpu", "-p", "7"), parent, young) == "offcpu -p 7"
    assert aimed(("offcpu", "-p", "7"), parent, young, starts=starts) == "offcpu"


def test_a_process_that_no_reading_met_has_the_name_of_its_thread() -> None:
    writing = waiting(7, 7, "write", own("tell"), argument=1)
    measured = facts(writing)._replace(processes=(SHELL,))
    (finding,) = find(measured)
    assert (finding.name, finding.command) == ("worker", ("offcpu",))
    (finding,) = find(facts(writing))
    assert (finding.name, finding.command) == ("app7", ("offcpu", "-p", "7"))
