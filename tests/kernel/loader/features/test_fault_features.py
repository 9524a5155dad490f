"""What a kernel has is not hidden by a limit that this process may raise."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator

import pytest

from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.loader.features import features
from purebpf.syscall.backend import replaced
from tests.support.host.backends import Call, Interposer

pytestmark = pytest.mark.needs("bpf")

LOW = 65536
"""Bytes: the default of RLIMIT_MEMLOCK for long, which Linux before 5.11 counts BPF against."""


@pytest.fixture(autouse=True)
def _low_limit() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    assert before[1] != LOW, "there must be something to raise"
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (LOW, before[1]))
    features.forget()
    yield
    resource.setrlimit(resource.RLIMIT_MEMLOCK, before)
    features.forget()


def refused_below_the_limit(_call: Call) -> int | None:
    """As such a kernel does when the limit is used up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return errno.EPERM if soft != hard else None


def test_the_limit_is_raised_and_the_kernel_asked_again() -> None:
    with replaced(Interposer(refused_below_the_limit)):
        assert features.have_map_type(bpf_map_type.BPF_MAP_TYPE_QUEUE)
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    assert soft == hard


def test_the_same_for_programs() -> None:
    with replaced(Interposer(refused_below_the_limit)):
        assert features.have_program_type(bpf_prog_type.BPF_PROG_TYPE_SOCKET_FILTER)
