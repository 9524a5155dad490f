"""Programs of sockets, of maps of sockets and of network namespaces, fired and let go of."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import purebpf
from purebpf.abi.bpf import bpf_attach_type as at
from purebpf.abi.bpf import bpf_link_type
from purebpf.loader.programs.link_info import MapLink, NetnsLink
from purebpf.loader.programs.program import Program
from purebpf.syscall.backend import replaced
from tests.support.host import network
from tests.support.host.backends import Interposer

pytestmark = pytest.mark.needs("bpf", "net_namespace")

SPEC = purebpf.read_object(Path(__file__).parents[3] / "data" / "net_socket.bpf.o")
PRIME = 11
LOCAL = ("127.0.0.1", 0)


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    with network.namespace():
        yield


def load(*names: str) -> purebpf.Object:
    return purebpf.load(SPEC.only(*names))


@contextmanager
def receivers(count: int = 1) -> Iterator[list[socket.socket]]:
    """UDP sockets that share a port."""
    with ExitStack() as stack:
        found: list[socket.socket] = []
        for _ in range(count):
            sock = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.bind(found[0].getsockname() if found else LOCAL)
            sock.settimeout(5)
            found.append(sock)
        yield found


def send(receiver: socket.socket, data: bytes = b"hello", times: int = 1) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(times):
            sender.sendto(data, receiver.getsockname())


def nothing_waits(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        sock.recv(64)
    except BlockingIOError:
        return True
    finally:
        sock.settimeout(5)
    return False


def test_a_filter_sees_and_cuts_what_its_socket_receives():
    with load("filter") as obj, receivers() as (receiver,):
        with obj.programs["filter"].attach(receiver) as link:
            assert f"socket {receiver.fileno()}" in link.what
            send(receiver, times=PRIME)
            assert obj.globals["hits"] == PRIME
            assert receiver.recv(64) == b"hello"
            obj.globals["keep"] = 8 + 2  # the UDP header is the socket's, too
            send(receiver)
            for _ in range(PRIME - 1):
                receiver.recv(64)
            assert receiver.recv(64) == b"he"
            obj.globals["keep"] = 0
            send(receiver)
            assert nothing_waits(receiver)
        send(receiver)
        assert receiver.recv(64) == b"hello"
        assert obj.globals["hits"] == PRIME + 2


def test_a_filter_ends_with_its_socket():
    with load("filter") as obj, receivers() as (receiver,):
        link = obj.programs["filter"].attach(receiver)
        receiver.close()
        link.close()
        with pytest.raises(ValueError, match="the socket is closed"):
            obj.programs["filter"].attach(receiver)


def test_detaching_a_filter_that_is_gone_is_harmless():
    so_detach_filter = 27
    with load("filter") as obj, receivers() as (receiver,):
        link = obj.programs["filter"].attach(receiver)
        receiver.setsockopt(socket.SOL_SOCKET, so_detach_filter, 0)
        link.detach()


def test_a_locked_filter_says_so():
    so_lock_filter = 44
    with load("filter") as obj, receivers() as (receiver,):
        receiver.setsockopt(socket.SOL_SOCKET, so_lock_filter, 1)
        with pytest.raises(purebpf.AttachError, match=r"EPERM.*SO_LOCK_FILTER"):
            obj.programs["filter"].attach(receiver)


def test_a_target_that_is_not_a_socket_is_refused():
    with load("filter") as obj, open(os.devnull) as file:
        with pytest.raises(TypeError, match="expected a socket"):
            obj.programs["filter"].attach()
        with pytest.raises(purebpf.AttachError, match=r"ENOTSOCK"):
            obj.programs["filter"].attach(file)


def test_a_program_chooses_among_the_sockets_of_a_port():
    with load("select") as obj, receivers(3) as sockets:
        obj.maps["port"].update(dict(enumerate(sockets)))
        with obj.programs["select"].attach(sockets[0]):
            for index in (2, 0, 1):
                obj.globals["chosen"] = index
                send(sockets[0], bytes([index]), PRIME)
                for _ in range(PRIME):
                    assert sockets[index].recv(64) == bytes([index])
                assert all(map(nothing_waits, sockets))
            assert obj.globals["hits"] == 3 * PRIME
        send(sockets[0])
        assert obj.globals["hits"] == 3 * PRIME


def test_a_socket_program_chooses_by_number():
    with (
        load("pick") as obj,
        receivers(2) as sockets,
        obj.programs["pick"].attach(sockets[0], reuseport=True) as link,
    ):
        assert "the port of socket" in link.what
        obj.globals["chosen"] = 1
        send(sockets[0], b"to the second")
        assert sockets[1].recv(64) == b"to the second"
        assert obj.globals["hits"] == 1


def test_a_socket_that_shares_no_port():
    with (
        load("select") as obj,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as alone,
        pytest.raises(purebpf.AttachError, match=r"SO_REUSEPORT before"),
    ):
        obj.programs["select"].attach(alone)


# Network namespaces


def test_packets_are_steered_to_the_socket_of_another_port():
    with load("steer") as obj, receivers() as (receiver,), receivers() as (bystander,):
        obj.maps["sockets"][0] = receiver
        obj.globals["steered"] = free = unused_port()
        with obj.programs["steer"].attach() as link:
            assert link.info.type == bpf_link_type.BPF_LINK_TYPE_NETNS
            inode = os.stat("/proc/thread-self/ns/net").st_ino
            assert link.info.details == NetnsLink(inode, at.BPF_SK_LOOKUP)
            (found,) = Program.query(None, "sk_lookup").programs
            assert found.id == obj.programs["steer"].info.id
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                for _ in range(PRIME):
                    sender.sendto(b"steered", ("127.0.0.1", free))
            for _ in range(PRIME):
                assert receiver.recv(64) == b"steered"
            assert obj.globals["hits"] == PRIME
            send(bystander)
            assert bystander.recv(64) == b"hello"
        assert Program.query(None, "sk_lookup").programs == ()


def unused_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(LOCAL)
        return int(sock.getsockname()[1])


def test_a_namespace_may_be_a_file():
    with load("pass") as obj:
        with obj.programs["pass"].attach("/proc/self/ns/net") as link:
            assert "/proc/self/ns/net" in link.what
        with open("/proc/thread-self/ns/net", "rb") as file, obj.programs["pass"].attach(file):
            assert len(Program.query(file, "sk_lookup").programs) == 1
        with pytest.raises(TypeError, match="the file of a network namespace"):
            obj.programs["pass"].attach(1)
        with pytest.raises(purebpf.KernelError, match=r"the network namespace: open\(/proc/no"):
            obj.programs["pass"].attach("/proc/no/ns/net")
        with pytest.raises(purebpf.KernelError, match="give a path: /run/netns/blue"):
            obj.programs["pass"].attach("blue")
        with (
            open(os.devnull) as file,
            pytest.raises(purebpf.AttachError, match="not a network nam"),
        ):
            obj.programs["pass"].attach(file)


def test_programs_of_a_namespace_are_updated():
    with load("pass", "steer") as obj, obj.programs["pass"].attach() as link:
        link.update(obj.programs["steer"], old=obj.programs["pass"])
        assert link.info.program_id == obj.programs["steer"].info.id
        link.detach()
        assert Program.query(None, "sk_lookup").programs == ()


SOL_PACKET, PACKET_FANOUT, ETH_P_IP = 263, 18, 0x0800


def test_packets_are_dissected_for_their_hash():
    with (
        load("dissect") as obj,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP)) as sniffer,
        receivers() as (receiver,),
    ):
        sniffer.bind(("lo", ETH_P_IP))
        sniffer.setsockopt(SOL_PACKET, PACKET_FANOUT, os.getpid() & 0xFFFF)  # by hash
        with obj.programs["dissect"].attach() as link:
            assert link.info.details.attach_type == at.BPF_FLOW_DISSECTOR
            before = obj.globals["hits"]
            send(receiver, times=PRIME)
            for _ in range(PRIME):
                receiver.recv(64)
            assert obj.globals["hits"] - before >= PRIME
            with pytest.raises(purebpf.AttachError, match="one flow dissector"):
                obj.programs["dissect"].attach()
        after = obj.globals["hits"]
        send(receiver)
        receiver.recv(64)
        assert obj.globals["hits"] == after


# Maps of sockets


@pytest.fixture
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(LOCAL) as server:
        client = socket.create_connection(server.getsockname(), timeout=5)
        accepted, _ = server.accept()
    with client, accepted:
        accepted.settimeout(5)
        yield client, accepted


def test_messages_of_sockets_in_a_map_are_seen(connection):
    client, accepted = connection
    with load("message") as obj:
        with obj.programs["message"].attach(obj.maps["sockets"]):
            obj.maps["sockets"][0] = client
            for _ in range(PRIME):
                client.send(b"x")
            assert obj.globals["hits"] == PRIME
        del obj.maps["sockets"][0]
        client.send(b"x")
        assert obj.globals["hits"] == PRIME
        assert accepted.recv(PRIME + 1, socket.MSG_WAITALL) == b"x" * (PRIME + 1)


def test_what_sockets_in_a_map_receive_is_parsed_and_sent_back(connection):
    client, accepted = connection
    with load("parse", "echo") as obj:
        sockets = obj.maps["sockets"]
        with (
            obj.programs["parse"].attach(sockets),
            obj.programs["echo"].attach(sockets),
        ):
            sockets[0] = accepted
            client.send(b"there and back")
            assert client.recv(64) == b"there and back"
            assert obj.globals["hits"] >= 2


@pytest.mark.needs("sk_skb_verdict")
@pytest.mark.parametrize("name", ["verdict", "bare"])
def test_a_verdict_needs_no_parser(name, connection):
    client, accepted = connection
    with load(name) as obj:
        sockets = obj.maps["sockets"]
        options = {"kind": "sk_skb/verdict"} if name == "bare" else {}
        with obj.programs[name].attach(sockets, **options):
            sockets[0] = accepted
            client.send(b"there and back")
            assert client.recv(64) == b"there and back"
            assert obj.globals["hits"] == 1
        del sockets[0]
        client.send(b"only there")
        assert accepted.recv(64) == b"only there"


@pytest.mark.needs("sockmap_link")
def test_programs_of_a_map_are_links(connection):
    client, _ = connection
    with load("message") as obj:
        sockets = obj.maps["sockets"]
        sockets[0] = client
        with obj.programs["message"].attach(sockets) as link:
            assert link.info.type == bpf_link_type.BPF_LINK_TYPE_SOCKMAP
            assert link.info.details == MapLink(sockets.info.id, at.BPF_SK_MSG_VERDICT)
            (found,) = Program.query(sockets, "sk_msg").programs
            assert found.id == link.info.program_id
            with pytest.raises(purebpf.AttachError, match="EBUSY"):
                obj.programs["message"].attach(sockets)


def test_before_there_were_links_the_map_held_its_program(connection):
    client, _ = connection
    substitute = Interposer(
        lambda call: errno.EINVAL if call.command == "BPF_LINK_CREATE" else None
    )
    with load("message") as obj:
        sockets = obj.maps["sockets"]
        with replaced(substitute):
            link = obj.programs["message"].attach(sockets)
        with link:
            sockets[0] = client
            client.send(b"x")
            assert obj.globals["hits"] == 1
        del sockets[0]
        sockets[0] = client
        client.send(b"x")
        assert obj.globals["hits"] == 1


def test_a_target_that_is_not_a_map_of_sockets_is_refused():
    with load("message", "bare") as obj:
        for target in (None, obj.maps[".bss"], 3):
            with pytest.raises(TypeError, match="expected a sockmap"):
                obj.programs["message"].attach(target)
        with pytest.raises(TypeError, match="kind="):
            obj.programs["bare"].attach(obj.maps["sockets"])
