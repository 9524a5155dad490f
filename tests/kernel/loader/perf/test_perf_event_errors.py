"""When the kernel refuses an event, the error says what was read on this host."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest

from purebpf.abi.perf import perf_event_sample_format
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.host import cpus
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.loader.perf.probe import Probe
from purebpf.loader.perf.probe_event import open_probe
from purebpf.syscall import pmu
from tests.support import probes
from tests.support.host import capabilities

pytestmark = pytest.mark.needs("perf_event")

NOBODY = 65534


def sysctl(name: str) -> str:
    return Path(f"/proc/sys/kernel/{name}").read_text().strip()


def test_too_high_a_frequency_names_the_limit_in_force() -> None:
    limit = int(sysctl("perf_event_max_sample_rate"))
    with pytest.raises(KernelError, match=f"perf_event_max_sample_rate, which is {limit}"):
        PerfEvent.sampling(limit + 1, event="cpu-clock", pid=0)


def test_a_sample_field_of_another_kernel_is_named() -> None:
    fields = perf_event_sample_format.PERF_SAMPLE_IP | 1 << 62
    with pytest.raises(KernelError, match=r"samples do not have the field of bit 62\. do without"):
        PerfEvent.sampling(99, event="cpu-clock", pid=0, sample_type=fields)


@pytest.mark.parametrize("field", ["data", "code"])
def test_the_size_of_a_page_is_there_or_named(field: str) -> None:
    bit = perf_event_sample_format[f"PERF_SAMPLE_{field.upper()}_PAGE_SIZE"]
    if probes.missing("page_sizes"):
        with pytest.raises(KernelError, match=f"have no page size of the {field} .Linux 5.11"):
            PerfEvent.sampling(99, event="cpu-clock", pid=0, sample_type=bit)
    else:
        PerfEvent.sampling(99, event="cpu-clock", pid=0, sample_type=bit).close()


def test_no_such_process() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(KernelError, match=f"no process has PID {child}") as caught:
        PerfEvent.software("task-clock", pid=child)
    assert caught.value.errno == errno.ESRCH


def test_no_such_cpu() -> None:
    absent = cpus.possible()[-1] + 1
    online = Path("/sys/devices/system/cpu/online").read_text().strip()
    with pytest.raises(KernelError, match=f"CPU {absent} is offline \\(online: {online}\\)"):
        PerfEvent.software("cpu-clock", cpu=absent)


def test_every_process_on_every_cpu_wants_an_event_for_each_cpu() -> None:
    with pytest.raises(KernelError, match="one event cannot cover all processes on all CPUs"):
        PerfEvent.software("cpu-clock")


def test_out_of_descriptors_names_the_limit_and_leaves_nothing_open() -> None:
    before = probes.descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reserve = [os.open("/dev/null", os.O_RDONLY) for _ in range(64)]
    room = max(reserve) + 1
    for fd in reserve:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (room, hard))
    try:
        with pytest.raises(KernelError, match=rf"{room} open files .RLIMIT_NOFILE") as caught:
            PerfEvents.open("dummy", cpus=[0] * (room + 1))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert caught.value.errno == errno.EMFILE
    assert caught.value.fix == f"ulimit -n {hard}"
    assert probes.descriptors().keys() == before.keys()


def test_without_privilege_the_capability_and_the_sysctl_are_named() -> None:
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        try:
            PerfEvent.software("cpu-clock", cpu=0).close()
        except KernelError as error:
            os.write(write_end, f"{error.errno} {error}".encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    assert told.startswith((f"{errno.EACCES} ", f"{errno.EPERM} "))
    assert "lacks CAP_PERFMON" in told
    assert f"kernel.perf_event_paranoid is {sysctl('perf_event_paranoid')}" in told


def test_a_directory_that_is_not_a_cgroup_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="is not a directory of a cgroup file system") as caught:
        PerfEvent.software("cpu-clock", cgroup=str(tmp_path), cpu=0)
    assert caught.value.errno == errno.EBADF
    with pytest.raises(KernelError, match="absent"):
        PerfEvent.software("cpu-clock", cgroup=str(tmp_path / "absent"), cpu=0)


@pytest.mark.parametrize("name", ["no-such-event", "rxyz", "max", "L1-dcache-loads-misses", ""])
def test_names_that_are_not_events_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="unknown perf event"):
        PerfEvent.open(name, pid=0)


def test_an_event_of_another_type_and_fields_that_are_none() -> None:
    with pytest.raises(ValueError, match="cpu-cycles is not an event of PERF_TYPE_SOFTWARE"):
        PerfEvent.software("cpu-cycles", pid=0)
    with pytest.raises(TypeError, match="does not have a field 'wake_up'"):
        PerfEvent.software("dummy", pid=0, wake_up=1)
    with pytest.raises(ValueError, match="disabled holds 1 bit"):
        PerfEvent.software("dummy", pid=0, disabled=2)


def test_numbers_that_the_kernel_would_cut_are_refused() -> None:
    for where in ({"cpu": 1 << 32}, {"pid": 1 << 32}, {"pid": 0, "cpu": -(1 << 32) - 1}):
        with pytest.raises(ValueError, match="does not fit in 4 bytes"):
            PerfEvent.software("cpu-clock", **where)
    with PerfEvent.software("cpu-clock", pid=0) as event:
        for period in (-1, 1 << 64):
            with pytest.raises(ValueError, match=f"a period must .*, not {period}"):
                event.set_period(period)


def test_a_ring_that_is_written_backward_is_not_read_forward() -> None:
    with (
        PerfEvent.software("page-faults", pid=0, write_backward=1) as event,
        pytest.raises(NotSupportedError, match="a backward ring"),
    ):
        event.map_ring()
    with pytest.raises(ValueError, match="closed"):
        next(event.records())


@pytest.mark.skipif(pmu.attribute("uprobe", "type") is None, reason="this kernel has no uprobe PMU")
def test_a_uprobe_that_wants_cap_sys_admin_says_so() -> None:
    """Since ba677dbe77af; on a kernel before, CAP_PERFMON is enough and the event opens."""
    probe = Probe("uprobe", os.fsencode(os.path.realpath("/bin/sh")), 0x1000, pid=0)
    text = ""
    with capabilities.without("sys_admin"):
        try:
            open_probe(probe).close()
        except KernelError as error:
            text = str(error)
    if not text:
        pytest.skip("this kernel opens uprobes with CAP_PERFMON")
    assert "perf_event_open failed with EACCES" in text
    assert "the uprobe PMU requires CAP_SYS_ADMIN since Linux 6.16 (commit ba677dbe77af)" in text
    assert "this process lacks it (CapEff 0x" in text
    assert "run it as root: sudo " in text
    assert 'or use SEC("uprobe.multi"), for which CAP_PERFMON is enough' in text
    assert "exclude_kernel" not in text
    assert "lockdown" not in text
