"""Needs are proven or printed, and a test that leaks fails."""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support import expected, probes, traces

_LIVE = ("tests/kernel/", "tests/commands/")
_PATIENCE_S = 10
_skipped: Counter[str] = Counter()


def pytest_configure() -> None:
    """Refuse to run on a kernel of the matrix that nothing is known of."""
    if (series := expected.kernel()) and series not in expected.ABSENT:
        raise pytest.UsageError(f"PUREBPF_KERNEL={series} has no row in tests/support/expected.py")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose needs are not met, unless this kernel is known to meet them."""
    for marker in item.iter_markers("needs"):
        for feature in marker.args:
            if reason := probes.missing(feature):
                _fail_if_required(feature, reason)
                _skipped[f"{feature}: {reason}"] += 1
                pytest.skip(f"needs {feature}: {reason}")


def _fail_if_required(feature: str, reason: str) -> None:
    if os.environ.get("PUREBPF_REQUIRE") == "kernel":
        pytest.fail(f"needs {feature}, required here: {reason}")
    series = expected.kernel()
    if series and feature in expected.needs_of(series):
        pytest.fail(f"needs {feature}, which Linux {series} is known to have: {reason}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Group the skips by what was missing."""
    if _skipped:
        terminalreporter.section("skipped for want of")
        for reason, count in _skipped.most_common():
            terminalreporter.line(f"{count:5d}  {reason}")


@pytest.fixture(autouse=True)
def _nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """A live test ends with what it began with: descriptors, and what BPF leaves on a machine.

    The latter (tests/support/traces.py) belongs to everybody, so it is compared only where
    PUREBPF_EXCLUSIVE_HOST=1 says that nobody else loads BPF meanwhile (CI does).
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
