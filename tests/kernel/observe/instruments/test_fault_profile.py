"""The profiler's start and end, when any one call of theirs fails."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator

import pytest

import purebpf
from purebpf.errors import errno_name
from purebpf.loader.features import features
from purebpf.syscall.backend import KernelBackend, replaced
from purebpf.tools.profile import ProfileOptions, Profiler
from tests.support import probes
from tests.support.host.faults import Accountant, Fault, alive, faults

pytestmark = pytest.mark.needs("bpf", "perf_event")

DOCUMENTED = (purebpf.KernelError, purebpf.NotSupportedError)
ABSENT = "BPF_MAP_LOOKUP_ELEM", errno.ENOENT  # a KeyError, as of every map
OPTIONS = ProfileOptions(pids=(os.getpid(),), frequency=999)


@pytest.fixture(autouse=True)
def _ask_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(purebpf.PerfEvent, "_counts_lost", True)
    features.forget()
    yield
    features.forget()


def wait_for_a_sample(profiler: Profiler) -> None:
    """Until there is something to be read, without a call that might be the one to fail."""
    stats = profiler._sampling.loaded.maps["stats"]
    deadline = time.monotonic() + 60
    with replaced(KernelBackend()):
        while not any(each.counted for each in stats[0]):
            assert time.monotonic() < deadline, "no sample in a minute"
            sum(range(10_000))


def use(fault: Fault | None = None) -> tuple[Accountant, Exception | None]:
    """Profile this process for a moment; the substitute, and what was raised."""
    features.forget()
    with replaced(Accountant(fault)) as substitute:
        assert isinstance(substitute, Accountant)
        try:
            with Profiler(OPTIONS) as profiler:
                wait_for_a_sample(profiler)
                profile = profiler.stop()
                assert profile.total == profile.about["counted"] > 0
        except DOCUMENTED as error:
            return substitute, error
        except KeyError as error:
            assert fault is not None
            assert (fault.command, fault.error) == ABSENT, fault
            return substitute, error
    return substitute, None


@pytest.mark.nightly  # 20 s; by day test_fault_edges.py has a profiler
def test_every_error_of_every_call() -> None:
    substitute, error = use()
    assert error is None
    made = set(substitute.made)
    assert {kind for kind, _ in made} >= {"map", "program"}
    before = probes.descriptors()
    tried = list(faults(substitute.commands, one_in=5))
    refused = 0
    for fault in tried:
        substitute, error = use(fault)
        made |= substitute.made
        refused += error is not None
        assert probes.descriptors() == before, fault
        if isinstance(error, purebpf.KernelError):
            assert error.errno == fault.error, f"{fault}: {error}"
            assert errno_name(fault.error) in str(error), fault
    assert 0 < refused < len(tried)  # a walk that is refused gives way to frame pointers
    assert not alive(made)
