"""Every command under each way a kernel can be set to say less. Guests only: all is global."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.environment import commands_with, run, said, sysctl
from tests.support.host.privilege import least_user, run_as, worked

pytestmark = pytest.mark.needs("bpf", "perf_event", "guest", "setpriv", "mount_namespace")

LOSS_LINE = re.compile(r"^lost: ", re.MULTILINE)

CALLS = ("dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=200000")
"""A process that is in the kernel most of the time."""

FEW_CALLS = (*CALLS[:-1], "count=20000")

HOSTS = {
    "hardened": {
        "kernel.kptr_restrict": 2,
        "kernel.perf_event_paranoid": 4,
        "kernel.unprivileged_bpf_disabled": 2,
        "kernel.yama.ptrace_scope": 2,
        "net.core.bpf_jit_harden": 2,
    },
    "Debian": {"kernel.kptr_restrict": 1, "kernel.perf_event_paranoid": 3},
    "open": {
        "kernel.kptr_restrict": 0,
        "kernel.perf_event_paranoid": -1,
        "kernel.unprivileged_bpf_disabled": 0,
    },
}
hosts = pytest.mark.parametrize(("name", "host"), commands_with(HOSTS))


@contextmanager
def configured(host: str) -> Iterator[None]:
    """All of that host's settings; one that this kernel has not is left out."""
    with ExitStack() as stack:
        for name, value in HOSTS[host].items():
            if Path("/proc/sys", *name.split(".")).exists():
                stack.enter_context(sysctl(name, value))
        yield


@hosts
def test_root_is_not_hindered(name: str, host: str) -> None:
    with configured(host):
        result = run(name)
    assert result.returncode == 0, result.stderr
    assert LOSS_LINE.search(result.stderr)


@hosts
def test_two_capabilities_are_enough(name: str, host: str) -> None:
    with configured(host):
        assert worked(run_as(name, least_user(name)))


@hosts
def test_an_ordinary_user_sees_the_values_of_the_sysctls(name: str, host: str) -> None:
    with configured(host):
        result = run_as(name, "ordinary")
    text = said(result)
    assert (result.returncode, result.stdout) == (1, "")
    assert "this process lacks CAP_BPF and CAP_PERFMON (CapEff 0x0)" in text
    paranoid = HOSTS[host]["kernel.perf_event_paranoid"]
    assert f"; kernel.perf_event_paranoid is {paranoid}" in text
    if (disabled := HOSTS[host].get("kernel.unprivileged_bpf_disabled")) is not None:
        assert ("kernel.unprivileged_bpf_disabled is 2" in text) == (disabled == 2)
    assert ": run it as root: sudo " in text


def test_hidden_kernel_addresses_are_named_as_the_reason() -> None:
    with sysctl("kernel.kptr_restrict", 2):
        result = run("profile", "-F", "499", "-K", "--", *FEW_CALLS)
    assert result.returncode == 0, result.stderr
    assert (
        "kernel addresses are hidden: CAP_SYSLOG is missing, or kernel.kptr_restrict is 2"
        in said(result)
    )


def test_a_lower_stack_limit_is_reported() -> None:
    """Stacks are cut at the limit, and the loss line says how to raise it."""
    with sysctl("kernel.perf_event_max_stack", 2):
        result = run("profile", "-v", "-F", "499", "--", *FEW_CALLS)
    assert result.returncode == 0, result.stderr
    assert re.search(r" truncated=[1-9]", result.stderr)
    assert "reached 2 frames and lack their roots" in said(result)
    assert "sysctl kernel.perf_event_max_stack=127" in said(result)
