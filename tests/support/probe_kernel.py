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
from purebpf.abi.bpf import bpf_map_type
from purebpf.abi.instruction import Instruction, pack
from purebpf.errors import errno_name
from purebpf.kernel import features
from tests.support import modules
from tests.support.probe_calls import LIBC, SYSCALLS, mounts, syscall
from tests.support.probe_machine import cgroup2, guest

_DATA = Path(__file__).parents[1] / "data"


def bpf() -> str:
    if sys.platform != "linux":
        return f"{sys.platform} has no bpf(2)"
    attr = ctypes.create_string_buffer(struct.pack("=IIIII", 2, 4, 4, 1, 0), 120)  # an array map
    problem = syscall(0, 0, attr, 120)
    return f"bpf(BPF_MAP_CREATE) says {problem}" if problem else program()


def program() -> str:
    code = ctypes.create_string_buffer(struct.pack("=BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0))
    text = ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("=IIQQ", 7, 2, ctypes.addressof(code), ctypes.addressof(text))
    buffer = ctypes.create_string_buffer(attr, 120)
    problem = syscall(0, 5, buffer, 120)
    return f"bpf(BPF_PROG_LOAD) says {problem}" if problem else ""


def atomic_fetch() -> str:
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
    problem = syscall(0, 5, ctypes.create_string_buffer(attr, 120), 120)
    return f"a program that fetches and adds: bpf(BPF_PROG_LOAD) says {problem}" if problem else ""


def perf_event() -> str:
    attr = ctypes.create_string_buffer(struct.pack("=IIQ", 1, 112, 0), 112)  # cpu-clock
    problem = syscall(1, attr, -1, 0, -1, 8)
    return f"perf_event_open(cpu-clock on CPU 0) says {problem}" if problem else ""


def page_sizes() -> str:
    """Linux 5.11: samples with the sizes of pages."""
    attr = ctypes.create_string_buffer(struct.pack("=IIQQQ", 1, 112, 9, 0, 1 << 22), 112)
    problem = syscall(1, attr, 0, -1, -1, 8)
    return f"perf_event_open with the size of a page says {problem}" if problem else ""


def vmlinux_btf() -> str:
    path = "/sys/kernel/btf/vmlinux"
    return "" if os.access(path, os.R_OK) else f"cannot read {path}"


def kernel_config() -> str:
    if os.path.exists("/proc/config.gz"):
        return ""
    if not guest():  # whose files vanish with it
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
    from purebpf.kernel.preemption import syscall_programs_are_preempted

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


def uprobe_session() -> str:
    with open("/sys/kernel/btf/vmlinux", "rb") as file:
        known = b"\0BPF_TRACE_UPROBE_SESSION\0" in file.read()
    return "" if known else "this kernel has no BPF_TRACE_UPROBE_SESSION"


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
    code = ctypes.create_string_buffer(struct.pack("=BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0))
    text = ctypes.create_string_buffer(b"GPL")
    attr = ctypes.create_string_buffer(120)
    places = ctypes.addressof(code), ctypes.addressof(text)
    struct.pack_into("=IIQQ", attr, 0, 31, 2, *places)
    struct.pack_into("=I", attr, 44, 1 << 4)  # BPF_F_SLEEPABLE
    problem = syscall(0, 5, attr, 120)
    return f"a syscall program: bpf(BPF_PROG_LOAD) says {problem}" if problem else ""


def takes(program_type: int, attach_type: int, function: str) -> str:
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
    problem = syscall(0, 5, attr, 120)
    return f"a program for {function}: bpf(BPF_PROG_LOAD) says {problem}" if problem else ""


def trampolines() -> str:
    prefix = {"x86_64": "x64", "aarch64": "arm64"}[os.uname().machine]
    return takes(26, 24, f"__{prefix}_sys_getpriority")  # TRACING, BPF_TRACE_FENTRY


def freplace() -> str:
    from purebpf.kernel.features import have_program_type

    feature = have_program_type(28)  # BPF_PROG_TYPE_EXT
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
    return takes(29, 27, "bpf_lsm_task_getscheduler")  # LSM, BPF_LSM_MAC


def raw_tracepoint_cookies() -> str:
    code = ctypes.create_string_buffer(struct.pack("=BBhiBBhi", 0x85, 0, 0, 174, 0x95, 0, 0, 0))
    text = ctypes.create_string_buffer(b"GPL")
    attr = ctypes.create_string_buffer(120)
    places = ctypes.addressof(code), ctypes.addressof(text)
    struct.pack_into("=IIQQ", attr, 0, 17, 2, *places)
    problem = syscall(0, 5, attr, 120)
    return f"bpf_get_attach_cookie in a raw tracepoint program: {problem}" if problem else ""


def map_type(kind: bpf_map_type) -> Callable[[], str]:
    return asked(lambda: features.have_map_type(kind))


def asked(have: Callable[[], features.Feature]) -> Callable[[], str]:
    """By the package's own probe; tests/kernel/test_expected_features.py checks what that says."""

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
