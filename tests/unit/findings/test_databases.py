"""Databases whose statements fail, and ones whose clients give up by themselves."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import Activity, CallCount, Facts, Process, Socket
from purebpf.findings.find import find
from purebpf.findings.finding import Finding
from tests.support.builders.facts import PYTHON, facts, native, own, running, waiting

POSTGRES = "/usr/lib/postgresql/15/bin/postgres"
BACKEND, CLIENT, STDERR = 9, 7, 2


def at_work(*names: str, seconds: float) -> Activity:
    frames = (native(name, POSTGRES) for name in (*names, "PostgresMain", "main"))
    return running(BACKEND, BACKEND, *frames, seconds=seconds, comm="postgres")


def failing(*errors: Activity, lines: int = 3000) -> Facts:
    """A backend that fails in some of its time, with a client in Python that waits for it."""
    stays = (
        *errors,
        at_work("heap_update", "ExecModifyTable", seconds=1.0),
        waiting(CLIENT, CLIENT, "recvfrom", own("add_to_balance", 17), seconds=6.0),
    )
    return facts(*stays)._replace(
        processes=(Process(BACKEND, 1, "postgres", POSTGRES), Process(CLIENT, 1, "app", PYTHON)),
        calls=(CallCount(BACKEND, "write", 0, lines, fd=STDERR),),
        sockets=(
            Socket(60, "tcp", "127.0.0.1", 5432, "127.0.0.1", 40000, 1),
            Socket(61, "tcp", "127.0.0.1", 40000, "127.0.0.1", 5432, 1),
        ),
        descriptors={BACKEND: {8: "socket:[60]"}, CLIENT: {5: "socket:[61]"}},
    )


def said(found: list[Finding]) -> str:
    return "; ".join(
        "; ".join((finding.text, *finding.evidence))
        for finding in found
        if finding.kind == "retries"
    )


def queueing(*titles: str) -> str:
    """The findings about a backend that waits beside others with these titles."""
    waiting_one = Process(20, 9, "postgres", POSTGRES, titles={f"{SESSION} INSERT waiting": 8})
    others = (
        Process(30 + n, 9, "postgres", POSTGRES, titles={title: 5})
        for n, title in enumerate(titles)
    )
    found = find(Facts(10.0, 2, processes=(waiting_one, *others)))
    return "; ".join(text for one in found if one.kind == "db-lock" for text in one.evidence)


SESSION = "postgres: shop orders [local]"


def test_the_command_that_may_have_the_lock_is_named() -> None:
    text = queueing(f"{SESSION} CREATE INDEX", "postgres: checkpointer ", f"{SESSION} idle")
    assert "others run CREATE INDEX (postgres (30)) meanwhile" in text


def test_sessions_that_wait_or_do_nothing_have_no_command() -> None:
    text = queueing(f"{SESSION} UPDATE waiting", "postgres: walwriter ", f"{SESSION} idle")
    assert text == "pg_blocking_pids() names the holder"
    assert queueing("postgres: main: shop orders [local] idle") == text


def committing(title: str, *names: str) -> list[Finding]:
    """What is said of a backend that waits below some functions, with this title."""
    frames = (native(name, POSTGRES) for name in ("WaitLatch", *names, "PostgresMain", "main"))
    stay = waiting(BACKEND, BACKEND, "epoll_wait", *frames, seconds=9.0)
    backend = Process(BACKEND, 1, "postgres", POSTGRES, titles={title: 9})
    found = find(facts(stay)._replace(processes=(backend,)))
    return [one for one in found if one.kind == "db-lock"]


def test_commits_wait_for_a_standby_that_is_not_connected() -> None:
    (finding,) = committing(f"{SESSION} COMMIT waiting for 0/152A4F8", "SyncRepWaitForLSN")
    assert "at the end of a transaction until a standby has its data" in finding.text
    assert "COMMIT waiting for 0/152A4F8" in finding.text
    (finding,) = committing(f"{SESSION} COMMIT waiting for 0/152A4F8")
    assert finding.cost == pytest.approx(1.0)


def test_a_backend_that_waits_for_its_client_waits_for_no_standby() -> None:
    assert committing(f"{SESSION} idle", "secure_read", "SocketBackend") == []


ERRORS = (
    at_work("errfinish", "ExecUpdate", seconds=0.2),
    at_work("AbortCurrentTransaction", seconds=0.1),
)


def test_transactions_that_fail_are_told_with_their_client() -> None:
    text = said(find(failing(*ERRORS)))
    assert "their transactions are rolled back: errors take 23 % of its CPU time" in text
    assert "they work for app (7), which waits" in text
    assert "add_to_balance (app.py:17)" in text
    assert "300 writes a second to its log" in text


def test_notices_in_the_log_are_no_errors() -> None:
    notices = at_work("EmitErrorReport", "errfinish", "exec_simple_query", seconds=0.3)
    assert said(find(failing(notices))) == ""


def test_a_rollback_of_the_client_is_no_error() -> None:
    rollback = at_work("ResourceOwnerRelease", "UserAbortTransactionBlock", seconds=0.3)
    assert said(find(failing(rollback))) == ""


def test_few_errors_are_usual() -> None:
    rare = (at_work("errfinish", seconds=0.02), at_work("AbortCurrentTransaction", seconds=0.01))
    assert said(find(failing(*rare))) == ""
    assert said(find(failing(*ERRORS, lines=9))) == ""


def test_a_command_of_a_backend_that_came_and_went_is_named() -> None:
    waiting_one = Process(20, 9, "postgres", POSTGRES, titles={f"{SESSION} SELECT waiting": 8})
    short = Process(31, 9, "postgres", POSTGRES, f"{SESSION} VACUUM", titles={"": 6}, is_gone=True)
    server = f"{POSTGRES} -D /data -p 5432"
    parent = Process(9, 1, "postgres", POSTGRES, server, titles={server: 8})
    (finding,) = find(Facts(10.0, 2, processes=(waiting_one, short, parent)))
    assert finding.evidence[0].startswith("others run VACUUM (postgres (31)) meanwhile")
    (finding,) = find(Facts(10.0, 2, processes=(waiting_one, parent)))
    assert finding.evidence[0] == "pg_blocking_pids() names the holder"
