"""Receivers of infrared light: what is asked of a kernel that has programs for them."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, cast

import pytest

import purebpf
from purebpf.abi.bpf import bpf_attach_type, bpf_cmd
from purebpf.abi.layouts import ATTR
from purebpf.loader.attach import lirc
from purebpf.loader.host import privilege
from purebpf.loader.programs.program import Program
from purebpf.syscall import backend

ALL_CAPABILITIES = privilege.Host(-1, 40, None, 0, None, "2", "3", None, "python")


class Receiver:
    """A kernel with one receiver: it notes what comes and goes, or answers with an error."""

    def __init__(self, answer: int = 0) -> None:
        self.answer = answer
        self.seen: list[tuple[bpf_cmd, dict[str, Any]]] = []

    def bpf(self, command: int, attr: backend.Attr, size: int) -> int:
        name = bpf_cmd(command)
        layout = ATTR["query" if name is bpf_cmd.BPF_PROG_QUERY else "prog_attach"]
        self.seen.append((name, layout.unpack(bytearray(attr)[:size])))
        return -self.answer


class Held:
    """What a loaded program is to an attachment."""

    name = "keys"

    def fileno(self) -> int:
        return self._fd

    def __init__(self) -> None:
        self._fd = os.open("/dev/null", os.O_RDONLY)


@pytest.fixture
def program() -> Any:
    held = Held()
    yield cast("Program", held)
    os.close(held.fileno())


@pytest.fixture
def device(tmp_path: Path) -> Path:
    path = tmp_path / "lirc0"
    path.touch()
    return path


def test_the_program_is_given_to_the_device_and_taken_back(program: Program, device: Path):
    kernel = Receiver()
    with backend.replaced(cast("Any", kernel)), lirc.attach(program, device) as link:
        (command, attr) = kernel.seen[0]
        assert command is bpf_cmd.BPF_PROG_ATTACH
        assert attr["attach_type"] == bpf_attach_type.BPF_LIRC_MODE2
        assert os.path.samestat(os.fstat(attr["target_fd"]), device.stat())
        assert os.get_blocking(attr["target_fd"])
        assert f"on lirc device {device}" in link.what
        given = attr
        link.close()
        (command, attr) = kernel.seen[1]
        assert command is bpf_cmd.BPF_PROG_DETACH
        assert [attr[each] for each in ("target_fd", "attach_bpf_fd", "attach_type")] == [
            given[each] for each in ("target_fd", "attach_bpf_fd", "attach_type")
        ]


def test_a_refusal_is_explained(program: Program, device: Path):
    with (
        backend.replaced(cast("Any", Receiver(errno.EINVAL))),
        pytest.raises(purebpf.AttachError, match=r"EINVAL\. the target is not a raw lirc device"),
    ):
        lirc.attach(program, device)


def test_a_device_opened_for_reading_and_a_missing_capability_have_errors_of_their_own(
    program: Program, device: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(privilege, "read_host", lambda: ALL_CAPABILITIES)
    with (
        device.open("rb") as file,
        backend.replaced(cast("Any", Receiver(errno.EPERM))),
        pytest.raises(purebpf.AttachError, match=r"EPERM\. the device was opened read-only"),
    ):
        lirc.attach(program, file)


def test_its_programs_are_asked_for(device: Path):
    kernel = Receiver(errno.ENODEV)
    with (
        backend.replaced(cast("Any", kernel)),
        pytest.raises(purebpf.KernelError, match="ENODEV"),
    ):
        purebpf.Program.query(device, "lirc_mode2")
    (command, attr) = kernel.seen[0]
    assert command is bpf_cmd.BPF_PROG_QUERY
    assert attr["attach_type"] == bpf_attach_type.BPF_LIRC_MODE2
    assert attr["prog_attach_flags"] == 0, "the kernel has none for receivers"


def test_a_target_that_is_not_a_device_is_refused(program: Program):
    with pytest.raises(purebpf.KernelError, match=r"open\(/dev/none\) failed with ENOENT"):
        lirc.attach(program, "/dev/none")
    with pytest.raises(TypeError, match="target required: a lirc device"):
        lirc.attach(program)
