"""Each ioctl(2), mmap(2) and perf_event_open(2) of attach and of the readers fails in turn.

The substitute of tests/support/host/backends.py is for bpf(2); these calls do not pass it, but for
perf_event_open. Whatever fails: the documented error with that errno or a success where something
replaces it, no descriptor and no mapping left, and nothing that was made stays in the kernel.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

import purebpf
from purebpf.loader.features import features
from purebpf.loader.host import cpus
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.loader.rings.perf_buffer import PerfBuffer
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.observe.processes.sideband import SideBand
from purebpf.syscall import memory, perf_event
from purebpf.syscall.backend import replaced
from purebpf.tools.profile import ProfileOptions, Profiler
from tests.kernel.producers import Numbers, perf_producer, ring_producer
from tests.support import probes
from tests.support.host.backends import Call
from tests.support.host.faults import Accountant, alive, every_fault, slow_host

pytestmark = pytest.mark.needs("bpf", "perf_event", "tracefs")

DATA = Path(__file__).parents[2] / "data"
DOCUMENTED = (purebpf.KernelError, purebpf.NotSupportedError)

ERRORS = {
    "ioctl": (errno.EBADF, errno.EINVAL, errno.ENOTTY, errno.EPERM, errno.EEXIST, errno.ENOMEM),
    "mmap": (errno.EACCES, errno.EAGAIN, errno.EINVAL, errno.ENODEV, errno.ENOMEM, errno.EPERM),
    "perf_event_open": (errno.EACCES, errno.EMFILE, errno.EINVAL, errno.ENODEV, errno.ESRCH),
}


class Refusal(NamedTuple):
    """The call of that number, from 1, fails with `error`."""

    number: int
    error: int


class Edge:
    """Counts the calls that are not bpf(2), and lets one of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.refusal: Refusal | None = None
        counted = SimpleNamespace(ioctl=self._counting("ioctl", fcntl.ioctl))
        monkeypatch.setattr(perf_event, "fcntl", counted)
        mapping = vars(mmap) | {"mmap": self._counting("mmap", mmap.mmap)}
        monkeypatch.setattr(memory, "mmap", SimpleNamespace(**mapping))

    def begin(self, refusal: Refusal | None = None) -> None:
        self.calls.clear()
        self.refusal = refusal

    def asked(self, call: str) -> int | None:
        """The errno that this call is to fail with."""
        self.calls.append(call)
        refused = self.refusal is not None and self.refusal.number == len(self.calls)
        return self.refusal.error if self.refusal and refused else None

    def _counting(self, name: str, call: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object, **options: object) -> object:
            if error := self.asked(name):
                raise OSError(error, os.strerror(error))
            return call(*arguments, **options)

        return counted


def attached(*programs: str) -> None:
    spec = purebpf.read_object(DATA / "load_attach.bpf.o").only(*programs)
    with purebpf.load(spec) as obj:
        obj.attach()
        if "on_sample" in programs:
            with (
                purebpf.PerfEvent.sampling(frequency=99, pid=os.getpid()) as event,
                obj.programs["on_sample"].attach(event),
            ):
                event.read()


def ring() -> None:
    with ring_producer() as producer, RingBuffer(producer.source, Numbers()) as buffer:
        producer.send(3)
        assert list(buffer.read(0)) == [0, 1, 2]


def perf() -> None:
    entries = cpus.possible()[-1] + 1
    with perf_producer(entries) as producer, PerfBuffer(producer.source, Numbers()) as buffer:
        producer.send(3)
        assert list(buffer.read(0)) == [0, 1, 2]


def side() -> None:
    with SideBand() as band:
        band.drain()


def events() -> None:
    with PerfEvents.sampling(frequency=99) as found:
        found.disable()
        found.enable()
        found.read()


def profile() -> None:
    with Profiler(ProfileOptions(pids=(os.getpid(),), frequency=99)) as profiler:
        profiler.stop()


def global_variables() -> None:
    with purebpf.load(DATA / "load_attach.bpf.o") as obj:
        dict(obj.globals)


SCENES: dict[str, Callable[[], None]] = {
    "tracepoint": lambda: attached("on_tracepoint"),
    "sample": lambda: attached("on_sample"),
    "ring": ring,
    "perf buffer": perf,
    "side band": side,
    "perf events": events,
    "globals": global_variables,
    "profiler": profile,
}


@pytest.fixture(autouse=True)
def _ask_anew() -> Iterator[None]:
    features.forget()
    yield
    features.forget()


@pytest.mark.parametrize(
    ("scene", "links"),
    [
        pytest.param(
            scene,
            links,
            id=f"{scene}-{'links' if links else 'no links'}",
            marks=() if links or scene != "profiler" else pytest.mark.nightly,
        )
        for scene in SCENES
        for links in (True, False)
    ],
)
def test_every_error_of_every_call(
    scene: str, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    edge = Edge(monkeypatch)

    def decide(call: Call) -> int | None:
        if call.command == "perf_event_open":
            return edge.asked("perf_event_open")
        return errno.EINVAL if call.command == "BPF_LINK_CREATE" and not links else None

    def act(refusal: Refusal | None = None) -> tuple[Exception | None, set[tuple[str, int]]]:
        features.forget()
        monkeypatch.setattr(purebpf.PerfEvent, "_counts_lost", True)
        edge.begin(refusal)
        substitute = Accountant()
        substitute._decide = decide
        with replaced(substitute):
            try:
                SCENES[scene]()
            except DOCUMENTED as error:
                return error, substitute.made
        return None, substitute.made

    error, made = act()
    assert error is None
    calls = list(edge.calls)
    assert calls
    before = probes.descriptors(), mappings()
    refused = 0
    met: set[str] = set()
    for number, call in enumerate(calls, 1):
        errors = ERRORS[call]
        if slow_host() or (call in met and not every_fault()):
            errors = (errors[number % len(errors)],)
        met.add(call)
        for chosen in errors:
            error, more = act(Refusal(number, chosen))
            made |= more
            refused += error is not None
            told = f"call {number}, {call}: {errno.errorcode[chosen]}"
            assert (probes.descriptors(), mappings()) == before, told
            if isinstance(error, purebpf.KernelError):
                assert error.errno == chosen, f"{told}: {error}"
    assert refused
    assert not alive(made)


def mappings() -> list[str]:
    """What this process has mapped of the kernel's: rings, events, maps."""
    rows = (line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines())
    return [row[5] for row in rows if len(row) == 6 and row[5].startswith("anon_inode:")]
