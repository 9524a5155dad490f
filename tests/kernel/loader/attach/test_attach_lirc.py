"""Infrared receivers: programs see what rc-loopback sends to itself, pulse by pulse.

No kernel of Debian's has them; docs/testing.md says how one is built that has.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import purebpf
from tests.support.host import infrared, modules
from tests.support.programs.children import in_child

DATA = Path(__file__).parents[3] / "data"
SPEC = purebpf.read_object(DATA / "attach_lirc.bpf.o")
SIGNAL = (1013, 509, 1019)
"""A pulse, a space and a pulse, in microseconds."""
AFTER_ONE = {"pulses": 2, "pulses_us": 1013 + 1019, "spaces": 1, "spaces_us": 509, "ends": 1}
PATIENCE_S = 10
LIRC_SET_REC_MODE = 0x40046912
LIRC_MODE_SCANCODE = struct.pack("=I", 8)
SCANCODE = struct.Struct("=QHHIQ")  # struct lirc_scancode
RC_PROTO_NEC = 9

pytestmark = pytest.mark.needs("lirc")


@pytest.fixture
def device() -> Path:
    found = infrared.receiver()
    assert found is not None
    return found


@pytest.fixture
def obj() -> Iterator[purebpf.Object]:
    with purebpf.load(SPEC) as loaded:
        yield loaded


def counted(obj: purebpf.Object, name: str = "seen") -> dict[str, int]:
    found: Any = obj.globals[name]
    return {each: getattr(found, each) for each in AFTER_ONE}


def times(count: int) -> dict[str, int]:
    return {name: each * count for name, each in AFTER_ONE.items()}


def transmit(device: Path, obj: purebpf.Object, count: int, name: str = "seen") -> None:
    """Send SIGNAL, and wait until a program has seen the end of its `count`th."""
    infrared.send(device, *SIGNAL)
    deadline = time.monotonic() + PATIENCE_S
    while counted(obj, name)["ends"] < count and time.monotonic() < deadline:
        time.sleep(0.01)  # the receiver hands over from a thread of the kernel
    assert counted(obj, name) == times(count)


def attached(device: Path) -> list[int]:
    return [each.id for each in purebpf.Program.query(device, "lirc_mode2").programs]


def test_pulses_and_spaces_are_counted_while_it_is_attached_and_again(
    obj: purebpf.Object, device: Path
):
    with obj.programs["count_too"].attach(device):
        for turn in (1, 2):
            with obj.programs["count"].attach(device):
                transmit(device, obj, turn)
            transmit(device, obj, 2 * turn, "seen_by_other")
            assert counted(obj) == times(turn)


def test_those_attached_are_listed_in_order(obj: purebpf.Object, device: Path):
    one, two = obj.programs["count"], obj.programs["count_too"]
    assert attached(device) == []
    with two.attach(device), one.attach(device):
        assert attached(device) == [two.info.id, one.info.id]
        with device.open("rb") as file:
            assert len(purebpf.Program.query(file, "lirc_mode2").programs) == 2
    assert attached(device) == []


def test_the_same_program_is_attached_once(obj: purebpf.Object, device: Path):
    program = obj.programs["count"]
    with program.attach(device):
        with pytest.raises(purebpf.AttachError, match="already attached there") as caught:
            program.attach(device)
        assert caught.value.errno == errno.EEXIST
        transmit(device, obj, 1)


def test_no_more_than_the_kernel_runs(obj: purebpf.Object, device: Path):
    links, objects = [], []
    try:
        for _ in range(64):
            objects.append(purebpf.load(SPEC.only("count")))
            links.append(objects[-1].programs["count"].attach(device))
        assert len(attached(device)) == 64
        with pytest.raises(purebpf.AttachError, match="already has 64 programs"):
            obj.programs["count"].attach(device)
    finally:
        for each in [*links, *objects]:
            each.close()
    assert attached(device) == []


def test_an_open_device_may_be_closed_by_its_owner(obj: purebpf.Object, device: Path):
    with device.open("r+b", buffering=0) as file:
        link = obj.programs["count"].attach(file)
    with link:
        transmit(device, obj, 1)
    assert attached(device) == []


def test_a_device_opened_for_reading_and_a_missing_capability_have_errors_of_their_own(
    obj: purebpf.Object, device: Path
):
    with (
        device.open("rb") as file,
        pytest.raises(purebpf.AttachError, match="opened read-only") as caught,
    ):
        obj.programs["count"].attach(file)
    assert caught.value.errno == errno.EPERM


def test_a_target_that_is_not_a_receiver_is_refused(obj: purebpf.Object):
    with pytest.raises(purebpf.AttachError, match="the target is not a raw lirc"):
        obj.programs["count"].attach("/dev/null")
    with pytest.raises(purebpf.NotSupportedError, match="or the target is of another kind"):
        purebpf.Program.query("/dev/null", "lirc_mode2")


def test_a_child_that_closes_it_leaves_it_attached(obj: purebpf.Object, device: Path):
    with obj.programs["count"].attach(device) as link:
        in_child(link.close)
        transmit(device, obj, 1)


def test_a_key_is_pressed(obj: purebpf.Object, device: Path):
    with obj.programs["press"].attach(device), device.open("r+b", buffering=0) as keys:
        fcntl.ioctl(keys, LIRC_SET_REC_MODE, LIRC_MODE_SCANCODE)
        infrared.send(device, 1009)
        _, _, protocol, _, code = SCANCODE.unpack(keys.read(SCANCODE.size))
    assert (protocol, code) == (RC_PROTO_NEC, 0x1234)


@pytest.mark.needs("guest")  # nothing else uses the receiver there
def test_a_receiver_that_goes_away_takes_its_programs_along(obj: purebpf.Object, device: Path):
    link = obj.programs["count"].attach(device)
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        removed = libc.delete_module(infrared.MODULE.encode(), os.O_NONBLOCK)
        assert removed == 0, os.strerror(ctypes.get_errno())
        with pytest.raises(purebpf.KernelError, match=r"open\(.*ENOENT"):
            obj.programs["count"].attach(device)
        link.close()
    finally:
        modules.load(infrared.MODULE)
    with obj.programs["count"].attach(device):
        transmit(device, obj, 1)
