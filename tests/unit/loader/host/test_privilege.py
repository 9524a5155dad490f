"""Advice about EPERM, for hosts that are only described."""

from __future__ import annotations

import errno
import resource
import sys

import pytest

from purebpf.errors import KernelError
from purebpf.loader.host import memlock, privilege
from purebpf.loader.host.privilege import Host, advice

EVERYTHING = (1 << 41) - 1
ADMIN, PERFMON, BPF, NET = 1 << 21, 1 << 38, 1 << 39, 1 << 12


def host(**changed) -> Host:
    ordinary = Host(
        capabilities=EVERYTHING,
        last_capability=40,
        uid_map="0 0 4294967295",
        seccomp=0,
        lockdown="none",
        unprivileged_bpf_disabled="2",
        perf_event_paranoid="2",
        memlock=None,
        command="/opt/venv/bin/python -P -m purebpf profile -p 1",
    )
    return ordinary._replace(**changed)


def test_a_missing_capability_is_named_with_what_was_read_and_the_real_python():
    why, fix = advice(host(capabilities=0), "CAP_BPF", "CAP_PERFMON")
    assert why == (
        "this process lacks CAP_BPF and CAP_PERFMON (CapEff 0x0); "
        "kernel.perf_event_paranoid is 2; kernel.unprivileged_bpf_disabled is 2"
    )
    assert fix == "run it as root: sudo /opt/venv/bin/python -P -m purebpf profile -p 1"


def test_only_what_is_missing_is_named():
    why, _ = advice(host(capabilities=BPF), "CAP_BPF", "CAP_PERFMON")
    assert "lacks CAP_PERFMON (" in why


@pytest.mark.parametrize("needed", [("CAP_BPF",), ("CAP_PERFMON",), ("CAP_BPF", "CAP_PERFMON")])
def test_cap_sys_admin_replaces_both(needed):
    why, _ = advice(host(capabilities=ADMIN), *needed)
    assert "lacks" not in why


def test_cap_sys_admin_does_not_stand_in_for_cap_net_admin():
    why, _ = advice(host(capabilities=ADMIN), "CAP_BPF", "CAP_NET_ADMIN")
    assert "lacks CAP_NET_ADMIN (" in why
    assert "lacks" not in advice(host(capabilities=ADMIN | NET), "CAP_BPF", "CAP_NET_ADMIN")[0]


def test_a_kernel_without_cap_bpf_wants_cap_sys_admin():
    why, _ = advice(host(capabilities=NET, last_capability=37), "CAP_BPF", "CAP_PERFMON")
    assert "lacks CAP_SYS_ADMIN (" in why


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"uid_map": "0 1000 1"}, "user namespace"),
        ({"lockdown": "confidentiality"}, "lockdown: confidentiality"),
        ({"seccomp": 2}, "Seccomp 2"),
        ({"memlock": 65536}, "RLIMIT_MEMLOCK is 65536 bytes"),
        ({}, "security module"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_with_every_capability_the_next_reason_is_looked_for(changed, reason):
    why, _ = advice(host(**changed), "CAP_BPF")
    assert reason in why


def test_a_user_namespace_may_have_rights_delegated():
    assert "load(..., token=)" in advice(host(uid_map="0 1000 1"), "CAP_BPF")[1]


def test_memlock_does_not_concern_perf_events():
    assert "MEMLOCK" not in advice(host(memlock=65536), "CAP_PERFMON")[0]


def test_an_error_keeps_its_call_and_errno_and_names_this_python():
    explained = privilege.explain_eperm(
        KernelError("bpf(BPF_MAP_CREATE)", errno.EPERM), "map 'm'", "CAP_BPF"
    )
    assert str(explained).startswith("map 'm': bpf(BPF_MAP_CREATE) failed with EPERM. ")
    assert (explained.call, explained.errno) == ("bpf(BPF_MAP_CREATE)", errno.EPERM)
    assert sys.executable in privilege.read_host().command


@pytest.mark.parametrize(
    ("limits", "allowed", "expected", "left"),
    [
        ((64, 128), "all", True, (-1, -1)),
        ((64, 128), "soft", True, (128, 128)),
        ((128, 128), "soft", False, (128, 128)),
        ((-1, -1), "all", False, (-1, -1)),
        ((64, 128), "none", False, (64, 128)),
    ],
)
def test_memlock_is_raised_as_far_as_allowed(monkeypatch, limits, allowed, expected, left):
    state = [limits]

    def setrlimit(_, wanted):
        if allowed == "none" or (allowed == "soft" and wanted[1] != limits[1]):
            raise ValueError("not allowed to raise maximum limit")
        state[0] = wanted

    monkeypatch.setattr(resource, "getrlimit", lambda _: state[0])
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    monkeypatch.setattr(resource, "RLIM_INFINITY", -1)
    assert memlock.raise_memlock() is expected
    assert state[0] == left
