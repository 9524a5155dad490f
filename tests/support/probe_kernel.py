"""What a test may need of the kernel, probed by trying it, never by its version.

Each returns "" when the thing is there, else why it is not.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import purebpf
from purebpf.abi.bpf import bpf_attach_type, bpf_map_type, bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.abi.instruction import CALL, EXIT, Instruction
from purebpf.abi.sections import BPF_F_SLEEPABLE
from purebpf.errors import errno_name
from purebpf.loader.features import features
from purebpf.syscall import bpf as program_calls
from tests.support.host import modules
from tests.support.probe_calls import (
    ANSWER_ZERO,
    LIBC,
    SYSCALLS,
    mounts,
    program_load,
    syscall,
)
from tests.support.probe_machine import cgroup2, guest, program_on_path

_DATA = Path(__file__).parents[1] / "data"


def bpf() -> str:
    if sys.platform != "linux":
        return f"{sys.platform} has no bpf(2)"
    attr = ctypes.create_string_buffer(struct.pack("=IIIII", 2, 4, 4, 1, 0), 120)  # an array map
    problem = syscall(0, 0, attr, 120)
    return f"bpf(BPF_MAP_CREATE) says {problem}" if problem else program()


def program() -> str:
    return program_load(bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT)


def atomic_fetch() -> str:
    """Linux 5.12: an addition that tells what was there before."""
    code = (
        Instruction(0xB7, 1, 0, 0, 1),
        Instruction(0x7A, 10, 0, -8, 0),
        Instruction(0xDB, 10, 1, -8, 1),
        *ANSWER_ZERO,
    )
    problem = program_load(bpf_prog_type.BPF_PROG_TYPE_SCHED_CLS, code)
    return problem and f"a program that fetches and adds: {problem}"


def perf_event() -> str:
    attr = ctypes.create_string_buffer(struct.pack("=IIQ", 1, 112, 0), 112)  # cpu-clock
    problem = syscall(1, attr, -1, 0, -1, 8)
    return f"perf_event_open(cpu-clock on CPU 0) says {problem}" if problem else ""


def page_sizes() -> str:
    """Linux 5.11: samples with the sizes of pages."""
    attr = ctypes.create_string_buffer(struct.pack("=IIQQQ", 1, 112, 9, 0, 1 << 22), 112)
    problem = syscall(1, attr, 0, -1, -1, 8)
    return f"perf_event_open with the size of a page says {problem}" if problem else ""


def streams() -> str:
    """Linux 6.18; printing takes memory that not every machine gives without a lock."""
    if absent := in_btf("bpf_stream_vprintk_impl")() or program_on_path("clang-19")():
        return absent
    source = """
    #include "vmlinux.h"
    #include <bpf/bpf_helpers.h>
    SEC("syscall") int say(void *ctx) { return bpf_stream_printk(BPF_STDOUT, "said"); }
    char LICENSE[] SEC("license") = "GPL";
    """
    with purebpf.build.load_c(source) as obj:
        result = obj.programs["say"].test_run(ctx=b"").retval_signed
    return f"bpf_stream_printk() says {errno_name(-result)}" if result < 0 else ""


def signed_programs() -> str:
    """Linux 6.18, with CONFIG_SYSTEM_DATA_VERIFICATION: what is not a signature is an error."""
    code = bytes.fromhex("b700000000000000 9500000000000000")
    kind = bpf_prog_type.BPF_PROG_TYPE_SOCKET_FILTER
    fields: dict[str, int | bytes] = {"signature": b"?", "signature_size": 1, "keyring_id": -3}
    try:
        program_calls.prog_load(kind, code, "GPL", **fields).close()
    except purebpf.KernelError as error:
        is_looked_at = error.errno not in (errno.E2BIG, errno.EINVAL, errno.EOPNOTSUPP)
        return "" if is_looked_at else f"a signature is {errno_name(error.errno or 0)}"
    return "a signature is ignored"


def vmlinux_btf() -> str:
    path = "/sys/kernel/btf/vmlinux"
    return "" if os.access(path, os.R_OK) else f"cannot read {path}"


def kernel_config() -> str:
    if os.path.exists("/proc/config.gz"):
        return ""
    if not guest():  # its files vanish with it
        modules.offer_configuration()
    path = f"/boot/config-{os.uname().release}"
    return "" if os.access(path, os.R_OK) else f"neither /proc/config.gz nor {path}"


def kernel_variable_types() -> str:
    with open("/sys/kernel/btf/vmlinux", "rb") as file:
        known = b"\0bpf_prog_active\0" in file.read()
    return "" if known else "the kernel's BTF has no variables"


def kernel_variables() -> str:
    if problem := kernel_variable_types():
        return problem

    with open("/proc/kallsyms", "rb") as file:
        known = b" bpf_prog_active\n" in file.read()
    return "" if known else "/proc/kallsyms has functions only (no CONFIG_KALLSYMS_ALL)"


def loadable_modules() -> str:
    release = os.uname().release
    if not modules.folder():
        return f"no unpacked package has modules for {release}"
    return kernel_functions("register_btf_kfunc_id_set", "btf_try_get_module")()


def exact_raw_tracepoints() -> str:
    from purebpf.observe.instruments.preemption import syscall_programs_are_preempted

    if syscall_programs_are_preempted():
        return "this kernel preempts programs at raw tracepoints of system calls, and skips others"
    return ""


def memory_by_cgroup() -> str:
    """Linux 5.11: before, RLIMIT_MEMLOCK limits the memory of BPF."""
    return "RLIMIT_MEMLOCK limits BPF here" if not in_btf("bpf_map_memory")() else ""


def memory_arguments() -> str:
    """Linux 5.12: global functions that take pointers; what they check is the verifier's to say."""
    spec = purebpf.read_object(_DATA / "load_refused.bpf.o").only("in_subprogram")
    try:
        purebpf.load(spec).close()
    except purebpf.VerifierError as error:
        return "" if error.errno == errno.EACCES else error.line
    return ""


def kprobes() -> str:
    path = "/sys/bus/event_source/devices/kprobe"
    return "" if os.path.isdir(path) else f"no {path} (no CONFIG_KPROBE_EVENTS)"


def kernel_functions(*names: str) -> Callable[[], str]:
    def probe() -> str:
        with open("/proc/kallsyms", "rb") as file:
            known = file.read()
        missing = [name for name in names if f" {name}\n".encode() not in known]
        return f"this kernel has no {', '.join(missing)}" if missing else ""

    return probe


def in_btf(name: str) -> Callable[[], str]:
    """Whether the kernel's BTF has a name: a type, an enumerator, a field."""

    def probe() -> str:
        with open("/sys/kernel/btf/vmlinux", "rb") as file:
            known = f"\0{name}\0".encode() in file.read()
        return "" if known else f"this kernel's BTF has no {name}"

    return probe


def lsm_cgroup() -> str:
    return bpf_lsm() or in_btf("BPF_LSM_CGROUP")()


def syscall_programs() -> str:
    problem = program_load(bpf_prog_type.BPF_PROG_TYPE_SYSCALL, flags=BPF_F_SLEEPABLE)
    return problem and f"a syscall program: {problem}"


def takes(program_type: bpf_prog_type, attach_type: bpf_attach_type, function: str) -> str:
    """Whether a program may be loaded for a function of the kernel."""
    from purebpf.btf.types.kinds import Kind
    from purebpf.loader.types.kernel_btf import kernel_btf

    (target,) = kernel_btf().find(function, Kind.FUNC)
    problem = program_load(program_type, attach_type=attach_type, target=target)
    return problem and f"a program for {function}: {problem}"


def trampolines() -> str:
    prefix = {"x86_64": "x64", "aarch64": "arm64"}[os.uname().machine]
    function = f"__{prefix}_sys_getpriority"
    return takes(bpf_prog_type.BPF_PROG_TYPE_TRACING, bpf_attach_type.BPF_TRACE_FENTRY, function)


def freplace() -> str:
    feature = features.have_program_type(bpf_prog_type.BPF_PROG_TYPE_EXT)
    return "" if feature else str(feature)


def inode_storage() -> str:
    """The place for it in an inode is the BPF LSM's."""
    if absent := map_type(bpf_map_type.BPF_MAP_TYPE_INODE_STORAGE)():
        return absent
    active = active_lsms()
    return "" if "bpf" in active.split(",") else f"active LSMs are {active}"


def active_lsms() -> str:
    path = "/sys/kernel/security/lsm"
    if not os.path.exists(path):
        LIBC.mount(b"none", b"/sys/kernel/security", b"securityfs", 0, None)
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError as error:
        return f"{path}: {errno_name(error.errno or 0)}"


def bpf_lsm() -> str:
    active = active_lsms()
    if "bpf" not in active.split(","):
        return f"active LSMs are {active}"
    hook = "bpf_lsm_task_getscheduler"
    return takes(bpf_prog_type.BPF_PROG_TYPE_LSM, bpf_attach_type.BPF_LSM_MAC, hook)


def raw_tracepoint_cookies() -> str:
    helper = bpf_func_id.BPF_FUNC_get_attach_cookie
    code = (Instruction(CALL, 0, 0, 0, helper), Instruction(EXIT, 0, 0, 0, 0))
    problem = program_load(bpf_prog_type.BPF_PROG_TYPE_RAW_TRACEPOINT, code)
    return problem and f"bpf_get_attach_cookie in a raw tracepoint program: {problem}"


def map_type(kind: bpf_map_type) -> Callable[[], str]:
    return asked(lambda: features.have_map_type(kind))


def asked(have: Callable[[], features.Feature]) -> Callable[[], str]:
    """By the package's own probe, which features/test_expected_features.py checks."""

    def probe() -> str:
        found = have()
        return "" if found else found.reason

    return probe


def cgroup_order() -> str:
    if problem := cgroup2():
        return problem
    root = next(path for path, kind in mounts() if kind == "cgroup2")
    fd = os.open(root, os.O_RDONLY)
    try:
        attr = ctypes.create_string_buffer(struct.pack("=II", fd, 2), 64)  # INET_SOCK_CREATE
        number = SYSCALLS[os.uname().machine][0]
        if LIBC.syscall(number, 16, attr, 64) < 0:
            return f"bpf(BPF_PROG_QUERY) says {errno_name(ctypes.get_errno())}"
    finally:
        os.close(fd)
    (revision,) = struct.unpack_from("=Q", attr, 56)
    return "" if revision else "this kernel counts no revisions of a cgroup's hooks"
