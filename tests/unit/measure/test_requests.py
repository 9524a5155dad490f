"""A narrower request has the options of the wider one."""

from __future__ import annotations

from typing import Any

import pytest

from purebpf.measure.latency import Request as LatencyRequest
from purebpf.measure.requests import narrow
from purebpf.measure.sched_trace import Request
from purebpf.tools.offcpu.request import OffCpuOptions
from purebpf.tools.offcpu.session import _request as offcpu_request
from purebpf.tools.wall.request import WallOptions
from purebpf.tools.wall.session import _request as wall_request

SHARED: dict[str, Any] = {
    "pids": (1,),
    "tids": (2,),
    "cpus": (0,),
    "cgroup": "/c",
    "duration_s": 5.0,
    "hash_storage_size": 7,
    "stack_storage_size": 9,
}


LACKING = ("by", "unit_ns", "groups", "include_idle", "interval_s", "times")


def test_fields_come_by_name_and_others_keep_their_defaults() -> None:
    source = OffCpuOptions(pids=(7,))
    made = narrow(LatencyRequest, source, defaults=LACKING, measure="on_cpu", cpus=(3,))
    assert made == LatencyRequest("on_cpu", pids=(7,), cpus=(3,))


def test_a_field_without_a_value_is_an_error() -> None:
    with pytest.raises(TypeError, match="Request from OffCpuOptions: check times"):
        narrow(LatencyRequest, OffCpuOptions(), defaults=LACKING[:-1], measure="on_cpu")


@pytest.mark.parametrize("name", ["pids", "measure", "misspelt"])
def test_a_default_that_is_not_needed_is_an_error(name: str) -> None:
    with pytest.raises(TypeError, match=f"check {name}"):
        narrow(LatencyRequest, OffCpuOptions(), defaults=(*LACKING, name), measure="on_cpu")


@pytest.mark.parametrize("name", SHARED)
def test_every_shared_option_reaches_the_tracer(name: str) -> None:
    value = SHARED[name]
    assert getattr(offcpu_request(OffCpuOptions(**{name: value})), name) == value
    assert getattr(wall_request(WallOptions(**{name: value})), name) == value


def test_what_offcpu_translates() -> None:
    options = OffCpuOptions(
        user_threads_only=True, kernel_stacks_only=True, states="D", threshold_ms=2, max_us=3,
        min_us=1, waker=True,
    )  # fmt: skip
    assert offcpu_request(options) == Request(
        kernel_threads=False, user_stacks=False, states="D", threshold_ns=2_000_000, min_ns=1000,
        max_ns=3999, split=True, wakers=True,
    )  # fmt: skip


def test_what_wall_translates() -> None:
    assert wall_request(WallOptions(kernel_threads_only=True, frequency=11)) == Request(
        user_threads=False, states="RSDITtPWG", split=True, on_cpu=True, frequency=11
    )
