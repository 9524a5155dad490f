"""What live tests share."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.syscall import bpf
from tests.kernel.map_specs import BTF
from tests.kernel.net_devices import Mailbox
from tests.support.host import network


@pytest.fixture
def bpffs(tmp_path: Path) -> Iterator[Path]:
    """A bpf file system of this test's own."""
    libc = ctypes.CDLL(None, use_errno=True)
    where = os.fsencode(tmp_path)
    if libc.mount(b"bpf", where, b"bpf", 0, None):
        pytest.fail(f"mount(bpf): {os.strerror(ctypes.get_errno())}")
    yield tmp_path
    assert libc.umount2(where, 2) == 0  # MNT_DETACH


@pytest.fixture(autouse=True)
def _what_one_test_learns_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels do not change under a process; backends that refuse make it believe that they did."""
    monkeypatch.setattr(PerfEvent, "_counts_lost", PerfEvent._counts_lost)


@pytest.fixture
def own_network() -> Iterator[None]:
    """A network namespace of this test's own."""
    with network.namespace():
        yield


@pytest.fixture
def lo(own_network: None) -> int:
    """The loopback's number."""
    return socket.if_nametoindex("lo")


@pytest.fixture
def box(own_network: None) -> Iterator[Mailbox]:
    """What counts the packets that come through the loopback."""
    with Mailbox() as mailbox:
        yield mailbox


@pytest.fixture(scope="module")
def btf_fd() -> Iterator[int]:
    """The types of `tests.kernel.map_specs` in the kernel."""
    with bpf.btf_load(BTF.data) as descriptor:
        yield descriptor.fileno()
