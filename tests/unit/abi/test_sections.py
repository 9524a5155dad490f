"""The SEC() table: complete, unambiguous, and matched as libbpf does or more leniently."""

from __future__ import annotations

import pytest

from purebpf.abi import bpf
from purebpf.abi.sections import SECTIONS, find_section


def test_the_table_is_that_of_libbpf_1_8() -> None:
    assert len(SECTIONS) == 116
    assert len({definition.prefix for definition in SECTIONS}) == 116


@pytest.mark.parametrize("definition", SECTIONS, ids=lambda d: d.prefix)
def test_every_prefix_finds_itself(definition) -> None:
    assert find_section(definition.prefix) == (definition, "", True)
    found = find_section(f"{definition.prefix}/some/target")
    if definition.extras:
        assert found == (definition, "some/target", True)
    else:
        assert found is not None
        assert found.target == ""


@pytest.mark.parametrize(
    ("section", "program_type", "attach_type"),
    [
        ("socket", "SOCKET_FILTER", None),
        ("kprobe/x", "KPROBE", None),
        ("kretprobe.multi/x*", "KPROBE", "BPF_TRACE_KPROBE_MULTI"),
        ("kprobe.session/x", "KPROBE", "BPF_TRACE_KPROBE_SESSION"),
        ("uprobe.multi.s//bin/x:f", "KPROBE", "BPF_TRACE_UPROBE_MULTI"),
        ("usdt/x", "KPROBE", None),
        ("tc/ingress", "SCHED_CLS", "BPF_TCX_INGRESS"),
        ("action", "SCHED_ACT", None),
        ("netkit/peer", "SCHED_CLS", "BPF_NETKIT_PEER"),
        ("tp/a/b", "TRACEPOINT", None),
        ("raw_tp/a", "RAW_TRACEPOINT", None),
        ("raw_tracepoint.w/a", "RAW_TRACEPOINT_WRITABLE", None),
        ("tp_btf/a", "TRACING", "BPF_TRACE_RAW_TP"),
        ("fentry/f", "TRACING", "BPF_TRACE_FENTRY"),
        ("fexit.s/f", "TRACING", "BPF_TRACE_FEXIT"),
        ("fmod_ret/f", "TRACING", "BPF_MODIFY_RETURN"),
        ("freplace/f", "EXT", None),
        ("lsm/h", "LSM", "BPF_LSM_MAC"),
        ("lsm_cgroup/h", "LSM", "BPF_LSM_CGROUP"),
        ("iter/task", "TRACING", "BPF_TRACE_ITER"),
        ("syscall", "SYSCALL", None),
        ("xdp.frags/devmap", "XDP", "BPF_XDP_DEVMAP"),
        ("xdp", "XDP", "BPF_XDP"),
        ("perf_event", "PERF_EVENT", None),
        ("lwt_seg6local", "LWT_SEG6LOCAL", None),
        ("sockops", "SOCK_OPS", "BPF_CGROUP_SOCK_OPS"),
        ("sk_skb/verdict", "SK_SKB", "BPF_SK_SKB_VERDICT"),
        ("sk_msg", "SK_MSG", "BPF_SK_MSG_VERDICT"),
        ("lirc_mode2", "LIRC_MODE2", "BPF_LIRC_MODE2"),
        ("flow_dissector", "FLOW_DISSECTOR", "BPF_FLOW_DISSECTOR"),
        ("cgroup_skb/egress", "CGROUP_SKB", "BPF_CGROUP_INET_EGRESS"),
        ("cgroup/sock_release", "CGROUP_SOCK", "BPF_CGROUP_INET_SOCK_RELEASE"),
        ("cgroup/connect_unix", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UNIX_CONNECT"),
        ("cgroup/sysctl", "CGROUP_SYSCTL", "BPF_CGROUP_SYSCTL"),
        ("cgroup/setsockopt", "CGROUP_SOCKOPT", "BPF_CGROUP_SETSOCKOPT"),
        ("cgroup/dev", "CGROUP_DEVICE", "BPF_CGROUP_DEVICE"),
        ("sk_reuseport/migrate", "SK_REUSEPORT", "BPF_SK_REUSEPORT_SELECT_OR_MIGRATE"),
        ("struct_ops/f", "STRUCT_OPS", None),
        ("sk_lookup", "SK_LOOKUP", "BPF_SK_LOOKUP"),
        ("netfilter", "NETFILTER", "BPF_NETFILTER"),
    ],
)
def test_numbers_are_those_of_the_kernel(section, program_type, attach_type) -> None:
    found = find_section(section)
    assert found is not None
    assert found.definition.type == bpf.bpf_prog_type[f"BPF_PROG_TYPE_{program_type}"]
    expected = bpf.bpf_attach_type[attach_type] if attach_type else 0
    assert found.definition.attach_type == expected


@pytest.mark.parametrize(
    ("section", "prefix", "target"),
    [
        ("kprobe.multi/vfs_*", "kprobe.multi", "vfs_*"),
        ("uprobe//bin/bash:readline", "uprobe", "/bin/bash:readline"),
        ("cgroup/sock_create", "cgroup/sock_create", ""),
        ("cgroup/sock", "cgroup/sock", ""),
        ("cgroup/sock/2", "cgroup/sock", ""),
        ("sk_reuseport/migrate", "sk_reuseport/migrate", ""),
        ("socket/2", "socket", ""),
        ("socket1", "socket", ""),
        ("xdp_prog", "xdp", ""),
        ("classifier-in", "classifier", ""),
    ],
)
def test_the_longest_prefix_wins(section, prefix, target) -> None:
    found = find_section(section)
    assert found is not None
    assert (found.definition.prefix, found.target) == (prefix, target)


@pytest.mark.parametrize(
    "section", ["", "?", ".text", "kprobes/x", "kprobefoo", "tcx/ingres", "tcpdump", "socketfoo"]
)
def test_other_names_are_unknown(section) -> None:
    assert find_section(section) is None


def test_a_question_mark_only_says_not_to_load() -> None:
    found = find_section("?tracepoint/sched/sched_switch")
    assert found is not None
    assert (found.definition.prefix, found.target, found.autoload) == (
        "tracepoint",
        "sched/sched_switch",
        False,
    )


def test_a_section_sets_the_flags_of_its_programs() -> None:
    flags = {definition.prefix: definition.flags for definition in SECTIONS}
    assert flags["xdp.frags"] == 1 << 5  # BPF_F_XDP_HAS_FRAGS
    assert flags["lsm.s"] == flags["syscall"] == 1 << 4  # BPF_F_SLEEPABLE
    assert flags["xdp"] == 0


def test_names_of_btf_targets() -> None:
    prefixes = {definition.prefix: definition.btf_prefix for definition in SECTIONS}
    assert prefixes["tp_btf"] == "btf_trace_"
    assert prefixes["lsm.s"] == prefixes["lsm_cgroup"] == "bpf_lsm_"
    assert prefixes["iter"] == "bpf_iter_"
    assert prefixes["fentry"] == prefixes["freplace"] == ""
    assert prefixes["kprobe"] is prefixes["fentry.multi"] is None


def test_only_those_with_a_target_attach_by_themselves() -> None:
    assert all(definition.extras for definition in SECTIONS if definition.auto)
    manual = {d.prefix for d in SECTIONS if d.extras and not d.auto}
    assert manual == {"lsm_cgroup", "struct_ops", "struct_ops.s"}
