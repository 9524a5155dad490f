"""What a test may need besides the kernel: programs, namespaces, file systems, CPUs, modules.

Each returns "" when the thing is there, else why it is not.
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
import tempfile
from collections.abc import Callable
from pathlib import Path

from purebpf.errors import errno_name
from tests.support.host import modules
from tests.support.host.users import as_user, public_bpffs
from tests.support.oracles import libbpf_tools
from tests.support.probe_calls import LIBC, SYSCALLS, mounts, syscall


def hotspot_parser() -> Path | None:
    """The program of hotspot that reads perf.data; Debian's is not on the path."""
    if found := shutil.which("hotspot-perfparser"):
        return Path(found)
    return next(Path("/usr/lib").glob("*/libexec/hotspot-perfparser"), None)


def hotspot() -> str:
    return "" if hotspot_parser() else "there is no hotspot-perfparser"


def python_with_jitdump() -> str:
    from tests.support.programs.pythons import newest

    found = newest()
    if found is None or found.version < (3, 13):
        return f"no CPython with -X perf_jit (3.13); the newest here is {found}"
    return ""


def python_with_probes() -> str:
    """Whether Debian's interpreter is here, which has static probes."""
    python = Path("/usr/bin/python3")
    if not python.exists():
        return f"there is no {python}"
    return "" if b"gc__start" in python.read_bytes() else f"{python} has no static probes"


def tracefs() -> str:
    for place in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"):
        if os.path.isdir(f"{place}/events"):
            return ""
    if not os.path.isdir("/sys/kernel/tracing"):
        return "this kernel has no /sys/kernel/tracing"
    if LIBC.mount(b"nodev", b"/sys/kernel/tracing", b"tracefs", 0, None):
        return f"tracefs is not mounted and mount(2) says {errno_name(ctypes.get_errno())}"
    return ""


def program_on_path(*names: str) -> Callable[[], str]:
    def probe() -> str:
        if any(shutil.which(name) for name in names):
            return ""
        return f"{' or '.join(names)} is not installed"

    return probe


AXE = Path(__file__).parents[2] / "build/npm/node_modules/axe-core/axe.min.js"
"""Checks of what a page needs for keyboards and screen readers."""


def axe() -> str:
    return "" if AXE.exists() else f"npm's axe-core is not in {AXE.parents[2].name}"


def tools_of_libbpf() -> str:
    return "" if libbpf_tools.objects() else "Debian's libbpf-tools is not installed"


def shared_library(name: str) -> Callable[[], str]:
    def probe() -> str:
        try:
            ctypes.CDLL(name)
        except OSError as error:
            return str(error)
        return ""

    return probe


def setpriv() -> str:
    if reason := program_on_path("setpriv")():
        return reason
    command = ["setpriv", "--reuid=0", "--clear-groups", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "setpriv is busybox's, which has no --reuid" if done.returncode else ""


def chown() -> str:
    with tempfile.NamedTemporaryFile() as file:
        try:
            os.chown(file.name, 65534, 65534)
        except OSError as error:
            return f"chown(2): {error.strerror} (it takes CAP_CHOWN)"
    return ""


def perf_trace() -> str:
    if reason := program_on_path("perf")() or tracefs():
        return reason
    command = ["perf", "trace", "-s", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = done.stdout + done.stderr
    return "" if "Summary of events:" in told else f"perf trace says {told[:200]}"


def cpu_controller() -> Path | None:
    """Where cgroups that limit CPU time can be made; None: nowhere."""
    for folder in (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")):  # cgroups(7): v1, v2
        if (folder / "cpu.cfs_quota_us").exists():
            return folder
        control = folder / "cgroup.subtree_control"
        if control.exists() and "cpu" in control.read_text().split():
            return folder
    return None


def cpu_limit() -> str:
    return "" if cpu_controller() else "cgroups cannot limit CPU time here"


def two_cpus() -> str:
    return "" if (os.cpu_count() or 1) > 1 else "one CPU is online"


def x86_64() -> str:
    return "" if os.uname().machine == "x86_64" else f"this is {os.uname().machine}"


def programs_of_32_bits() -> str:
    """gcc builds them with libc's headers and libraries, and the kernel runs them."""
    if os.uname().machine != "x86_64" or shutil.which("gcc") is None:
        return "there is no gcc for i386"
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/program"
        command = ["gcc", "-m32", "-x", "c", "-o", program, "-"]
        source = "#include <stdlib.h>\nint main(void) { return 0; }\n"
        built = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        if built.returncode:
            return f"gcc -m32: {built.stderr.strip().splitlines()[-1]}"
        try:
            subprocess.run([program], check=True)
        except OSError as error:
            return f"this kernel does not run 32-bit programs: {error}"
    return ""


def arm64_programs() -> str:
    if os.uname().machine != "aarch64":
        return f"this is {os.uname().machine}"
    from tests.support.programs.arm64 import FOLDER

    return "" if (FOLDER / "chain").exists() else f"there are no programs in {FOLDER}"


def guest() -> str:
    if os.environ.get("PUREBPF_GUEST"):
        return ""
    return "sysctls and CPUs are only switched in the guests of tests.vm.matrix"


def hotplug() -> str:
    if reason := guest():
        return reason
    switch = "/sys/devices/system/cpu/cpu1/online"
    return "" if os.access(switch, os.W_OK) else f"cannot write {switch}"


def pinned_by_users() -> str:
    """Linux 6.0: a user may open what is pinned for him; before, a sysctl may forbid it all."""
    disabled = Path("/proc/sys/kernel/unprivileged_bpf_disabled").read_text().strip()
    with public_bpffs() as folder:
        os.chmod(folder, 0o711)
        attr = ctypes.create_string_buffer(struct.pack("=IIIII", 2, 4, 4, 1, 0), 120)
        fd = LIBC.syscall(SYSCALLS[os.uname().machine][0], 0, attr, 120)
        path = ctypes.create_string_buffer(f"{folder}/map".encode())
        pin = ctypes.create_string_buffer(struct.pack("=QI", ctypes.addressof(path), fd), 120)
        assert LIBC.syscall(SYSCALLS[os.uname().machine][0], 6, pin, 120) == 0
        os.close(fd)
        os.chown(f"{folder}/map", 65534, -1)
        get = ctypes.create_string_buffer(struct.pack("=Q", ctypes.addressof(path)), 120)
        problem = as_user(65534, lambda: syscall(0, 7, get, 120))
    return f"unprivileged_bpf_disabled is {disabled}: {problem}" if problem else ""


def file_system(kind: str) -> Callable[[], str]:
    def probe() -> str:
        known = Path("/proc/filesystems").read_text().split()
        return "" if kind in known else f"this kernel has no {kind} file system"

    return probe


def cgroup2() -> str:
    mounted = any(kind == "cgroup2" for _, kind in mounts())
    return "" if mounted else "no cgroup2 file system is mounted"


def link_kind(kind: str) -> Callable[[], str]:
    """Whether interfaces of a kind can be made; their module is loaded if there is one."""

    def probe() -> str:
        if reason := namespace("--net")():
            return reason
        modules.offer(kind)
        from pyroute2.netlink.exceptions import NetlinkError

        from tests.support.host import network

        with network.namespace():
            try:
                network.make(kind)
            except NetlinkError as error:
                return f"{kind} interfaces: {errno_name(error.code)}"
        return ""

    return probe


def clsact() -> str:
    if reason := namespace("--net")():
        return reason
    from purebpf.errors import KernelError
    from purebpf.syscall.netlink import EGRESS, Route, TcFilter
    from tests.support.host import network

    modules.offer("sch_ingress", "cls_bpf")
    with network.namespace(), Route() as route:
        loopback = socket.if_nametoindex("lo")
        try:
            route.add_clsact(loopback)
            route.add_filter(loopback, TcFilter(EGRESS, 1, 1), 0x7FFFFFFF, "none")
        except KernelError as error:  # EBADF: that is not a program, and cls_bpf is there
            return "" if error.errno == errno.EBADF else str(error)
    return "a filter without a program was taken"


def namespace(*options: str) -> Callable[[], str]:
    def probe() -> str:
        command = ["unshare", *options, "true"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return "unshare is not installed"
        return done.stderr.strip()

    return probe


def browser() -> str:
    if importlib.util.find_spec("selenium") is None:
        return "selenium is not installed"
    return program_on_path("chromium")() or program_on_path("chromedriver")()
