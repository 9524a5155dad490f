"""The end of a script that is attached to many places."""

from __future__ import annotations

import os
import time

import pytest

import purebpf
from purebpf.observe.script.events import MapPrinted

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf"),
    pytest.mark.any_kernel,  # guests before 5.12 lack atomic exchange
]

_TEXT = f"tracepoint:syscalls:sys_enter_*at* /pid == {os.getpid()}/ {{ @[probe] = count(); }}"
_STAT = "tracepoint:syscalls:sys_enter_newfstatat"


def test_maps_are_printed_before_the_events_of_tracepoints_are_closed() -> None:
    with purebpf.run_script(_TEXT) as running:
        running.stop()
        began_s = time.monotonic()
        (printed,) = [event for event in running if isinstance(event, MapPrinted)]
        printed_s = time.monotonic()
    closed_s = time.monotonic()
    assert printed.name == "@"
    # each of 70 events takes an RCU grace period, and so did each of 70 links, one by one
    assert printed_s - began_s < max(0.3, 0.5 * (closed_s - printed_s))


def test_no_program_runs_once_the_maps_are_printed() -> None:
    with purebpf.run_script(_TEXT) as running:
        for _ in range(101):
            os.stat(".")
        running.stop()
        assert [*running]
        counts = running.maps["@"]
        for _ in range(101):
            os.stat(".")
        assert running.maps["@"] == counts
    assert counts[_STAT] >= 101
