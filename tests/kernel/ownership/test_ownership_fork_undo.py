"""What closing a link undoes by asking the kernel, a forked child that closes it does not ask for.

A filter, a route or a line of tracefs would be gone for its parent, too.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import purebpf
from purebpf.syscall import pmu, tracefs
from tests.support.host import network
from tests.support.programs.children import in_child

DATA = Path(__file__).parents[2] / "data"
PRIME = 13
UNSPEC, XDP_PASS = -1 & 0xFFFFFFFF, 2
NETWORK, ADDRESS = "192.0.2.0/24", "192.0.2.7"

pytestmark = pytest.mark.needs("bpf", "net_namespace")


@contextmanager
def loaded(file: str, *names: str, **values: object) -> Iterator[purebpf.Object]:
    spec = purebpf.read_object(DATA / f"{file}.bpf.o").only(*names)
    used = {name: each for name, each in spec.maps.items() if each.section}  # its variables
    with purebpf.load(spec._replace(maps=used).set(**values)) as obj:
        yield obj


KINDS = {
    "xdp": ("net_device", "frame", {"answer": XDP_PASS}, "hits"),
    "clsact": ("net_device", "packet", {"answer": UNSPEC}, "hits"),
    "route": ("net_route", "sent", {}, "packets"),
}
"""How each is loaded, and where it counts."""
kinds = pytest.mark.parametrize(
    "kind",
    [
        "xdp",
        pytest.param("clsact", marks=pytest.mark.needs("clsact")),
        pytest.param("route", marks=pytest.mark.needs("route_programs")),
    ],
)


def attach(obj: purebpf.Object, kind: str) -> purebpf.Link:
    program = obj.programs[KINDS[kind][1]]
    if kind == "xdp":
        return program.attach("lo", mode="generic", netlink=True)
    if kind == "clsact":
        return program.attach("lo", direction="egress", clsact=True)
    return program.attach(NETWORK, interface="lo")


def counted(obj: purebpf.Object, kind: str) -> int:
    """How many of PRIME datagrams the program sees."""
    seen = KINDS[kind][3]
    before = obj.globals[seen]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, suppress(OSError):
        sock.connect((ADDRESS if kind == "route" else "127.0.0.1", 4711))
        for _ in range(PRIME):
            with suppress(ConnectionRefusedError):  # there is no listener, which the loop reports
                sock.send(b"x")
    return int(obj.globals[seen]) - before


@kinds
def test_what_netlink_made_stays(kind: str):
    file, name, values, _ = KINDS[kind]
    with network.namespace(), loaded(file, name, **values) as obj:
        link = attach(obj, kind)
        in_child(link.close)
        assert counted(obj, kind) >= PRIME
        link.close()
        assert counted(obj, kind) == 0


@kinds
def test_a_child_that_detaches_means_it(kind: str):
    file, name, values, _ = KINDS[kind]
    with network.namespace(), loaded(file, name, **values) as obj:
        link = attach(obj, kind)
        in_child(link.detach)
        assert counted(obj, kind) == 0
        link.close()  # what it made is gone already
        with attach(obj, kind):
            assert counted(obj, kind) >= PRIME
        assert counted(obj, kind) == 0


def test_a_filter_of_a_socket_stays():
    with (
        loaded("net_socket", "filter", keep=0) as obj,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
    ):
        sock.bind(("127.0.0.1", 0))
        link = obj.programs["filter"].attach(sock)
        in_child(link.close)
        sock.sendto(b"x", sock.getsockname())
        assert obj.globals["hits"] == 1
        link.close()
        sock.sendto(b"y", sock.getsockname())
        assert obj.globals["hits"] == 1
        assert sock.recv(1) == b"y"


PROBES = [
    "uprobe",
    pytest.param("kprobe", marks=pytest.mark.needs("kprobes")),
]


@pytest.mark.needs("tracefs", "vmlinux_btf")
@pytest.mark.parametrize("way", PROBES)
def test_a_probe_of_tracefs_stays(way: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pmu, "attribute", lambda _name, _attribute: None)

    def events() -> list[str]:
        lines = tracefs.read(f"{way}_events").splitlines()
        return [line for line in lines if f":purebpf/p_{os.getpid()}_" in line]

    with loaded("attach_probes", f"on_{way}", own_tgid=os.getpid()) as obj:
        link = obj.programs[f"on_{way}"].attach()
        in_child(link.close)
        assert len(events()) == 1
        for _ in range(PRIME):
            os.getpriority(os.PRIO_PROCESS, 0)
        assert getattr(obj.globals["seen"], way) == PRIME
        link.close()
        assert events() == []
