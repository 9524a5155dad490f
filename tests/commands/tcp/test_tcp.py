"""tcp against workloads in a network namespace, with what the kernel itself counts as the truth."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Thread

import pytest

from purebpf.tools.tcp import Event, Tcp, TcpOptions
from purebpf.tools.tcp.summary import PeerTable
from tests.support.environment import ROOT, run
from tests.support.host import network
from tests.support.patience import until

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "tracefs", "net_namespace")

CONNECTIONS = 13


@pytest.fixture(autouse=True)
def own_network() -> Iterator[None]:
    with network.namespace():
        yield


def netns() -> int:
    return os.stat("/proc/thread-self/ns/net").st_ino


@contextmanager
def listening(family: socket.AddressFamily = socket.AF_INET) -> Iterator[socket.socket]:
    with socket.socket(family) as listener:
        listener.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
        listener.listen(CONNECTIONS)
        yield listener


def read_all(end: socket.socket) -> int:
    size = 0
    while data := end.recv(65536):
        size += len(data)
    return size


def talk(listener: socket.socket, there: int, back: int) -> None:
    """One connection, with so many bytes each way."""
    with socket.create_connection(listener.getsockname()[:2]) as client:
        server, _ = listener.accept()
        with server:
            client.sendall(b"x" * there)
            client.shutdown(socket.SHUT_WR)
            assert read_all(server) == there
            server.sendall(b"y" * back)
            server.shutdown(socket.SHUT_WR)
            assert read_all(client) == back


def counters() -> dict[str, int]:
    """What the kernel counts of TCP in this namespace."""
    names, values = (
        line.split()[1:]
        for line in Path("/proc/thread-self/net/snmp").read_text().splitlines()
        if line.startswith("Tcp:")
    )
    return dict(zip(names, map(int, values), strict=True))


def ours(events: tuple[Event, ...]) -> list[Event]:
    return [event for event in events if event.netns == netns()]


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_each_connection_is_made_accepted_and_closed_with_its_bytes(family):
    before = counters()
    with listening(family) as listener, Tcp(TcpOptions()) as tcp:
        address, port = listener.getsockname()[:2]
        for turn in range(CONNECTIONS):
            talk(listener, 997 * turn, 1009 * (turn % 3))
        ending = tcp.stop()
    events = ours(ending.events)
    kinds = Counter(event.kind for event in events)
    assert kinds == {"connect": 13, "accept": 13, "close": 26}
    after = counters()
    assert after["ActiveOpens"] - before["ActiveOpens"] == kinds["connect"]
    assert after["PassiveOpens"] - before["PassiveOpens"] == kinds["accept"]
    assert {event.pid for event in events} == {os.getpid()}
    closed = [event for event in events if event.kind == "close"]
    out = [(event.sent, event.received) for event in closed if event.direction == "out"]
    come = [(event.received, event.sent) for event in closed if event.direction == "in"]
    assert out == come == [(997 * turn, 1009 * (turn % 3)) for turn in range(CONNECTIONS)]
    assert {event.remote_port for event in closed if event.direction == "out"} == {port}
    assert {event.local_port for event in closed if event.direction == "in"} == {port}
    assert {event.remote_address for event in events} == {address}
    assert all(event.took_ns for event in events)
    assert not ending.loss.any


@pytest.mark.needs("ss")
def test_ss_lists_the_same_connections():
    """iproute2 reads them from the kernel by sock_diag(7), while they are open."""
    with (
        listening() as listener,
        Tcp(TcpOptions(events=("connect", "accept"))) as tcp,
        ExitStack() as ends,
    ):
        for _ in range(CONNECTIONS):
            ends.enter_context(socket.create_connection(listener.getsockname()))
            ends.enter_context(listener.accept()[0])
        listed = subprocess.run(
            ["ss", "-tnH", "state", "established"], capture_output=True, text=True, check=True
        ).stdout
        events = ours(tcp.stop().events)
    pairs = Counter(tuple(line.split()[2:4]) for line in listed.splitlines())
    assert len(pairs) == 2 * CONNECTIONS
    assert pairs == Counter(
        (
            f"{event.local_address}:{event.local_port}",
            f"{event.remote_address}:{event.remote_port}",
        )
        for event in events
    )


def test_a_refused_connection_says_so():
    with listening() as listener:
        port = listener.getsockname()[1]
    before = counters()
    with Tcp(TcpOptions(port=port)) as tcp:
        for _ in range(7):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
        events = ours(tcp.stop().events)
    assert [(event.kind, event.error, event.remote_port) for event in events] == [
        ("fail", "ECONNREFUSED", port)
    ] * 7
    assert counters()["AttemptFails"] - before["AttemptFails"] == 7


def test_a_reset_is_the_error_of_the_end_that_got_it():
    with listening() as listener, Tcp(TcpOptions(events=("close",))) as tcp:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        with pytest.raises(ConnectionResetError):
            server.recv(1)
        server.close()
        events = ours(tcp.stop().events)
    assert {(event.direction, event.error) for event in events} == {
        ("out", ""),
        ("in", "ECONNRESET"),
    }


def test_retransmits_are_those_that_the_kernel_counts():
    with listening() as listener, Tcp(TcpOptions(events=("retransmit", "close"))) as tcp:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        before = counters()["RetransSegs"]
        subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
        client.sendall(b"z" * 101)
        assert until(lambda: counters()["RetransSegs"] - before >= 2)
        network.raised("lo")
        assert server.recv(101) == b"z" * 101
        client.close()
        server.close()
        counted = counters()["RetransSegs"] - before
        events = ours(tcp.stop().events)
    resent = [event for event in events if event.kind == "retransmit"]
    assert len(resent) == counted
    (closed,) = (event for event in events if event.kind == "close" and event.direction == "out")
    assert (closed.retransmits, closed.sent) == (counted, 101)


def test_states_follow_each_other():
    with listening() as listener, Tcp(TcpOptions(events=("state",))) as tcp:
        talk(listener, 1, 1)
        events = ours(tcp.stop().events)
    by_socket: dict[str, list[tuple[str, str]]] = {}
    for event in events:
        by_socket.setdefault(event.socket, []).append((event.old_state, event.new_state))
    assert len(by_socket) == 2
    for changes in by_socket.values():
        for (_, new), (old, _) in pairwise(changes):
            assert new == old
        assert changes[-1][1] == "CLOSE"


def test_a_connection_of_before_has_its_owner_but_no_age():
    with listening() as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        with Tcp(TcpOptions(pids=(os.getpid(),), events=("close",))) as tcp:
            client.sendall(b"x" * 11)
            assert server.recv(11)
            client.close()
            server.close()
            events = ours(tcp.stop().events)
    assert [(event.pid, event.took_ns) for event in events] == [(os.getpid(), None)] * 2
    assert sorted((event.sent, event.received) for event in events) == [(0, 11), (11, 0)]


def test_only_the_target_is_shown():
    with listening() as listener, Tcp(TcpOptions(pids=(os.getppid(),))) as tcp:
        talk(listener, 5, 5)
        assert ours(tcp.stop().events) == []


def test_a_connection_that_is_closed_by_another_process_is_its_makers():
    """tcplife names whatever task an interrupt met."""
    with listening() as listener, ExitStack() as stack:
        tcp = stack.enter_context(Tcp(TcpOptions(events=("close",))))
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        client.shutdown(socket.SHUT_WR)
        child = subprocess.Popen(
            [sys.executable, "-c", "import socket,sys; socket.socket(fileno=int(sys.argv[1]))",
             str(server.fileno())],
            pass_fds=[server.fileno()],
        )  # fmt: skip
        server.close()
        child.wait()
        client.close()
        events = ours(tcp.stop().events)
    assert {event.pid for event in events} == {os.getpid()}


def test_accepts_are_seen_without_tracefs_too(monkeypatch):
    monkeypatch.setattr("purebpf.tools.tcp.session._has_tracepoints", lambda: False)
    with listening() as listener, Tcp(TcpOptions(events=("accept",))) as tcp:
        for _ in range(5):
            talk(listener, 3, 0)
        events = ours(tcp.stop().events)
    assert [(event.pid, event.direction) for event in events] == [(os.getpid(), "in")] * 5


def test_a_full_table_is_counted():
    with listening() as listener, Tcp(TcpOptions(connections=1)) as tcp:
        pairs = []
        for _ in range(5):
            client = socket.create_connection(listener.getsockname())
            pairs += [client, listener.accept()[0]]
        for end in pairs:
            end.close()
        loss = tcp.stop().loss
    lost = {cause.name: cause.lost for cause in loss.causes}
    assert lost["connections_full"] >= 9
    assert loss.any


def answer(message: bytes) -> bytes:
    """To a question: that its name is 127.0.0.1."""
    question = message[12 : message.index(b"\0", 12) + 5]
    header = message[:2] + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0)
    return header + question + b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + b"\x7f\0\0\1"


QUESTION = bytes.fromhex("0007 0100 0001 0000 0000 0000") + b"\x03www\x04test\0\0\x01\0\x01"


def test_remote_addresses_have_the_name_that_dns_gave_them():
    with listening() as listener, ExitStack() as stack:
        server, client = (
            stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2)
        )
        server.bind(("127.0.0.1", 53))

        def serve() -> None:
            message, place = server.recvfrom(512)
            time.sleep(0.2)
            server.sendto(answer(message), place)

        tcp = stack.enter_context(Tcp(TcpOptions(dns=True, events=("dns", "connect"))))
        thread = Thread(target=serve)
        thread.start()
        client.sendto(QUESTION, ("127.0.0.1", 53))
        assert client.recv(512)
        thread.join()
        talk(listener, 1, 1)
        events = [
            event
            for event in tcp.stop().events
            if (event.kind == "dns" and event.names == ("www.test",)) or event.netns == netns()
        ]
    said, made = events
    assert (said.kind, said.addresses) == ("dns", ("127.0.0.1",))
    assert said.pid == os.getpid()
    assert said.took_ns is not None
    assert 0.2 <= said.took_ns / 1e9 < 10
    assert (made.kind, made.remote_name) == ("connect", "www.test")


def test_answers_to_others_are_left_out_where_there_is_a_target():
    question = "import socket; socket.socket(2, 2).sendto({!r}, ('127.0.0.1', 53))"
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        server.bind(("127.0.0.1", 53))
        tcp = stack.enter_context(Tcp(TcpOptions(dns=True, events=("dns",), pids=(os.getpid(),))))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(QUESTION.replace(b"\3www", b"\3own"), ("127.0.0.1", 53))
            subprocess.run([sys.executable, "-c", question.format(QUESTION)], check=True)
            for _ in range(2):
                message, place = server.recvfrom(512)
                server.sendto(answer(message), place)
            assert client.recv(512)
        names = [event.names for event in tcp.stop().events if event.kind == "dns"]
    assert names == [("own.test",)]


def test_a_question_without_an_answer_is_told_once_and_only_of_a_target():
    question = "import socket; socket.socket(2, 2).sendto({!r}, ('127.0.0.1', 53))"
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        server.bind(("127.0.0.1", 53))
        tcp = stack.enter_context(Tcp(TcpOptions(dns=True, events=("dns",), pids=(os.getpid(),))))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(QUESTION, ("127.0.0.1", 53))
            subprocess.run([sys.executable, "-c", question.format(QUESTION)], check=True)
            events = list(tcp.drain())
            until(lambda: events.extend(tcp.drain()) or events)
            events += tcp.drain()
        events += tcp.stop().events
    (late,) = events
    assert (late.kind, late.pid, late.names) == ("dns", os.getpid(), ())
    assert late.took_ns is not None
    assert late.took_ns >= 250_000_000


ELSEWHERE = f"""
import socket
client, server = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
server.bind(("127.0.0.1", 53))
client.bind(("127.0.0.1", 0))
server.sendto({answer(QUESTION)!r}, client.getsockname())
assert client.recv(512)
"""


@pytest.mark.needs("mount_namespace")
def test_what_is_said_in_another_network_names_nothing_here():
    """Every user is root in a network namespace of their own, and may send from port 53 there."""
    with listening() as listener, Tcp(TcpOptions(dns=True, events=("dns", "connect"))) as tcp:
        script = 'ip link set lo up && exec "$0" -c "$1"'
        line = ["unshare", "--net", "sh", "-c", script, sys.executable, ELSEWHERE]
        subprocess.run(line, check=True)
        talk(listener, 1, 1)
        events = [
            event
            for event in tcp.stop().events
            if event.names == ("www.test",) or event.netns == netns()
        ]
    said, made = events
    assert said.kind == "dns"
    assert said.netns not in (0, netns())
    assert (made.kind, made.remote_name) == ("connect", "")


CLIENT = """
import socket, sys
for _ in range(5):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as end:
        end.sendall(b"q" * 17)
"""


def test_a_command_and_its_children_are_followed():
    with listening() as listener:
        port = str(listener.getsockname()[1])
        line = ["sh", "-c", f'"$0" -c "$1" {port}; exit 3', sys.executable, CLIENT]
        result = run("tcp", "--format", "json", "--strict", "--", *line)
        for _ in range(5):
            listener.accept()[0].close()
    assert result.returncode == 3
    *events, last = map(json.loads, result.stdout.splitlines())
    assert Counter(event["event"] for event in events)["connect"] == 5
    assert not any(last["loss"].values())
    assert "lost: nothing" in result.stderr


def test_text_is_shown_as_it_happens_and_ctrl_c_ends_it():
    line = [sys.executable, "-m", "purebpf", "tcp", "--events", "connect", "-p", str(os.getpid())]
    with (
        listening() as listener,
        subprocess.Popen(line, stdout=-1, stderr=-1, text=True, cwd=ROOT) as tool,
    ):
        assert tool.stdout is not None
        assert "CONNECTION" in tool.stdout.readline()
        talk(listener, 3, 3)
        shown = tool.stdout.readline()
        tool.send_signal(signal.SIGINT)
        _, said = tool.communicate()
    assert f"> 127.0.0.1:{listener_port(shown)}" in shown
    assert (tool.returncode, "lost: nothing" in said) == (0, True)


def listener_port(line: str) -> str:
    return line.rsplit(":", maxsplit=1)[-1].strip()


def test_the_table_counts_by_peer_and_port() -> None:
    """Thirteen connections with their bytes, and five that nobody accepts."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        refused = closed.getsockname()
    table = PeerTable(format="json")
    with listening() as listener, Tcp(TcpOptions()) as session:
        port = listener.getsockname()[1]
        for _ in range(CONNECTIONS):
            talk(listener, 1009, 211)
        for _ in range(5):
            with socket.socket() as client:
                assert client.connect_ex(refused) == errno.ECONNREFUSED
        ending = session.stop()
    list(table.show(ending.events))
    rows = {
        (row["direction"], row["port"]): row
        for row in map(json.loads, table.end(ending.loss))
        if row["event"] == "peer"
    }
    ours, theirs, failed = rows["out", port], rows["in", port], rows["out", refused[1]]
    assert (ours["connections"], ours["failed"]) == (CONNECTIONS, 0)
    assert (theirs["connections"], theirs["failed"]) == (CONNECTIONS, 0)
    assert (ours["sent"], ours["received"]) == (CONNECTIONS * 1009, CONNECTIONS * 211)
    assert (theirs["received"], theirs["sent"]) == (CONNECTIONS * 1009, CONNECTIONS * 211)
    assert ours["connect_max_ns"] >= ours["connect_avg_ns"] > 0
    assert (failed["connections"], failed["errors"]) == (5, {"ECONNREFUSED": 5})
