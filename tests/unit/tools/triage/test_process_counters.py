"""CPU times of processes belong to the measured time, and not to the time between two readings."""

from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace

import pytest

from purebpf.tools.triage import process_counters
from purebpf.tools.triage.process_counters import ProcessCounters

BETWEEN_S, MEASURED_S = 20.0, 10.0


def test_cpu_times_are_scaled_to_the_measured_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(process_counters, "time", SimpleNamespace(monotonic=lambda: now[0]))
    before_s = time.process_time()
    counters = ProcessCounters(frozenset())
    begun_s = time.process_time()
    while time.process_time() < begun_s + 0.5:
        pass
    spent_s = time.process_time() - begun_s
    now[0] += BETWEEN_S
    processes, threads = counters.finish(MEASURED_S)
    at_most_s = (time.process_time() - before_s) / 2
    process = next(one for one in processes if one.pid == os.getpid())
    thread = next(one for one in threads if one.tid == threading.get_native_id())
    assert 0.4 * spent_s < process.cpu_s <= at_most_s + 0.02
    assert 0.4 * spent_s < thread.cpu_s <= at_most_s + 0.02
