"""Processes that wait for the lock of a file."""

from __future__ import annotations

from purebpf.findings.facts import Blocked, Facts, FileLock, PathCount, Process
from purebpf.findings.find import find
from tests.support.builders.facts import PYTHON, facts, native, own, waiting

PATH = "/run/totals.lock"
KERNEL = ("locks_lock_inode_wait", "__do_sys_flock", "do_syscall_64")


def piling_up(jobs: int) -> Facts:
    """Shells that each wait for flock(1), which waits all the time; one shell has the lock."""
    stays = [
        waiting(100 + n, 100 + n, "futex", native("flock"), argument=9, seconds=10.0)._replace(
            call="flock", kernel=KERNEL
        )
        for n in range(jobs)
    ]
    shells = tuple(
        Process(50 + n, 1, "sh", "/bin/sh", command="sh nightly.sh /data") for n in range(jobs)
    )
    flocks = tuple(Process(100 + n, 50 + n, "flock", "/usr/bin/flock") for n in range(jobs))
    holder = Process(40, 1, "sh", "/bin/sh", command="sh nightly.sh /data")
    blocked = tuple(Blocked(100 + n, 100 + n, "flock", (9, 2), 9) for n in range(jobs))
    pids = (40, *range(50, 50 + jobs), *range(100, 100 + jobs))
    return facts(*stays)._replace(
        processes=(holder, *shells, *flocks),
        blocked=blocked,
        descriptors={pid: {9: PATH} for pid in pids},
    )


def test_jobs_that_pile_up_behind_one_that_does_not_end() -> None:
    (finding,) = find(piling_up(8))
    assert finding.text == f"8 processes wait for the lock of a file (flock): {PATH}"
    assert finding.evidence == ("started by sh nightly.sh; it is open in sh (40)",)


def test_processes_that_stand_by() -> None:
    assert find(piling_up(2)) == []


def taking_turns(opens: int) -> Facts:
    """Four threads of two processes that open a file for each turn; an importer keeps it open."""
    stays = [
        waiting(pid, tid, "futex", own("reserve", 11), argument=9, seconds=6.0)._replace(
            call="flock", kernel=KERNEL
        )
        for pid, tid in ((7, 7), (7, 8), (9, 9), (9, 10))
    ]
    processes = (Process(7, 1, "shop", PYTHON), Process(9, 1, "shop", PYTHON))
    return facts(*stays)._replace(
        processes=(*processes, Process(12, 1, "importer", PYTHON)),
        paths=(PathCount(7, "openat", PATH, opens), PathCount(9, "openat", "/etc/hosts", 8)),
        descriptors={12: {4: PATH}},
    )


def test_the_file_that_is_opened_for_each_turn_is_the_one_with_the_lock() -> None:
    (finding,) = find(taking_turns(80))
    assert finding.text == (
        f"4 threads wait for the lock of a file (flock): {PATH}, in reserve (app.py:11)"
    )
    assert finding.evidence == ("it is open in importer (12)",)
    (finding,) = find(taking_turns(5))
    assert PATH not in finding.text


def booking(*locks: FileLock, seconds: float = 10.0) -> Facts:
    """Processes that wait for the lock of another one's file, with the kernel's list of locks."""
    files = {7: "/data/17", 8: "/data/23", 9: "/data/17"}
    stays = [
        waiting(
            pid, pid, "futex", own("transfer", 31), argument=5, seconds=seconds, is_open=True
        )._replace(call="flock", kernel=KERNEL)
        for pid in files
    ]
    processes = (*(Process(pid, 1, "book", PYTHON) for pid in files), Process(4, 1, "report"))
    return facts(*stays)._replace(
        processes=processes,
        descriptors={pid: {5: file} for pid, file in files.items()},
        file_locks=locks,
    )


RING = (FileLock(7, 8), FileLock(8, 7), FileLock(9, 8))


def test_processes_that_wait_for_each_other_are_a_deadlock() -> None:
    (finding,) = find(booking(*RING))
    assert finding.kind == "deadlock"
    assert finding.text == (
        "deadlock: 2 processes each wait for the lock of a file (flock) that the next one holds, "
        "in transfer (app.py:31)"
    )
    assert finding.evidence == (
        "book (7) waits for /data/17; book (8) waits for /data/23",
        "1 more waits behind them",
    )


def test_turns_that_end_are_no_deadlock() -> None:
    (finding,) = find(booking(*RING, seconds=6.0))
    assert finding.kind == "lock-convoy"


def test_the_holder_is_the_one_of_the_kernels_list() -> None:
    (finding,) = find(booking(FileLock(7, 4), FileLock(8, 4), FileLock(9, 7)))
    assert finding.kind == "lock-convoy"
    assert finding.evidence == ("report (4) holds it",)
