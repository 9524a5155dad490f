"""Needs are proven or printed, and a test that leaks fails."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from tests.support import expected, probes, traces
from tests.support.host.faults import slow_host
from tests.support.usage import Usage

_LIVE = ("tests/kernel/", "tests/commands/")
_PATIENCE_S = 60 if slow_host() else 10
"""Until the kernel has freed what was closed: 600 programs take it 3 s on a busy machine."""
_LIMIT_S = float(os.environ.get("PUREBPF_TEST_LIMIT_S", "0"))
_USAGE = pytest.StashKey[Usage]()


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to run on a kernel of the matrix that nothing is known of."""
    if (series := expected.kernel()) and series not in expected.KNOWN:
        raise pytest.UsageError(f"PUREBPF_KERNEL={series} has no row in tests/support/expected.py")
    # not for the test runs that tests start
    if place := os.environ.pop("PUREBPF_FEATURES", ""):
        config.stash[_USAGE] = Usage(Path(place))
        config.stash[_USAGE].watch()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started by `sh -c "... &"`
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave what this kernel has, and what the tests used of it, for tests.vm.support."""
    if (usage := config.stash.get(_USAGE, None)) is not None:
        usage.write()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests for the night, and in guests those that prove the same on every kernel.

    PUREBPF_NIGHTLY=1 runs the tests for the night as well, PUREBPF_NIGHTLY=only no others.
    PUREBPF_BEYOND_CI=1 runs the tests that need something which the CI machine does not have.
    """
    markers = []
    night = os.environ.get("PUREBPF_NIGHTLY")
    if not night:
        markers.append("nightly")
    if expected.kernel() in expected.GUESTS:
        markers.append("any_kernel")  # the host has run it
    beyond = os.environ.get("PUREBPF_BEYOND_CI")
    left_out = [
        item
        for item in items
        if any(map(item.get_closest_marker, markers))
        or (night == "only" and not item.get_closest_marker("nightly"))
        or (beyond and not _needs(item) & expected.NOT_ON_CI)
    ]
    items[:] = [item for item in items if item not in set(left_out)]
    config.hook.pytest_deselected(items=left_out)


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """End a test that waits for what never comes: it fails with the line that it waits in."""

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
    deadline = time.monotonic() + _PATIENCE_S
    while (found := _left(others)) and time.monotonic() < deadline:
        time.sleep(0.02)  # the kernel frees programs and maps after an RCU grace period
    leaked += found
    assert not leaked, f"left behind: {leaked}"


def _open(before: dict[str, str]) -> list[str]:
    now = probes.descriptors()
    return [f"fd {fd} -> {what}" for fd, what in now.items() if before.get(fd) != what]


def _left(before: dict[str, set[str]]) -> list[str]:
    if not before:
        return []
    now = traces.left()
    return [f"{kind} {name}" for kind in now for name in sorted(now[kind] - before[kind])]
