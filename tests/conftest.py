"""Needs are proven or printed, and a test that leaks fails."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import FrameType

import pytest

from tests.support import expected, probes, traces
from tests.support.host.faults import slow_host
from tests.support.lanes import Lane, held_by_others
from tests.support.usage import Usage

# to read the rewritten files of all tests takes a third of the time that it takes to rewrite them
sys.dont_write_bytecode = False

_LIVE = ("tests/kernel/", "tests/commands/")
_PATIENCE_S = 60 if slow_host() else 10
"""Until the kernel has freed what was closed: 600 programs take it 3 s on a busy machine."""
_SOON = 2
"""Looks at what is left, before it is asked who holds it, which takes longer."""
_LIMIT_S = float(os.environ.get("PUREBPF_TEST_LIMIT_S", "0"))
_USAGE = pytest.StashKey[Usage]()
_LANE = pytest.StashKey[Lane]()


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to run on a kernel of the matrix that nothing is known of."""
    if (series := expected.kernel()) and series not in expected.KNOWN:
        raise pytest.UsageError(f"PUREBPF_KERNEL={series} has no row in tests/support/expected.py")
    # not for the test runs that tests start
    if place := os.environ.pop("PUREBPF_FEATURES", ""):
        config.stash[_USAGE] = Usage(Path(place))
        config.stash[_USAGE].watch()
    if (lane := Lane.of_environment()) is not None:
        config.stash[_LANE] = lane
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started by `sh -c "... &"`
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave what this kernel has, and what the tests used of it, for tests.vm.support."""
    if (usage := config.stash.get(_USAGE, None)) is not None:
        usage.write()
    if (lane := config.stash.get(_LANE, None)) is not None:
        lane.close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests for the night, and in guests those that prove the same on every kernel.

    PUREBPF_NIGHTLY=1 runs the tests for the night as well, PUREBPF_NIGHTLY=only no others.
    PUREBPF_BY_DAY=6.12 names the guest that runs what the CI machine cannot; the others then run
    only the tests marked `guests_by_day`.
    """
    markers = []
    night = os.environ.get("PUREBPF_NIGHTLY")
    if not night:
        markers.append("nightly")
    if expected.kernel() in expected.GUESTS:
        markers.append("any_kernel")  # the host has run it
    by_day = os.environ.get("PUREBPF_BY_DAY")
    left_out = [
        item
        for item in items
        if any(map(item.get_closest_marker, markers))
        or (night == "only" and not item.get_closest_marker("nightly"))
        or (by_day and not _runs_by_day(item, proves_what_ci_lacks=expected.kernel() == by_day))
    ]
    items[:] = [item for item in items if item not in set(left_out)]
    config.hook.pytest_deselected(items=left_out)


def _runs_by_day(item: pytest.Item, *, proves_what_ci_lacks: bool) -> bool:
    """Return True if `.ci/run` runs it in this guest."""
    marker = item.get_closest_marker("guests_by_day")
    if marker is not None and (not marker.args or expected.kernel() in marker.args):
        return True
    return proves_what_ci_lacks and bool(_needs(item) & expected.NOT_ON_CI)


def _needs(item: pytest.Item) -> frozenset[str]:
    return frozenset(name for marker in item.iter_markers("needs") for name in marker.args)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test if its needs are not met, unless this kernel is known to meet them."""
    for marker in item.iter_markers("needs"):
        for feature in marker.args:
            if reason := probes.missing(feature):
                _fail_if_required(feature, reason)
                pytest.skip(f"needs {feature}: {reason}")
    if (usage := item.config.stash.get(_USAGE, None)) is not None:
        usage.names.update(*(marker.args for marker in item.iter_markers("needs")))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests that are left to this process, where it shares them with another."""
    lane = session.config.stash.get(_LANE, None)
    if lane is None or session.testsfailed or session.config.option.collectonly:
        return None
    lane.run(session)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Wait for the turn of a test, and end one that waits for what never comes."""
    lane = item.config.stash.get(_LANE, None)
    with lane.turn(item) if lane else nullcontext():
        return (yield from _limited())


def _limited() -> Iterator[None]:
    """A test that takes too long fails with the line that it waits in."""

    def fail(_number: int, _frame: FrameType | None) -> None:
        pytest.fail(f"still running after {_LIMIT_S:g} s")

    if not _LIMIT_S:
        return (yield)
    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, _LIMIT_S, _LIMIT_S)  # again: a test may be tried again
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _fail_if_required(feature: str, reason: str) -> None:
    if os.environ.get("PUREBPF_REQUIRE") == "kernel":
        pytest.fail(f"needs {feature}, required here: {reason}")
    series = expected.kernel()
    if series and feature in expected.needs_of(series):
        pytest.fail(f"needs {feature}, which Linux {series} is known to have: {reason}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the skipped tests by reason."""
    skipped = Counter(
        report.longrepr[2].removeprefix("Skipped: ").removeprefix("needs ")
        for report in terminalreporter.getreports("skipped")
        if isinstance(report.longrepr, tuple)
    )
    if skipped:
        terminalreporter.section("skipped")
        for reason, count in skipped.most_common():
            terminalreporter.line(f"{count:5d}  {reason}")


@pytest.fixture(autouse=True)
def _nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """A live test ends with what it began with: descriptors, and what BPF leaves on a machine.

    The latter (tests/support/traces.py) belongs to the whole machine, so it is compared only where
    PUREBPF_EXCLUSIVE_HOST=1 says that nothing else loads BPF in that time (CI does).
    """
    if not request.node.nodeid.startswith(_LIVE) or probes.missing("bpf"):
        yield
        return
    exclusive = os.environ.get("PUREBPF_EXCLUSIVE_HOST") == "1"
    before = probes.descriptors()
    others = traces.left() if exclusive else {}
    yield
    if _open(before):
        gc.collect()
    leaked = _open(before)
    leaked += _stays(others, request.config.stash.get(_LANE, None))
    assert not leaked, f"left behind: {leaked}"


def _open(before: dict[str, str]) -> list[str]:
    now = probes.descriptors()
    return [f"fd {fd} -> {what}" for fd, what in now.items() if before.get(fd) != what]


def _stays(before: dict[str, set[str]], lane: Lane | None) -> list[str]:
    """New things that are still there when the kernel has had its time to free them.

    A test that runs beside this one makes things as well. A process of its lane holds them, or
    they are gone when it has ended.
    """
    beside = lane.end() if lane else set()
    deadline = time.monotonic() + _PATIENCE_S
    found = _left(before)
    looks = 0
    while found and (time.monotonic() < deadline or (lane and beside & lane.others())):
        time.sleep(0.02 if looks < _SOON else 0.1)
        found &= _left(before)  # programs and maps go after an RCU grace period
        looks += 1
        if looks > _SOON:
            found -= {f"{kind} {name}" for kind, held in held_by_others().items() for name in held}
    return sorted(found)


def _left(before: dict[str, set[str]]) -> set[str]:
    if not before:
        return set()
    now = traces.left()
    return {f"{kind} {name}" for kind in now for name in now[kind] - before[kind]}
