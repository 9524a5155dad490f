"""Needs are proven or printed, and a test that leaks fails."""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support import probes

_LIVE = ("tests/kernel/", "tests/commands/")
_skipped: Counter[str] = Counter()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose needs are not met; under PUREBPF_REQUIRE=kernel, fail it."""
    for marker in item.iter_markers("needs"):
        for feature in marker.args:
            if reason := probes.missing(feature):
                if os.environ.get("PUREBPF_REQUIRE") == "kernel":
                    pytest.fail(f"needs {feature}, required here: {reason}")
                _skipped[f"{feature}: {reason}"] += 1
                pytest.skip(f"needs {feature}: {reason}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Group the skips by what was missing."""
    if _skipped:
        terminalreporter.section("skipped for want of")
        for reason, count in _skipped.most_common():
            terminalreporter.line(f"{count:5d}  {reason}")


@pytest.fixture(autouse=True)
def _nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """A live test ends with the descriptors, programs, maps and links it began with.

    Programs, maps and links are the whole machine's, so they are compared only where
    PUREBPF_EXCLUSIVE_HOST=1 says that nobody else loads BPF meanwhile (CI does).
    """
    if not request.node.nodeid.startswith(_LIVE) or probes.missing("bpf"):
        yield
        return
    exclusive = os.environ.get("PUREBPF_EXCLUSIVE_HOST") == "1"
    before = probes.descriptors()
    objects = probes.kernel_objects() if exclusive else {}
    yield
    leaked = _leaks(before, objects)
    deadline = time.monotonic() + 2
    while leaked and time.monotonic() < deadline:  # the kernel frees programs and maps after RCU
        gc.collect()
        time.sleep(0.02)
        leaked = _leaks(before, objects)
    assert not leaked, f"left behind: {leaked}"


def _leaks(before: dict[str, str], objects: dict[str, set[int]]) -> list[str]:
    now = probes.descriptors()
    found = [f"fd {fd} -> {what}" for fd, what in now.items() if before.get(fd) != what]
    if objects:
        for kind, ids in probes.kernel_objects().items():
            found += [f"{kind} {number}" for number in sorted(ids - objects[kind])]
    return found
