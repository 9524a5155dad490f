"""CPU time for the packing of tasks, and for the tasks."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import Facts, Process
from purebpf.findings.find import find
from tests.support.builders.facts import PYTHON, facts, library, native, own, running, waiting

PICKLE = "/usr/lib/python3.11/lib-dynload/_pickle.cpython-311-x86_64-linux-gnu.so"
SEND = library("ForkingPickler.dumps", "/usr/lib/python3.11/multiprocessing/reduction.py")
POOL = library("Executor.map", "/usr/lib/python3.11/concurrent/futures/process.py")


def pool(packing_s: float, task_s: float, worker_parent: int = 7) -> Facts:
    """A program that feeds a process, and waits for what it makes of the tasks."""
    stays = (
        running(7, 8, native("save_dict", PICKLE), SEND, seconds=packing_s / 2),
        running(9, 9, native("load", PICKLE), library("Queue.get"), seconds=packing_s / 2),
        running(9, 9, own("score"), library("_process_worker"), seconds=task_s),
        waiting(7, 7, "futex", library("Future.result"), POOL, own("score_all"), seconds=9.0),
    )
    processes = (Process(7, 1, "jobs", PYTHON), Process(9, worker_parent, "jobs", PYTHON))
    return facts(*stays, processes=processes)


def test_most_time_goes_to_the_packing_of_tasks() -> None:
    finding = find(pool(8.0, 2.0))[0]
    assert finding.kind == "serialization"
    assert finding.pids == (7, 9)
    assert not finding.is_busy
    assert "packs and unpacks (pickle) what 2 processes of it send each other: 80 %" in finding.text
    assert finding.evidence[0] == "for score_all (app.py:10)"
    assert finding.command == ("profile", "--tree", "-p", "7")


@pytest.mark.parametrize(
    "well",
    [pool(2.0, 8.0), pool(0.6, 0.0), pool(8.0, 2.0, worker_parent=1)],
    ids=["the tasks are larger", "hardly any time", "it keeps its own files"],
)
def test_pickling_that_is_well(well: Facts) -> None:
    assert not [one for one in find(well) if one.kind == "serialization"]
