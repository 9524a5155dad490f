"""What the verifier does for programs that walk user stacks, on each kernel: little enough."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from purebpf.abi.bpf import bpf_cmd
from purebpf.loader.load.load import load
from purebpf.loader.load.object import Object
from purebpf.observe.instruments import offcpu_tracer
from purebpf.spec import ObjectSpec
from purebpf.syscall.backend import Attr, KernelBackend, replaced
from purebpf.tools import offcpu, profile, wall
from purebpf.tools.profile import sampling
from tests.support.host.faults import slow_host

pytestmark = pytest.mark.needs("bpf", "perf_event", "vmlinux_btf", "x86_64")
_STATS = 4
"""BPF_LOG_STATS: how many instructions were processed."""
_MOST_PROCESSED = 120_000
_MOST_S = 0.3
_EMULATED = 30
"""How much slower a machine is that is emulated, at most."""

SESSIONS = {
    "profile": lambda mode: profile.Profiler(profile.ProfileOptions(call_graph=mode)),
    "offcpu": lambda mode: offcpu.OffCpu(offcpu.OffCpuOptions(call_graph=mode)),
    "wall": lambda mode: wall.Wall(wall.WallOptions(call_graph=mode)),
    "profile --async": lambda mode: profile.Profiler(
        profile.ProfileOptions(call_graph=mode, async_tasks=True)
    ),
    "wall --async": lambda mode: wall.Wall(wall.WallOptions(call_graph=mode, async_tasks=True)),
}


class TimedBackend(KernelBackend):
    """The kernel's substitute; `spent_s` is the CPU time of loading programs, refused ones too."""

    spent_s = 0.0

    def bpf(self, command: int, attr: Attr, size: int) -> int:
        began = time.thread_time()
        result = super().bpf(command, attr, size)
        if command == bpf_cmd.BPF_PROG_LOAD:
            self.spent_s += time.thread_time() - began
        return result


@pytest.mark.parametrize("mode", ["auto", "fp"])
@pytest.mark.parametrize("command", SESSIONS)
def test_the_verifier_is_done_soon(
    command: str,
    mode: str,
    monkeypatch: pytest.MonkeyPatch,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    loaded: list[Object] = []

    def load_with_log(spec: ObjectSpec, **keywords: object) -> Object:
        loaded.append(load(spec, log_level=_STATS, **keywords))
        return loaded[-1]

    for room in (sampling, offcpu_tracer):
        monkeypatch.setattr(room, "load", load_with_log)
    substitute = TimedBackend()
    with replaced(substitute), SESSIONS[command](mode):
        logs = [program.log for each in loaded for program in each.programs.values()]
    processed = sum(int(count) for log in logs for count in re.findall(r"processed (\d+)", log))
    record_testsuite_property(
        f"verifier: {command} {mode}",
        f"{processed} instructions, {1e3 * substitute.spent_s:.1f} ms",
    )
    assert 0 < processed < _MOST_PROCESSED
    assert substitute.spent_s < _MOST_S * (_EMULATED if slow_host() else 1)
