"""What a test may need of its machine, probed by trying it, never by uid or kernel version.

Each probe returns "" when the thing is there and otherwise the reason it is not, which is what
the skip prints.
"""

from __future__ import annotations

import ctypes
import errno
import importlib.util
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import purebpf
from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.abi.instruction import Instruction, pack
from purebpf.errors import errno_name
from purebpf.kernel import features
from tests.support import expected, libbpf_tools, modules
from tests.support.users import as_user, public_bpffs

_DATA = Path(__file__).parents[1] / "data"
_LIBC = ctypes.CDLL(None, use_errno=True)
_SYSCALLS = {"x86_64": (321, 298), "aarch64": (280, 241)}
"""bpf(2) and perf_event_open(2), by machine."""


def _syscall(which: int, *arguments: object) -> str:
    numbers = _SYSCALLS.get(os.uname().machine)
    if numbers is None:
        return f"no system call numbers for {os.uname().machine}"
    result = _LIBC.syscall(numbers[which], *arguments)
    if result < 0:
        return errno_name(ctypes.get_errno())
    os.close(result)
    return ""


def _bpf() -> str:
    if sys.platform != "linux":
        return f"{sys.platform} has no bpf(2)"
    attr = ctypes.create_string_buffer(struct.pack("=IIIII", 2, 4, 4, 1, 0), 120)  # an array map
    problem = _syscall(0, 0, attr, 120)
    return f"bpf(BPF_MAP_CREATE) says {problem}" if problem else _program()


def _program() -> str:
    code = ctypes.create_string_buffer(struct.pack("=BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0))
    text = ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("=IIQQ", 7, 2, ctypes.addressof(code), ctypes.addressof(text))
    buffer = ctypes.create_string_buffer(attr, 120)
    problem = _syscall(0, 5, buffer, 120)
    return f"bpf(BPF_PROG_LOAD) says {problem}" if problem else ""


def _atomic_fetch() -> str:
    """Linux 5.12: an addition that tells what was there before."""
    code = pack(
        [
            Instruction(0xB7, 1, 0, 0, 1),
            Instruction(0x7A, 10, 0, -8, 0),
            Instruction(0xDB, 10, 1, -8, 1),
            Instruction(0xB7, 0, 0, 0, 0),
            Instruction(0x95, 0, 0, 0, 0),
        ]
    )
    buffer = ctypes.create_string_buffer(code)
    text = ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("=IIQQ", 3, 5, ctypes.addressof(buffer), ctypes.addressof(text))
    problem = _syscall(0, 5, ctypes.create_string_buffer(attr, 120), 120)
    return f"a program that fetches and adds: bpf(BPF_PROG_LOAD) says {problem}" if problem else ""


def hotspot_parser() -> Path | None:
    """The program of hotspot that reads perf.data; Debian's is not on the path."""
    if found := shutil.which("hotspot-perfparser"):
        return Path(found)
    return next(Path("/usr/lib").glob("*/libexec/hotspot-perfparser"), None)


def _hotspot() -> str:
    return "" if hotspot_parser() else "there is no hotspot-perfparser"


def _perf_event() -> str:
    attr = ctypes.create_string_buffer(struct.pack("=IIQ", 1, 112, 0), 112)  # cpu-clock
    problem = _syscall(1, attr, -1, 0, -1, 8)
    return f"perf_event_open(cpu-clock on CPU 0) says {problem}" if problem else ""


def _vmlinux_btf() -> str:
    path = "/sys/kernel/btf/vmlinux"
    return "" if os.access(path, os.R_OK) else f"cannot read {path}"


def _python_with_jitdump() -> str:
    from tests.support.pythons import newest

    found = newest()
    if found is None or found.version < (3, 13):
        return f"no CPython with -X perf_jit (3.13); the newest here is {found}"
    return ""


def _tracefs() -> str:
    for place in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"):
        if os.path.isdir(f"{place}/events"):
            return ""
    if not os.path.isdir("/sys/kernel/tracing"):
        return "this kernel has no /sys/kernel/tracing"
    if _LIBC.mount(b"nodev", b"/sys/kernel/tracing", b"tracefs", 0, None):
        return f"tracefs is not mounted and mount(2) says {errno_name(ctypes.get_errno())}"
    return ""


def _program_on_path(*names: str) -> Callable[[], str]:
    def probe() -> str:
        if any(shutil.which(name) for name in names):
            return ""
        return f"{' or '.join(names)} is not installed"

    return probe


def _libbpf_tools() -> str:
    return "" if libbpf_tools.objects() else "Debian's libbpf-tools is not installed"


def _kernel_config() -> str:
    if os.path.exists("/proc/config.gz"):
        return ""
    if not _guest():  # whose files vanish with it
        modules.offer_configuration()
    path = f"/boot/config-{os.uname().release}"
    return "" if os.access(path, os.R_OK) else f"neither /proc/config.gz nor {path}"


def _kernel_variable_types() -> str:
    with open("/sys/kernel/btf/vmlinux", "rb") as file:
        known = b"\0bpf_prog_active\0" in file.read()
    return "" if known else "the kernel's BTF has no variables"


def _kernel_variables() -> str:
    if problem := _kernel_variable_types():
        return problem

    with open("/proc/kallsyms", "rb") as file:
        known = b" bpf_prog_active\n" in file.read()
    return "" if known else "/proc/kallsyms has functions only (no CONFIG_KALLSYMS_ALL)"


def _modules() -> str:
    release = os.uname().release
    if not modules.folder():
        return f"no unpacked package has modules for {release}"
    return _kernel_functions("register_btf_kfunc_id_set", "btf_try_get_module")()


def _exact_raw_tracepoints() -> str:
    from purebpf.kernel.preemption import syscall_programs_are_preempted

    if syscall_programs_are_preempted():
        return "this kernel preempts programs at raw tracepoints of system calls, and skips others"
    return ""


def _memory_by_cgroup() -> str:
    """Linux 5.11: before, RLIMIT_MEMLOCK limits the memory of BPF."""
    return "RLIMIT_MEMLOCK limits BPF here" if not _in_btf("bpf_map_memory")() else ""


def _memory_arguments() -> str:
    """Linux 5.12: global functions that take pointers; what they check is the verifier's to say."""
    spec = purebpf.read_object(_DATA / "load_refused.bpf.o").only("in_subprogram")
    try:
        purebpf.load(spec).close()
    except purebpf.VerifierError as error:
        return "" if error.errno == errno.EACCES else error.line
    return ""


def _kprobes() -> str:
    path = "/sys/bus/event_source/devices/kprobe"
    return "" if os.path.isdir(path) else f"no {path} (no CONFIG_KPROBE_EVENTS)"


def _kernel_functions(*names: str) -> Callable[[], str]:
    def probe() -> str:
        with open("/proc/kallsyms", "rb") as file:
            known = file.read()
        missing = [name for name in names if f" {name}\n".encode() not in known]
        return f"this kernel has no {', '.join(missing)}" if missing else ""

    return probe


def _uprobe_session() -> str:
    with open("/sys/kernel/btf/vmlinux", "rb") as file:
        known = b"\0BPF_TRACE_UPROBE_SESSION\0" in file.read()
    return "" if known else "this kernel has no BPF_TRACE_UPROBE_SESSION"


def _in_btf(name: str) -> Callable[[], str]:
    """Whether the kernel's BTF has a name: a type, an enumerator, a field."""

    def probe() -> str:
        with open("/sys/kernel/btf/vmlinux", "rb") as file:
            known = f"\0{name}\0".encode() in file.read()
        return "" if known else f"this kernel's BTF has no {name}"

    return probe


def _lsm_cgroup() -> str:
    return _bpf_lsm() or _in_btf("BPF_LSM_CGROUP")()


def _syscall_programs() -> str:
    code = ctypes.create_string_buffer(struct.pack("=BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0))
    text = ctypes.create_string_buffer(b"GPL")
    attr = ctypes.create_string_buffer(120)
    places = ctypes.addressof(code), ctypes.addressof(text)
    struct.pack_into("=IIQQ", attr, 0, 31, 2, *places)
    struct.pack_into("=I", attr, 44, 1 << 4)  # BPF_F_SLEEPABLE
    problem = _syscall(0, 5, attr, 120)
    return f"a syscall program: bpf(BPF_PROG_LOAD) says {problem}" if problem else ""


def _takes(program_type: int, attach_type: int, function: str) -> str:
    """Whether a program may be loaded for a function of the kernel."""
    from purebpf.btf.types import Kind
    from purebpf.kernel.btf import kernel_btf

    code = ctypes.create_string_buffer(struct.pack("=BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0))
    text = ctypes.create_string_buffer(b"GPL")
    (target,) = kernel_btf().find(function, Kind.FUNC)
    attr = ctypes.create_string_buffer(120)
    places = ctypes.addressof(code), ctypes.addressof(text)
    struct.pack_into("=IIQQ", attr, 0, program_type, 2, *places)
    struct.pack_into("=I", attr, 68, attach_type)
    struct.pack_into("=I", attr, 108, target)
    problem = _syscall(0, 5, attr, 120)
    return f"a program for {function}: bpf(BPF_PROG_LOAD) says {problem}" if problem else ""


def _trampolines() -> str:
    prefix = {"x86_64": "x64", "aarch64": "arm64"}[os.uname().machine]
    return _takes(26, 24, f"__{prefix}_sys_getpriority")  # TRACING, BPF_TRACE_FENTRY


def _freplace() -> str:
    from purebpf.kernel.features import have_program_type

    feature = have_program_type(28)  # BPF_PROG_TYPE_EXT
    return "" if feature else str(feature)


def _inode_storage() -> str:
    """The place for it in an inode is the BPF LSM's."""
    if absent := _map_type(bpf_map_type.BPF_MAP_TYPE_INODE_STORAGE)():
        return absent
    active = _active_lsms()
    return "" if "bpf" in active.split(",") else f"active LSMs are {active}"


def _active_lsms() -> str:
    path = "/sys/kernel/security/lsm"
    if not os.path.exists(path):
        _LIBC.mount(b"none", b"/sys/kernel/security", b"securityfs", 0, None)
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError as error:
        return f"{path}: {errno_name(error.errno or 0)}"


def _bpf_lsm() -> str:
    active = _active_lsms()
    if "bpf" not in active.split(","):
        return f"active LSMs are {active}"
    return _takes(29, 27, "bpf_lsm_task_getscheduler")  # LSM, BPF_LSM_MAC


def _shared_library(name: str) -> Callable[[], str]:
    def probe() -> str:
        try:
            ctypes.CDLL(name)
        except OSError as error:
            return str(error)
        return ""

    return probe


def _raw_tracepoint_cookies() -> str:
    code = ctypes.create_string_buffer(struct.pack("=BBhiBBhi", 0x85, 0, 0, 174, 0x95, 0, 0, 0))
    text = ctypes.create_string_buffer(b"GPL")
    attr = ctypes.create_string_buffer(120)
    places = ctypes.addressof(code), ctypes.addressof(text)
    struct.pack_into("=IIQQ", attr, 0, 17, 2, *places)
    problem = _syscall(0, 5, attr, 120)
    return f"bpf_get_attach_cookie in a raw tracepoint program: {problem}" if problem else ""


def _map_type(kind: bpf_map_type) -> Callable[[], str]:
    return _asked(lambda: features.have_map_type(kind))


def _asked(have: Callable[[], features.Feature]) -> Callable[[], str]:
    """By the package's own probe; tests/kernel/test_expected_features.py checks what that says."""

    def probe() -> str:
        found = have()
        return "" if found else found.reason

    return probe


def _setpriv() -> str:
    if reason := _program_on_path("setpriv")():
        return reason
    command = ["setpriv", "--reuid=0", "--clear-groups", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "setpriv is busybox's, which has no --reuid" if done.returncode else ""


def _chown() -> str:
    with tempfile.NamedTemporaryFile() as file:
        try:
            os.chown(file.name, 65534, 65534)
        except OSError as error:
            return f"chown(2): {error.strerror} (it takes CAP_CHOWN)"
    return ""


def _perf_trace() -> str:
    if reason := _program_on_path("perf")() or _tracefs():
        return reason
    command = ["perf", "trace", "-s", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = done.stdout + done.stderr
    return "" if "Summary of events:" in told else f"perf trace says {told[:200]}"


def _two_cpus() -> str:
    return "" if (os.cpu_count() or 1) > 1 else "one CPU is online"


def _x86_64() -> str:
    return "" if os.uname().machine == "x86_64" else f"this is {os.uname().machine}"


def _guest() -> str:
    if expected.kernel() in expected.GUESTS:
        return ""
    return "sysctls and CPUs are only switched in the guests of tests.vm.matrix"


def _hotplug() -> str:
    if reason := _guest():
        return reason
    switch = "/sys/devices/system/cpu/cpu1/online"
    return "" if os.access(switch, os.W_OK) else f"cannot write {switch}"


def _pinned_by_users() -> str:
    """Linux 6.0: a user may open what is pinned for him; before, a sysctl may forbid it all."""
    disabled = Path("/proc/sys/kernel/unprivileged_bpf_disabled").read_text().strip()
    with public_bpffs() as folder:
        os.chmod(folder, 0o711)
        attr = ctypes.create_string_buffer(struct.pack("=IIIII", 2, 4, 4, 1, 0), 120)
        fd = _LIBC.syscall(_SYSCALLS[os.uname().machine][0], 0, attr, 120)
        path = ctypes.create_string_buffer(f"{folder}/map".encode())
        pin = ctypes.create_string_buffer(struct.pack("=QI", ctypes.addressof(path), fd), 120)
        assert _LIBC.syscall(_SYSCALLS[os.uname().machine][0], 6, pin, 120) == 0
        os.close(fd)
        os.chown(f"{folder}/map", 65534, -1)
        get = ctypes.create_string_buffer(struct.pack("=Q", ctypes.addressof(path)), 120)
        problem = as_user(65534, lambda: _syscall(0, 7, get, 120))
    return f"unprivileged_bpf_disabled is {disabled}: {problem}" if problem else ""


def _file_system(kind: str) -> Callable[[], str]:
    def probe() -> str:
        known = Path("/proc/filesystems").read_text().split()
        return "" if kind in known else f"this kernel has no {kind} file system"

    return probe


def _cgroup2() -> str:
    mounted = any(kind == "cgroup2" for _, kind in mounts())
    return "" if mounted else "no cgroup2 file system is mounted"


def _cgroup_order() -> str:
    if problem := _cgroup2():
        return problem
    root = next(path for path, kind in mounts() if kind == "cgroup2")
    fd = os.open(root, os.O_RDONLY)
    try:
        attr = ctypes.create_string_buffer(struct.pack("=II", fd, 2), 64)  # INET_SOCK_CREATE
        number = _SYSCALLS[os.uname().machine][0]
        if _LIBC.syscall(number, 16, attr, 64) < 0:
            return f"bpf(BPF_PROG_QUERY) says {errno_name(ctypes.get_errno())}"
    finally:
        os.close(fd)
    (revision,) = struct.unpack_from("=Q", attr, 56)
    return "" if revision else "this kernel counts no revisions of a cgroup's hooks"


def _link_kind(kind: str) -> Callable[[], str]:
    """Whether interfaces of a kind can be made; their module is loaded if there is one."""

    def probe() -> str:
        if reason := _namespace("--net")():
            return reason
        modules.offer(kind)
        from pyroute2.netlink.exceptions import NetlinkError

        from tests.support import network

        with network.namespace():
            try:
                network.make(kind)
            except NetlinkError as error:
                return f"{kind} interfaces: {errno_name(error.code)}"
        return ""

    return probe


def _clsact() -> str:
    if reason := _namespace("--net")():
        return reason
    from purebpf.errors import KernelError
    from purebpf.syscall.netlink import EGRESS, Filter, Route
    from tests.support import network

    modules.offer("sch_ingress", "cls_bpf")
    with network.namespace(), Route() as route:
        loopback = socket.if_nametoindex("lo")
        try:
            route.add_clsact(loopback)
            route.add_filter(loopback, Filter(EGRESS, 1, 1), 0x7FFFFFFF, "none")
        except KernelError as error:  # EBADF: that is no program, and cls_bpf is there
            return "" if error.errno == errno.EBADF else str(error)
    return "a filter without a program was taken"


def _namespace(*options: str) -> Callable[[], str]:
    def probe() -> str:
        command = ["unshare", *options, "true"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return "unshare is not installed"
        return done.stderr.strip()

    return probe


def _browser() -> str:
    if importlib.util.find_spec("selenium") is None:
        return "selenium is not installed"
    return _program_on_path("chromium")() or _program_on_path("chromedriver")()


PROBES: dict[str, Callable[[], str]] = {
    "atomic_fetch": _atomic_fetch,
    "bpf": _bpf,
    "callbacks": _kernel_functions("bpf_for_each_map_elem"),
    "current_task_btf": _kernel_functions("bpf_get_current_task_btf"),
    "memory_arguments": _memory_arguments,
    "memory_by_cgroup": _memory_by_cgroup,
    "bpffs": _file_system("bpf"),
    "cgroup2": _cgroup2,
    "cgroup_order": _cgroup_order,
    "cgroup_unix": _in_btf("BPF_CGROUP_UNIX_CONNECT"),
    "guest": _guest,
    "hotplug": _hotplug,
    "mount_namespace": _namespace("--mount"),
    "net_namespace": _namespace("--net"),
    "pid_namespace": _namespace("--pid", "--fork", "--mount-proc"),
    "perf_event": _perf_event,
    "pinned_by_users": _pinned_by_users,
    "vmlinux_btf": _vmlinux_btf,
    "tracefs": _tracefs,
    "clsact": _clsact,
    "netfilter_link": _in_btf("BPF_LINK_TYPE_NETFILTER"),
    "netkit": _link_kind("netkit"),
    "tc": _program_on_path("tc"),
    "tcx": _in_btf("BPF_LINK_TYPE_TCX"),
    "veth": _link_kind("veth"),
    "bloom_filter": _map_type(bpf_map_type.BPF_MAP_TYPE_BLOOM_FILTER),
    "inode_storage": _inode_storage,
    "task_storage": _map_type(bpf_map_type.BPF_MAP_TYPE_TASK_STORAGE),
    "function_addresses": _asked(
        lambda: features.have_helper(
            bpf_prog_type.BPF_PROG_TYPE_KPROBE, bpf_func_id.BPF_FUNC_get_func_ip
        )
    ),
    "user_ring_buffer": _kernel_functions("bpf_user_ringbuf_drain"),
    "clang": _program_on_path("clang-19"),
    "browser": _browser,
    "bpftool": _program_on_path("bpftool"),
    "kernel_config": _kernel_config,
    "kernel_variables": _kernel_variables,
    "libbpf-tools": _libbpf_tools,
    "lsm_cgroup": _lsm_cgroup,
    "modules": _modules,
    "exact_raw_tracepoints": _exact_raw_tracepoints,
    "kprobes": _kprobes,
    "kernel_variable_types": _kernel_variable_types,
    "sk_skb_verdict": _in_btf("BPF_SK_SKB_VERDICT"),
    "sockmap_link": _in_btf("BPF_LINK_TYPE_SOCKMAP"),
    "syscall_programs": _syscall_programs,
    "function_cookies": _kernel_functions("bpf_get_attach_cookie_tracing"),
    "no_kprobes": lambda: "" if _kprobes() else "this kernel has kprobes",
    "kprobe_multi": _kernel_functions("kprobe_multi_link_handler"),
    "kprobe_session": _kernel_functions("kprobe_multi_link_handler", "bpf_session_is_return"),
    "uprobe_multi": _kernel_functions("uprobe_multi_link_handler"),
    "uprobe_session": _uprobe_session,
    "route_programs": _in_btf("bpf_lwt_prog"),
    "segment_programs": _in_btf("seg6_bpf_srh_state"),
    "tracing_multi": _in_btf("BPF_TRACE_FENTRY_MULTI"),
    "no_tracing_multi": lambda: (
        "" if _in_btf("BPF_TRACE_FENTRY_MULTI")() else "this kernel has fentry.multi"
    ),
    "tracing_session": _in_btf("BPF_TRACE_FSESSION"),
    "exclusive_maps": _asked(features.have_exclusive_maps),
    "insn_array": _map_type(bpf_map_type.BPF_MAP_TYPE_INSN_ARRAY),
    "no_insn_array": lambda: (
        "" if _map_type(bpf_map_type.BPF_MAP_TYPE_INSN_ARRAY)() else "this kernel has jump tables"
    ),
    "rhash": _map_type(bpf_map_type.BPF_MAP_TYPE_RHASH),
    "task_pt_regs": _kernel_functions("bpf_task_pt_regs"),
    "freplace": _freplace,
    "trampolines": _trampolines,
    "dummy_struct_ops": _in_btf("bpf_dummy_ops"),
    "struct_ops": _in_btf("bpf_struct_ops_tcp_congestion_ops"),
    "exceptions": _in_btf("bpf_throw"),
    "live_frames": _in_btf("bpf_test_run_xdp_live"),
    "tokens": _in_btf("BPF_TOKEN_CREATE"),
    "snprintf": _in_btf("bpf_snprintf"),
    "struct_ops_links": _in_btf("bpf_struct_ops_link"),
    "bpf_lsm": _bpf_lsm,
    "raw_tracepoint_cookies": _raw_tracepoint_cookies,
    "question_marks": _asked(features.have_question_marks),
    "sample_contexts": _in_btf("bpf_cast_to_kern_ctx"),
    "perf_event_links": _asked(features.have_perf_event_link),
    "cgroup_storage": _asked(
        lambda: features.have_map_type(bpf_map_type.BPF_MAP_TYPE_CGRP_STORAGE)
    ),
    "arena": _asked(lambda: features.have_map_type(bpf_map_type.BPF_MAP_TYPE_ARENA)),
    "new_iterators": _kernel_functions("bpf_iter_attach_cgroup"),
    "libbpf": _shared_library("libbpf.so.1"),
    "readelf": _program_on_path("readelf"),
    "addr2line": _program_on_path("addr2line"),
    "llvm-symbolizer": _program_on_path("llvm-symbolizer"),
    "debuginfod": _program_on_path("debuginfod"),
    "debuginfod-find": _program_on_path("debuginfod-find"),
    "nm": _program_on_path("nm"),
    "objcopy": _program_on_path("objcopy"),
    "llvm-objdump": _program_on_path("llvm-objdump-19"),
    "gcc": _program_on_path("gcc"),
    "go": _program_on_path("go"),
    "speedscope": _program_on_path("speedscope"),
    "profiler-cli": _program_on_path("profiler-cli"),
    "g++": _program_on_path("g++"),
    "chown": _chown,
    "node": _program_on_path("node"),
    "python_with_jitdump": _python_with_jitdump,
    "perf_trace": _perf_trace,
    "two_cpus": _two_cpus,
    "x86_64": _x86_64,
    "strace": _program_on_path("strace"),
    "perf": _program_on_path("perf"),
    "hotspot": _hotspot,
    "bpftrace": _program_on_path("bpftrace"),
    "setpriv": _setpriv,
    "unshare": _program_on_path("unshare"),
    "xdp_frags": _kernel_functions("bpf_xdp_get_buff_len"),
    "xz": _program_on_path("xz"),
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
    return PROBES[feature]()


def mounts() -> list[tuple[str, str]]:
    """Mount point and file system type of each mount, in order."""
    rows = [line.split(" ") for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [(row[1], row[2]) for row in rows]


def descriptors() -> dict[str, str]:
    """This process's open descriptors: number to what it refers to."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found[entry.name] = str(entry.readlink())
        except FileNotFoundError:  # the descriptor of the listing itself
            continue
    return found


def kernel_objects() -> dict[str, set[int]]:
    """The ids of every program, map and link of this kernel."""
    return {"program": _ids(11), "map": _ids(12), "link": _ids(31)}


def _ids(command: int) -> set[int]:
    numbers = _SYSCALLS[os.uname().machine]
    found: set[int] = set()
    last = 0
    while True:
        attr = ctypes.create_string_buffer(struct.pack("=I", last), 16)
        if _LIBC.syscall(numbers[0], command, attr, 16) < 0:
            return found
        (last,) = struct.unpack_from("=I", attr, 4)
        found.add(last)
