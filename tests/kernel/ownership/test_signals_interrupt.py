"""A signal with a handler that raises, at any moment of load and attach, leaves nothing behind."""

from __future__ import annotations

import gc
import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

import purebpf
from purebpf.syscall.backend import Attr, replaced
from tests.support import probes
from tests.support.host.faults import Accountant, alive
from tests.support.nightly import by_day

pytestmark = pytest.mark.needs("bpf", "perf_event", "tracefs", "vmlinux_btf")

DATA = Path(__file__).parents[2] / "data"
SPEC = purebpf.read_object(DATA / "load_attach.bpf.o").only(
    "on_tracepoint", "on_raw", "on_btf", "on_sample"
)


class Terminated(BaseException):
    """What a handler of SIGTERM might raise."""


class Interrupting(Accountant):
    """A substitute at which a signal arrives while the call of that number is in the kernel."""

    def __init__(self, number: int, what: signal.Signals) -> None:
        super().__init__()
        self._number = number
        self._what = what

    def bpf(self, command: int, attr: Attr, size: int) -> int:
        result = super().bpf(command, attr, size)
        self._arrive()
        return result

    def perf_event_open(self, attr: int, pid: int, cpu: int, group: int, flags: int) -> int:
        result = super().perf_event_open(attr, pid, cpu, group, flags)
        self._arrive()
        return result

    def _arrive(self) -> None:
        if len(self.calls) == self._number:
            signal.raise_signal(self._what)


@contextmanager
def raising_handlers() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, as it does in Python; SIGTERM something similar."""

    def terminate(_number: int, _frame: FrameType | None) -> None:
        raise Terminated

    before = (
        signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.signal(signal.SIGTERM, terminate),
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])


def use() -> None:
    with purebpf.load(SPEC) as obj:
        obj.attach()
        with (
            purebpf.PerfEvent.sampling(frequency=99, pid=os.getpid()) as event,
            obj.programs["on_sample"].attach(event),
        ):
            dict(obj.globals)


@pytest.mark.parametrize("what", by_day([signal.SIGINT, signal.SIGTERM], [signal.SIGINT]))
def test_a_handler_that_raises_after_any_call(what: signal.Signals) -> None:
    with replaced(Accountant()) as substitute:
        assert isinstance(substitute, Accountant)
        use()
    before = probes.descriptors()
    made = set(substitute.made)
    for number in range(1, len(substitute.commands) + 1):
        interrupted = Interrupting(number, what)
        with raising_handlers(), replaced(interrupted), warnings.catch_warnings():
            # an owner that had no time to be stored anywhere is collected
            warnings.simplefilter("ignore", ResourceWarning)
            with pytest.raises((KeyboardInterrupt, Terminated)):
                use()
            gc.collect()
        made |= interrupted.made
        assert probes.descriptors() == before, f"call {number}, {substitute.commands[number - 1]}"
    assert not alive(made)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_timer_that_raises_anywhere() -> None:
    """The same with real interruptions: of Python between the calls, and of the calls.

    One that comes inside a finaliser cannot leave it: Python prints it and goes on.
    """
    before = probes.descriptors()
    interrupted = 0

    def on_alarm(_number: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted += 1
        raise Terminated

    handler = signal.signal(signal.SIGALRM, on_alarm)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            delay_s = 0.0005
            while True:
                try:
                    signal.setitimer(signal.ITIMER_REAL, delay_s)
                    try:
                        use()
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                except Terminated:
                    delay_s *= 1.2
                else:
                    break  # it got through: later alarms come too late
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
        gc.collect()
    assert interrupted > 3
    assert probes.descriptors() == before
