"""The meaning of section names: the SEC() table of libbpf 1.8 and its matching rules.

`find_section("tracepoint/sched/sched_switch")` gives the definition of `tracepoint`, the target
`sched/sched_switch`, and whether the program is loaded without being asked for. The numbers are
enum bpf_prog_type and enum bpf_attach_type of include/uapi/linux/bpf.h.
"""

from __future__ import annotations

from purebpf.tuples import NamedTuple

BPF_F_SLEEPABLE = 1 << 4
BPF_F_XDP_HAS_FRAGS = 1 << 5


class SecDef(NamedTuple):
    """One kind of program section.

    Attributes:
        prefix: the section name up to, and without, the `/` before the target.
        type: enum bpf_prog_type.
        attach_type: enum bpf_attach_type, sent as expected_attach_type.
        attach: the way to attach: "kprobe", "tracepoint", "xdp", "cgroup"..., or "" when such a
            program is only ever test-run.
        extras: a target may follow: `prefix/target`.
        auto: attaching needs nothing but that target.
        sleepable: load with BPF_F_SLEEPABLE.
        frags: load with BPF_F_XDP_HAS_FRAGS.
        attach_type_optional: on a kernel that refuses attach_type, 0 does too.
        btf_prefix: the target is a BTF type named btf_prefix + target; None when it is not.
    """

    prefix: str
    type: int
    attach_type: int
    attach: str
    extras: bool = False
    auto: bool = False
    sleepable: bool = False
    frags: bool = False
    attach_type_optional: bool = False
    btf_prefix: str | None = None

    @property
    def flags(self) -> int:
        """The prog_flags of BPF_PROG_LOAD that the section asks for."""
        return BPF_F_SLEEPABLE * self.sleepable | BPF_F_XDP_HAS_FRAGS * self.frags


class SectionMeaning(NamedTuple):
    """The meaning of a section name.

    `target` is the text behind the prefix of a section that has a target, else "". `autoload` is
    False for `SEC("?...")`.
    """

    definition: SecDef
    target: str
    autoload: bool


def find_section(name: str) -> SectionMeaning | None:
    """The definition that fits a section name best, or None.

    The longest prefix wins: `cgroup/sock_create` is not `cgroup/sock`. A definition without a
    target also matches with a tail that does not continue a word (`socket/2`, `xdp_prog`,
    `classifier1`), as libbpf did before 1.0 and cilium/ebpf does; the tail means nothing.
    """
    plain = name.removeprefix("?")
    autoload = plain == name
    candidate, target = plain, ""
    while candidate:
        definition = DEFINITIONS.get(candidate)
        if definition is not None and (definition.extras or not target):
            return SectionMeaning(definition, target, autoload)
        candidate = candidate.rpartition("/")[0]
        target = plain[len(candidate) + 1 :]
    lenient = [
        definition
        for definition in SECTIONS
        if not definition.extras
        and plain.startswith(definition.prefix)
        and not plain[len(definition.prefix)].isalpha()
    ]
    if not lenient:
        return None
    return SectionMeaning(max(lenient, key=lambda d: len(d.prefix)), "", autoload)


# fmt: off
SECTIONS: tuple[SecDef, ...] = (
    SecDef("socket", 1, 0, "socket"),
    SecDef("sk_reuseport/migrate", 21, 40, "reuseport"),
    SecDef("sk_reuseport", 21, 39, "reuseport"),
    SecDef("kprobe", 2, 0, "kprobe", extras=True, auto=True),
    SecDef("uprobe", 2, 0, "uprobe", extras=True, auto=True),
    SecDef("uprobe.s", 2, 0, "uprobe", extras=True, auto=True, sleepable=True),
    SecDef("kretprobe", 2, 0, "kprobe", extras=True, auto=True),
    SecDef("uretprobe", 2, 0, "uprobe", extras=True, auto=True),
    SecDef("uretprobe.s", 2, 0, "uprobe", extras=True, auto=True, sleepable=True),
    SecDef("kprobe.multi", 2, 42, "kprobe_multi", extras=True, auto=True),
    SecDef("kretprobe.multi", 2, 42, "kprobe_multi", extras=True, auto=True),
    SecDef("kprobe.session", 2, 56, "kprobe_session", extras=True, auto=True),
    SecDef("uprobe.multi", 2, 48, "uprobe_multi", extras=True, auto=True),
    SecDef("uretprobe.multi", 2, 48, "uprobe_multi", extras=True, auto=True),
    SecDef("uprobe.session", 2, 57, "uprobe_multi", extras=True, auto=True),
    SecDef("uprobe.multi.s", 2, 48, "uprobe_multi", extras=True, auto=True, sleepable=True),
    SecDef("uretprobe.multi.s", 2, 48, "uprobe_multi", extras=True, auto=True, sleepable=True),
    SecDef("uprobe.session.s", 2, 57, "uprobe_multi", extras=True, auto=True, sleepable=True),
    SecDef("ksyscall", 2, 0, "ksyscall", extras=True, auto=True),
    SecDef("kretsyscall", 2, 0, "ksyscall", extras=True, auto=True),
    SecDef("usdt", 2, 0, "usdt", extras=True, auto=True),
    SecDef("usdt.s", 2, 0, "usdt", extras=True, auto=True, sleepable=True),
    SecDef("tc/ingress", 3, 46, "tcx"),
    SecDef("tc/egress", 3, 47, "tcx"),
    SecDef("tcx/ingress", 3, 46, "tcx"),
    SecDef("tcx/egress", 3, 47, "tcx"),
    SecDef("tc", 3, 0, "tc"),
    SecDef("classifier", 3, 0, "tc"),
    SecDef("action", 4, 0, "tc"),
    SecDef("netkit/primary", 3, 54, "netkit"),
    SecDef("netkit/peer", 3, 55, "netkit"),
    SecDef("tracepoint", 5, 0, "tracepoint", extras=True, auto=True),
    SecDef("tp", 5, 0, "tracepoint", extras=True, auto=True),
    SecDef("tracepoint.s", 5, 0, "tracepoint", extras=True, auto=True, sleepable=True),
    SecDef("tp.s", 5, 0, "tracepoint", extras=True, auto=True, sleepable=True),
    SecDef("raw_tracepoint", 17, 0, "raw_tracepoint", extras=True, auto=True),
    SecDef("raw_tp", 17, 0, "raw_tracepoint", extras=True, auto=True),
    SecDef("raw_tracepoint.s", 17, 0, "raw_tracepoint", extras=True, auto=True, sleepable=True),
    SecDef("raw_tp.s", 17, 0, "raw_tracepoint", extras=True, auto=True, sleepable=True),
    SecDef("raw_tracepoint.w", 24, 0, "raw_tracepoint", extras=True, auto=True),
    SecDef("raw_tp.w", 24, 0, "raw_tracepoint", extras=True, auto=True),
    SecDef("tp_btf", 26, 23, "trace", extras=True, auto=True, btf_prefix="btf_trace_"),
    SecDef("tp_btf.s", 26, 23, "trace", extras=True, auto=True,
           sleepable=True, btf_prefix="btf_trace_"),
    SecDef("fentry", 26, 24, "trace", extras=True, auto=True, btf_prefix=""),
    SecDef("fmod_ret", 26, 26, "trace", extras=True, auto=True, btf_prefix=""),
    SecDef("fexit", 26, 25, "trace", extras=True, auto=True, btf_prefix=""),
    SecDef("fentry.s", 26, 24, "trace", extras=True, auto=True, sleepable=True, btf_prefix=""),
    SecDef("fmod_ret.s", 26, 26, "trace", extras=True, auto=True, sleepable=True, btf_prefix=""),
    SecDef("fexit.s", 26, 25, "trace", extras=True, auto=True, sleepable=True, btf_prefix=""),
    SecDef("fsession", 26, 58, "trace", extras=True, auto=True, btf_prefix=""),
    SecDef("fsession.s", 26, 58, "trace", extras=True, auto=True, sleepable=True, btf_prefix=""),
    SecDef("fsession.multi", 26, 61, "tracing_multi", extras=True, auto=True),
    SecDef("fsession.multi.s", 26, 61, "tracing_multi", extras=True, auto=True, sleepable=True),
    SecDef("fentry.multi", 26, 59, "tracing_multi", extras=True, auto=True),
    SecDef("fexit.multi", 26, 60, "tracing_multi", extras=True, auto=True),
    SecDef("fentry.multi.s", 26, 59, "tracing_multi", extras=True, auto=True, sleepable=True),
    SecDef("fexit.multi.s", 26, 60, "tracing_multi", extras=True, auto=True, sleepable=True),
    SecDef("freplace", 28, 0, "freplace", extras=True, auto=True, btf_prefix=""),
    SecDef("lsm", 29, 27, "lsm", extras=True, auto=True, btf_prefix="bpf_lsm_"),
    SecDef("lsm.s", 29, 27, "lsm", extras=True, auto=True, sleepable=True, btf_prefix="bpf_lsm_"),
    SecDef("lsm_cgroup", 29, 43, "cgroup", extras=True, btf_prefix="bpf_lsm_"),
    SecDef("iter", 26, 28, "iter", extras=True, auto=True, btf_prefix="bpf_iter_"),
    SecDef("iter.s", 26, 28, "iter", extras=True, auto=True,
           sleepable=True, btf_prefix="bpf_iter_"),
    SecDef("syscall", 31, 0, "", sleepable=True),
    SecDef("xdp.frags/devmap", 6, 33, "xdp", frags=True),
    SecDef("xdp/devmap", 6, 33, "xdp"),
    SecDef("xdp.frags/cpumap", 6, 35, "xdp", frags=True),
    SecDef("xdp/cpumap", 6, 35, "xdp"),
    SecDef("xdp.frags", 6, 37, "xdp", frags=True),
    SecDef("xdp", 6, 37, "xdp", attach_type_optional=True),
    SecDef("perf_event", 7, 0, "perf_event"),
    SecDef("lwt_in", 10, 0, "lwt"),
    SecDef("lwt_out", 11, 0, "lwt"),
    SecDef("lwt_xmit", 12, 0, "lwt"),
    SecDef("lwt_seg6local", 19, 0, "lwt"),
    SecDef("sockops", 13, 3, "cgroup", attach_type_optional=True),
    SecDef("sk_skb/stream_parser", 14, 4, "sockmap", attach_type_optional=True),
    SecDef("sk_skb/stream_verdict", 14, 5, "sockmap", attach_type_optional=True),
    SecDef("sk_skb/verdict", 14, 38, "sockmap", attach_type_optional=True),
    SecDef("sk_skb", 14, 0, "sockmap"),
    SecDef("sk_msg", 16, 7, "sockmap", attach_type_optional=True),
    SecDef("lirc_mode2", 20, 16, "lirc", attach_type_optional=True),
    SecDef("flow_dissector", 22, 17, "netns", attach_type_optional=True),
    SecDef("cgroup_skb/ingress", 8, 0, "cgroup", attach_type_optional=True),
    SecDef("cgroup_skb/egress", 8, 1, "cgroup", attach_type_optional=True),
    SecDef("cgroup/skb", 8, 0, "cgroup"),
    SecDef("cgroup/sock_create", 9, 2, "cgroup"),
    SecDef("cgroup/sock_release", 9, 34, "cgroup"),
    SecDef("cgroup/sock", 9, 2, "cgroup", attach_type_optional=True),
    SecDef("cgroup/post_bind4", 9, 12, "cgroup"),
    SecDef("cgroup/post_bind6", 9, 13, "cgroup"),
    SecDef("cgroup/bind4", 18, 8, "cgroup"),
    SecDef("cgroup/bind6", 18, 9, "cgroup"),
    SecDef("cgroup/connect4", 18, 10, "cgroup"),
    SecDef("cgroup/connect6", 18, 11, "cgroup"),
    SecDef("cgroup/connect_unix", 18, 49, "cgroup"),
    SecDef("cgroup/sendmsg4", 18, 14, "cgroup"),
    SecDef("cgroup/sendmsg6", 18, 15, "cgroup"),
    SecDef("cgroup/sendmsg_unix", 18, 50, "cgroup"),
    SecDef("cgroup/recvmsg4", 18, 19, "cgroup"),
    SecDef("cgroup/recvmsg6", 18, 20, "cgroup"),
    SecDef("cgroup/recvmsg_unix", 18, 51, "cgroup"),
    SecDef("cgroup/getpeername4", 18, 29, "cgroup"),
    SecDef("cgroup/getpeername6", 18, 30, "cgroup"),
    SecDef("cgroup/getpeername_unix", 18, 52, "cgroup"),
    SecDef("cgroup/getsockname4", 18, 31, "cgroup"),
    SecDef("cgroup/getsockname6", 18, 32, "cgroup"),
    SecDef("cgroup/getsockname_unix", 18, 53, "cgroup"),
    SecDef("cgroup/sysctl", 23, 18, "cgroup"),
    SecDef("cgroup/getsockopt", 25, 21, "cgroup"),
    SecDef("cgroup/setsockopt", 25, 22, "cgroup"),
    SecDef("cgroup/dev", 15, 6, "cgroup", attach_type_optional=True),
    SecDef("struct_ops", 27, 0, "struct_ops", extras=True),
    SecDef("struct_ops.s", 27, 0, "struct_ops", extras=True, sleepable=True),
    SecDef("sk_lookup", 30, 36, "netns"),
    SecDef("netfilter", 32, 45, "netfilter"),
)
# fmt: on

DEFINITIONS = {definition.prefix: definition for definition in SECTIONS}
"""The same by prefix."""
