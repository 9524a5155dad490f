"""The verifier takes the programs of every signature, with task storage and without it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from purebpf import objects
from purebpf.abi import syscalls
from purebpf.loader.load.load import load
from purebpf.loader.load.object import Object
from purebpf.observe.instruments import sched_compat
from purebpf.tools.trace import loading
from purebpf.tools.trace.calls import CALLS
from purebpf.tools.trace.kinds import PATH_ROOM
from tests.support.nightly import by_day

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")

NAMES = [*(line.split()[0] for line in CALLS.splitlines()), *syscalls.table("i386").values()]


@contextmanager
def tracer(*, task_storage: bool) -> Iterator[Object]:
    """The kernel half, not attached."""
    spec = objects.spec("trace")
    spec = sched_compat.adapt(spec.only(*spec.programs))
    if not task_storage:
        spec = sched_compat.without_task_storage(spec).resize(tasks_by_address=16)
    with load(spec) as loaded:
        yield loaded


@pytest.mark.parametrize("string_size", by_day([1, 32, 1024], [32, 1024]))
def test_every_signature_loads(string_size: int) -> None:
    with (
        tracer(task_storage=True) as kernel_half,
        loading.load_programs(kernel_half, NAMES, string_size) as made,
    ):
        assert len(made.programs) > 100
        assert max(program.info.verified_insns for program in made.programs.values()) < 100_000
        openat = loading.numbers_of(["openat"])["openat"]
        assert kernel_half.maps["at_start"][openat]
        assert PATH_ROOM < 6144


def test_signatures_load_without_task_storage() -> None:
    names = ("openat", "execve", "sendmsg", "accept", "readv", "getdents64")
    with (
        tracer(task_storage=False) as kernel_half,
        loading.load_programs(kernel_half, names, 32) as made,
    ):
        assert made.programs
