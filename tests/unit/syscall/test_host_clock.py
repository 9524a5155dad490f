"""The kernel's clocks, seen from a time namespace."""

from __future__ import annotations

import time

import pytest

from purebpf.syscall import host_clock

OFFSETS = "monotonic           100000         7\nboottime           -86400 500000000\n"


def test_offsets_are_seconds_and_nanoseconds() -> None:
    assert host_clock.parse_offsets(OFFSETS) == {
        "monotonic": 100_000_000_000_007,
        "boottime": -86_399_500_000_000,
    }


def test_the_clock_of_the_kernel_lacks_the_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = host_clock.parse_offsets(OFFSETS)
    monkeypatch.setattr(host_clock, "_offset_ns", offsets.__getitem__)
    monkeypatch.setattr(time, "monotonic_ns", lambda: 100_000_000_000_050)
    assert host_clock.monotonic_ns() == 43
    assert host_clock.own_s(host_clock.monotonic_ns()) == pytest.approx(100_000.00000005)
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _: 0)
    assert host_clock.boottime_ns() == 86_399_500_000_000
