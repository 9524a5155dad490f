"""What a test may need of its machine, probed by trying it, never by uid or kernel version.

Each probe returns "" when the thing is there and otherwise the reason it is not, which is what
the skip prints.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.errors import NotSupportedError
from purebpf.loader.features import features
from tests.support import probe_kernel as kernel
from tests.support import probe_machine as machine
from tests.support.host import infrared, loops
from tests.support.probe_calls import descriptors, kernel_objects, mounts

__all__ = ["KERNEL", "PROBES", "descriptors", "kernel_objects", "missing", "mounts"]

PROBES: dict[str, Callable[[], str]] = {
    "atomic_fetch": kernel.atomic_fetch,
    "bpf": kernel.bpf,
    "callbacks": kernel.kernel_functions("bpf_for_each_map_elem"),
    "current_task_btf": kernel.kernel_functions("bpf_get_current_task_btf"),
    "memory_arguments": kernel.memory_arguments,
    "memory_by_cgroup": kernel.memory_by_cgroup,
    "bpffs": machine.file_system("bpf"),
    "cgroup2": machine.cgroup2,
    "cgroup_order": kernel.cgroup_order,
    "cgroup_unix": kernel.in_btf("BPF_CGROUP_UNIX_CONNECT"),
    "guest": machine.guest,
    "hotplug": machine.hotplug,
    "mount_namespace": machine.namespace("--mount"),
    "net_namespace": machine.namespace("--net"),
    "pid_namespace": machine.namespace("--pid", "--fork", "--mount-proc"),
    "page_sizes": kernel.page_sizes,
    "perf_event": kernel.perf_event,
    "pinned_by_users": machine.pinned_by_users,
    "vmlinux_btf": kernel.vmlinux_btf,
    "tracefs": machine.tracefs,
    "clsact": machine.clsact,
    "netfilter_link": kernel.in_btf("BPF_LINK_TYPE_NETFILTER"),
    "netkit": machine.link_kind("netkit"),
    "tc": machine.program_on_path("tc"),
    "tcx": kernel.in_btf("BPF_LINK_TYPE_TCX"),
    "veth": machine.link_kind("veth"),
    "bloom_filter": kernel.map_type(bpf_map_type.BPF_MAP_TYPE_BLOOM_FILTER),
    "inode_storage": kernel.inode_storage,
    "task_storage": kernel.map_type(bpf_map_type.BPF_MAP_TYPE_TASK_STORAGE),
    "function_addresses": kernel.asked(
        lambda: features.have_helper(
            bpf_prog_type.BPF_PROG_TYPE_KPROBE, bpf_func_id.BPF_FUNC_get_func_ip
        )
    ),
    "user_ring_buffer": kernel.kernel_functions("bpf_user_ringbuf_drain"),
    "clang": machine.program_on_path("clang-19"),
    "browser": machine.browser,
    "axe": machine.axe,
    "bpftool": machine.program_on_path("bpftool"),
    "kernel_config": kernel.kernel_config,
    "kernel_variables": kernel.kernel_variables,
    "lirc": infrared.missing,
    "ext4": loops.missing_ext4,
    "loop_device": loops.missing,
    "mkfs.ext4": machine.program_on_path("mkfs.ext4"),
    "libbpf-tools": machine.tools_of_libbpf,
    "lsm_cgroup": kernel.lsm_cgroup,
    "modules": kernel.loadable_modules,
    "exact_raw_tracepoints": kernel.exact_raw_tracepoints,
    "kprobes": kernel.kprobes,
    "kernel_variable_types": kernel.kernel_variable_types,
    "sk_skb_verdict": kernel.in_btf("BPF_SK_SKB_VERDICT"),
    "sockmap_link": kernel.in_btf("BPF_LINK_TYPE_SOCKMAP"),
    "syscall_programs": kernel.syscall_programs,
    "function_cookies": kernel.kernel_functions("bpf_get_attach_cookie_tracing"),
    "no_kprobes": lambda: "" if kernel.kprobes() else "this kernel has kprobes",
    "kprobe_multi": kernel.kernel_functions("kprobe_multi_link_handler"),
    "kprobe_session": kernel.kernel_functions("kprobe_multi_link_handler", "bpf_session_is_return"),
    "uprobe_multi": kernel.kernel_functions("uprobe_multi_link_handler"),
    "uprobe_session": kernel.in_btf("BPF_TRACE_UPROBE_SESSION"),
    "route_programs": kernel.in_btf("bpf_lwt_prog"),
    "segment_programs": kernel.in_btf("seg6_bpf_srh_state"),
    "tracing_multi": kernel.in_btf("BPF_TRACE_FENTRY_MULTI"),
    "no_tracing_multi": lambda: (
        "" if kernel.in_btf("BPF_TRACE_FENTRY_MULTI")() else "this kernel has fentry.multi"
    ),
    "tracing_session": kernel.in_btf("BPF_TRACE_FSESSION"),
    "exclusive_maps": kernel.asked(features.have_exclusive_maps),
    "insn_array": kernel.map_type(bpf_map_type.BPF_MAP_TYPE_INSN_ARRAY),
    "no_insn_array": lambda: (
        ""
        if kernel.map_type(bpf_map_type.BPF_MAP_TYPE_INSN_ARRAY)()
        else "this kernel has jump tables"
    ),
    "rhash": kernel.map_type(bpf_map_type.BPF_MAP_TYPE_RHASH),
    "task_pt_regs": kernel.kernel_functions("bpf_task_pt_regs"),
    "freplace": kernel.freplace,
    "trampolines": kernel.trampolines,
    "dummy_struct_ops": kernel.in_btf("bpf_dummy_ops"),
    "struct_ops": kernel.in_btf("bpf_struct_ops_tcp_congestion_ops"),
    "exceptions": kernel.in_btf("bpf_throw"),
    "live_frames": kernel.in_btf("bpf_test_run_xdp_live"),
    "tokens": kernel.in_btf("BPF_TOKEN_CREATE"),
    "signed_programs": kernel.signed_programs,
    "streams": kernel.streams,
    "no_streams": lambda: (
        "this kernel has streams" if not kernel.in_btf("BPF_PROG_STREAM_READ_BY_FD")() else ""
    ),
    "xdp_metadata": kernel.in_btf("veth_xdp_rx_hash"),
    "snprintf": kernel.in_btf("bpf_snprintf"),
    "struct_ops_links": kernel.in_btf("bpf_struct_ops_link"),
    "bpf_lsm": kernel.bpf_lsm,
    "raw_tracepoint_cookies": kernel.raw_tracepoint_cookies,
    "question_marks": kernel.asked(features.have_question_marks),
    "sample_contexts": kernel.in_btf("bpf_cast_to_kern_ctx"),
    "perf_event_links": kernel.asked(features.have_perf_event_link),
    "cgroup_storage": kernel.asked(
        lambda: features.have_map_type(bpf_map_type.BPF_MAP_TYPE_CGRP_STORAGE)
    ),
    "arena": kernel.asked(lambda: features.have_map_type(bpf_map_type.BPF_MAP_TYPE_ARENA)),
    "new_iterators": kernel.kernel_functions("bpf_iter_attach_cgroup"),
    "libbpf": machine.shared_library("libbpf.so.1"),
    "lld": machine.program_on_path("ld.lld-19"),
    "llvm-link": machine.program_on_path("llvm-link-19"),
    "overlay": machine.file_system("overlay"),
    "readelf": machine.program_on_path("readelf"),
    "addr2line": machine.program_on_path("addr2line"),
    "llvm-symbolizer": machine.program_on_path("llvm-symbolizer"),
    "debuginfod": machine.program_on_path("debuginfod"),
    "debuginfod-find": machine.program_on_path("debuginfod-find"),
    "nm": machine.program_on_path("nm"),
    "objcopy": machine.program_on_path("objcopy"),
    "objdump": machine.program_on_path("objdump"),
    "llvm-objdump": machine.program_on_path("llvm-objdump-19"),
    "gcc": machine.program_on_path("gcc"),
    "promtool": machine.program_on_path("promtool"),
    "musl-gcc": machine.program_on_path("musl-gcc"),
    "go": machine.program_on_path("go"),
    "speedscope": machine.program_on_path("speedscope"),
    "profiler-cli": machine.program_on_path("profiler-cli"),
    "g++": machine.program_on_path("g++"),
    "chown": machine.chown,
    "node": machine.program_on_path("node"),
    "luajit": machine.program_on_path("luajit"),
    "aarch64-linux-gnu-gcc": machine.program_on_path("aarch64-linux-gnu-gcc"),
    "qemu-aarch64": machine.program_on_path("qemu-aarch64"),
    "rustc": machine.program_on_path("rustc"),
    "javac": machine.program_on_path("javac"),
    "python_with_jitdump": machine.python_with_jitdump,
    "python_with_probes": machine.python_with_probes,
    "perf_trace": machine.perf_trace,
    "cpu_limit": machine.cpu_limit,
    "two_cpus": machine.two_cpus,
    "x86_64": machine.x86_64,
    "programs_of_32_bits": machine.programs_of_32_bits,
    "arm64_programs": machine.arm64_programs,
    "strace": machine.program_on_path("strace"),
    "ss": machine.program_on_path("ss"),
    "perf": machine.program_on_path("perf"),
    "hotspot": machine.hotspot,
    "bpftrace": machine.program_on_path("bpftrace"),
    "setpriv": machine.setpriv,
    "unshare": machine.program_on_path("unshare"),
    "xdp_frags": kernel.kernel_functions("bpf_xdp_get_buff_len"),
    "xz": machine.program_on_path("xz"),
}

KERNEL = (
    *("struct_ops", "struct_ops_links", "cgroup_order", "cgroup_unix", "lsm_cgroup"),
    *("sockmap_link", "bpf", "bpffs", "cgroup2", "perf_event", "tracefs", "vmlinux_btf"),
    *("kernel_variables", "kernel_variable_types", "syscall_programs", "new_iterators"),
    *("kprobes", "kprobe_multi", "kprobe_session", "uprobe_multi", "uprobe_session"),
    *("trampolines", "bpf_lsm", "function_cookies", "raw_tracepoint_cookies"),
    *("freplace", "netfilter_link", "netkit", "tcx", "user_ring_buffer"),
)

"""The needs that say something about a kernel, not about its surroundings."""


@cache
def missing(feature: str) -> str:
    """Why `feature` is not to be had here, or "".

    Raises:
        KeyError: for a name without a probe, so that a misspelt need cannot skip a test.
    """
    try:
        return PROBES[feature]()
    except (OSError, NotSupportedError) as error:  # of a kernel that lacks even what it asks
        return str(error)
