"""Unix sockets lead to the process at their other end."""

from __future__ import annotations

from purebpf.findings.facts import Endpoint, Facts, Process, StackFrame, WaitSum
from purebpf.findings.find import find
from tests.support.builders.facts import PYTHON, facts, library, own, running, waiting

FLASK = library("Flask.dispatch", "/v/lib/python3.11/site-packages/flask/app.py")
DATABASE = Process(9, 1, "postgres", "/usr/lib/postgresql/postgres")


def asking(*, each_s: float, **more: object) -> Facts:
    """A process that waits for answers on inode 31, of which inode 32 is the other end."""
    times = round(9 / each_s)
    end = Endpoint("socket", "other", inode=31)
    asker = waiting(7, 7, "recvfrom", own("find_orders", 4), FLASK, argument=3)
    measured = facts(
        asker,
        waits=(WaitSum(7, 7, "recvfrom", 3, 3, 0, end, 9.0, times, each_s),),
        descriptors={7: {3: "socket:[31]"}, 9: {8: "socket:[32]"}},
        unix_peers={31: 32, 32: 31},
    )
    processes = (Process(7, 1, "app7", PYTHON), DATABASE)
    return measured._replace(processes=processes, **more)  # type: ignore[arg-type]


def test_a_slow_answer_names_the_process_at_the_other_end() -> None:
    (finding,) = find(asking(each_s=0.3))
    assert "waits for answers of a unix socket in find_orders (app.py:4): 300 ms" in finding.text
    assert finding.evidence[1] == "the peer is postgres (9)"
    assert finding.evidence[-1] == "1 thread, 30 times"
    (finding,) = find(asking(each_s=0.3, unix_peers={}))
    assert "the peer is not known" in finding.evidence


def plain(*, names: dict[int, str], times: int = 30) -> Facts:
    """A client without own functions, in another language."""
    reader = waiting(7, 7, "recvfrom", StackFrame("zif_fgets", "/usr/bin/php"), argument=3)
    measured = asking(each_s=9 / max(1, times), unix_names=names)
    waits = measured.waits if times else ()
    return measured._replace(
        activities=(reader,),
        processes=(Process(7, 1, "app7", "/usr/bin/php"), DATABASE),
        waits=waits,
    )


def test_the_side_without_an_address_is_the_client() -> None:
    (finding,) = find(plain(names={32: "/run/db.sock"}))
    assert "waits for answers of /run/db.sock: 300 ms each" in finding.text
    assert find(plain(names={31: "/run/db.sock"})) == []
    assert find(plain(names={})) == []


def test_who_waits_all_the_time_may_have_subscribed_to_events() -> None:
    assert find(plain(names={32: "/run/bus.sock"}, times=0)) == []


def test_a_client_of_a_quick_server_waits_as_all_clients_do() -> None:
    assert find(asking(each_s=0.001)) == []


def test_a_busy_server_has_the_waits_of_its_client() -> None:
    client = asking(each_s=0.3)
    sort = StackFrame("sort_rows", DATABASE.exe, 0, "user")
    busy = client._replace(activities=(*client.activities, running(9, 9, sort)))
    (finding,) = find(busy)
    assert (finding.kind, finding.pid) == ("cpu", 9)
    assert [loss.pid for loss in finding.lost_by] == [7]


def test_the_reader_of_a_full_socket_is_named() -> None:
    writing = waiting(7, 7, "write", own("tell", 4), argument=3)._replace(
        kernel=("sock_alloc_send_pskb", "unix_dgram_sendmsg"), call="sendto"
    )
    end = Endpoint("socket", "other", inode=31)
    sleeping = waiting(9, 9, "clock_nanosleep", StackFrame("nanosleep", "/lib/libc.so.6"))
    measured = facts(
        writing,
        sleeping,
        waits=(WaitSum(7, 7, "sendto", 3, 3, 0, end, 9.0, 30, 0.3),),
        descriptors={7: {3: "socket:[31]"}, 9: {8: "socket:[32]"}},
        unix_peers={31: 32},
    )
    finding = next(one for one in find(measured) if one.kind == "full-pipe")
    assert finding.evidence[0] == "read by app9 (9), which sleeps"


def test_a_writer_without_a_known_function_has_no_question_mark() -> None:
    writing = waiting(7, 7, "write", argument=1)
    (finding,) = find(facts(writing))
    assert finding.text == "blocks in pipe_write: fd 1 is full"


def test_connections_that_are_closed_have_the_owner_of_their_address() -> None:
    """One of many short connections was seen when both of its ends were there."""
    ends = [Endpoint("socket", "other", inode=inode) for inode in (31, 33, 35)]
    waits = tuple(
        WaitSum(7, 7, "recvfrom", 3, 3, 0, end, seconds, 10, 0.3)
        for end, seconds in zip(ends, (3.0, 2.0, 4.0), strict=True)
    )
    reader = waiting(7, 7, "recvfrom", StackFrame("ask", "/srv/shop"), argument=3)
    measured = facts(
        reader,
        waits=waits,
        descriptors={9: {3: "socket:[40]"}},
        unix_peers={33: 34, 34: 33},
        unix_names={34: "/run/tax.sock", 40: "/run/tax.sock"},
    )
    processes = (Process(7, 1, "shop", "/srv/shop"), Process(9, 1, "tax", "/srv/tax"))
    (finding,) = find(measured._replace(processes=processes))
    assert "waits for answers of /run/tax.sock in ask: 300 ms each" in finding.text
    assert "the peer is tax (9)" in finding.evidence
