"""Maps that say where XDP frames go: to an interface, a CPU, a socket."""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import purebpf
from purebpf.loader.maps.map_plain_codecs import Redirect
from tests.support.host import network
from tests.support.patience import until

pytestmark = pytest.mark.needs("bpf", "net_namespace", "veth")

SPEC = purebpf.read_object(Path(__file__).parents[3] / "data" / "net_device.bpf.o")
PRIME = 13
OURS = 0x88B5
PASS, DROP = 2, 1
FRAME = b"\xff" * 6 + b"\2\0\0\0\0\1" + OURS.to_bytes(2, "big") + bytes(50)


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    with network.namespace(), network.pair("near", "far"):
        yield


def load(*names: str) -> purebpf.Object:
    return purebpf.load(SPEC.only(*names).set(wanted=OURS, answer=PASS))


def send(interface: str, count: int = PRIME) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((interface, 0))
        for _ in range(count):
            sender.send(FRAME)


def test_frames_go_on_to_an_interface_and_a_program_there():
    with network.pair("left", "right"), load("to_device", "of_devmap") as obj:
        there = socket.if_nametoindex("left")
        devices, second = obj.maps["devices"], obj.programs["of_devmap"]
        devices[7] = there
        assert devices[7] == Redirect(there)
        devices[7] = (there, second)
        assert devices[7] == Redirect(there, second.info.id)
        assert dict(devices.items()) == {7: Redirect(there, second.info.id)}
        with obj.programs["to_device"].attach("near", mode="generic"):
            send("far")
            assert until(lambda: obj.globals["hits"] >= 2 * PRIME)
            assert obj.globals["hits"] == 2 * PRIME  # once by either program


def test_frames_go_on_to_a_cpu_and_a_program_there():
    with load("to_cpu", "of_cpumap") as obj:
        cpus, second = obj.maps["cpus"], obj.programs["of_cpumap"]
        cpus[0] = 192
        assert cpus[0] == Redirect(192)
        cpus[0] = (192, second)
        assert cpus[0] == Redirect(192, second.info.id)
        with obj.programs["to_cpu"].attach("near", mode="native"):
            send("far")
            assert until(lambda: obj.globals["hits"] >= 2 * PRIME)
            assert obj.globals["hits"] == 2 * PRIME


def test_a_value_that_is_not_a_redirection_is_refused():
    with load("to_device") as obj:
        for value in ("near", (1, 2, 3), (), (1, "of_devmap")):
            with pytest.raises(purebpf.SchemaError, match="a number and a program"):
                obj.maps["devices"][7] = value


AF_XDP, SOL_XDP = 44, 283
MMAP_OFFSETS, RX_RING, UMEM_REG, FILL_RING, COMPLETION_RING = 1, 2, 4, 5, 6
PAGE, RING = 4096, 64


def test_frames_go_to_a_socket():
    with (
        load("to_socket") as obj,
        mmap.mmap(-1, RING * PAGE) as memory,
        socket.socket(AF_XDP, socket.SOCK_RAW) as sock,
    ):
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        sock.setsockopt(
            SOL_XDP, UMEM_REG, struct.pack("=QQIIII", start, RING * PAGE, PAGE, 0, 0, 0)
        )
        sock.setsockopt(SOL_XDP, FILL_RING, RING)
        sock.setsockopt(SOL_XDP, RX_RING, RING)
        sock.setsockopt(SOL_XDP, COMPLETION_RING, RING)
        offsets = struct.unpack("=16Q", sock.getsockopt(SOL_XDP, MMAP_OFFSETS, 128))
        with (
            mmap.mmap(sock.fileno(), offsets[2] + 16 * RING, offset=0) as received,
            mmap.mmap(sock.fileno(), offsets[10] + 8 * RING, offset=0x1_0000_0000) as fill,
        ):
            struct.pack_into(f"={RING}Q", fill, offsets[10], *range(0, RING * PAGE, PAGE))
            struct.pack_into("=I", fill, offsets[8], RING)
            bind_xdp(sock, socket.if_nametoindex("near"))
            obj.maps["sockets"][0] = sock
            with obj.programs["to_socket"].attach("near", mode="generic"):
                send("far")
                assert until(lambda: produced(received, offsets[0]) >= PRIME)
                assert produced(received, offsets[0]) == PRIME
            del obj.maps["sockets"][0]
            with pytest.raises(purebpf.KernelError, match="a XSKMAP does not support this"):
                list(obj.maps["sockets"])


def produced(ring, offset: int) -> int:
    return struct.unpack_from("=I", ring, offset)[0]


def bind_xdp(sock: socket.socket, ifindex: int) -> None:
    """bind(2) with an address that Python does not know; copy mode."""
    libc = ctypes.CDLL(None, use_errno=True)
    address = struct.pack("=HHIII", AF_XDP, 1 << 1, ifindex, 0, 0)
    assert libc.bind(sock.fileno(), address, len(address)) == 0, os.strerror(ctypes.get_errno())
