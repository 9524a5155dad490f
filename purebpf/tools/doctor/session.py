"""The live part of `purebpf doctor`: everything is read or tried, nothing is changed."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator

from purebpf.errors import KernelError, PurebpfError
from purebpf.loader.features import features
from purebpf.loader.features.attach_features import KINDS
from purebpf.loader.host.process_limits import locked_memory
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.observe.symbols.debuginfod import servers
from purebpf.observe.symbols.source_lines import find_tool
from purebpf.syscall import pmu, proc, tracefs
from purebpf.tools.doctor.commands import obstacles
from purebpf.tools.doctor.model import Answer, Command, Fact, Report

__all__ = ["examine"]

_CAPABILITIES = {
    "CAP_BPF": (39, "maps and programs"),
    "CAP_PERFMON": (38, "tracing programs, perf events, kernel addresses in programs"),
    "CAP_NET_ADMIN": (12, "networking programs"),
    "CAP_SYS_ADMIN": (21, "all of these; opening by id; detached tracefs"),
    "CAP_SYS_RESOURCE": (24, "raising RLIMIT_MEMLOCK"),
    "CAP_SYS_PTRACE": (19, "symbols of other users' processes"),
    "CAP_SYSLOG": (34, "kernel addresses while kernel.kptr_restrict is 1"),
}
_SYSCTLS = {
    "kernel.unprivileged_bpf_disabled": "0: any user can load some programs; 1, 2: none can",
    "kernel.perf_event_paranoid": "above 1, users cannot profile the kernel without CAP_PERFMON",
    "kernel.kptr_restrict": "2 hides kernel symbols from all processes",
    "kernel.perf_event_max_stack": "maximum frames of a stack",
    "kernel.perf_event_max_sample_rate": "maximum samples a second",
    "kernel.perf_event_mlock_kb": "ring memory of a user without CAP_IPC_LOCK",
    "kernel.bpf_stats_enabled": "1: run time statistics are always on",
    "net.core.bpf_jit_enable": "1: the JIT compiles programs",
    "net.core.bpf_jit_harden": "2: the JIT blinds constants for all users, which costs time",
    "net.core.bpf_jit_kallsyms": "1: programs have names in /proc/kallsyms",
    "net.core.bpf_jit_limit": "bytes of compiled programs",
}

_ATTACHMENTS = "attachments"
"""Some need no bpf(2) to be found."""


def examine() -> Report:
    """Look at this machine as this user sees it. Takes about a second."""
    answers = tuple(_features())
    uname = os.uname()
    return Report(
        kernel=f"{uname.sysname} {uname.release} {uname.machine}",
        user=tuple(_user()),
        settings=tuple(_settings()),
        machine=tuple(_machine()),
        asked=any(answer.supported for answer in answers if answer.group != _ATTACHMENTS),
        features=answers,
        commands=tuple(Command(name, reasons) for name, reasons in obstacles()),
    )


def _user() -> Iterator[Fact]:
    status = proc.status() or {}
    held = int(status.get("CapEff", "0"), 16)
    yield Fact("uid", status.get("Uid", "").split()[1] if status.get("Uid") else "unknown")
    for name, (bit, use) in _CAPABILITIES.items():
        yield Fact(name, "yes" if held & 1 << bit else "no", use)
    soft, hard = (_limit(limit) for limit in locked_memory())
    yield Fact("RLIMIT_MEMLOCK", f"{soft} (hard {hard})", "limits BPF before Linux 5.11")
    yield Fact("seccomp", status.get("Seccomp", "unknown"), "0: no seccomp filter is active")
    mapped = proc.uid_map()
    yield Fact("user namespace", mapped or "unknown", "0 0 4294967295 is the initial one")


def _limit(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else str(value)


def _settings() -> Iterator[Fact]:
    for name, meaning in _SYSCTLS.items():
        try:
            value = proc.sysctl(name)
        except KernelError as error:
            value = "hidden from users" if error.errno == errno.EACCES else str(error)
        yield Fact(name, "not on this kernel" if value is None else value, meaning)
    yield Fact("lockdown", proc.lockdown() or "not shown", "none: not locked down")


def _machine() -> Iterator[Fact]:
    yield Fact("CPUs online", proc.cpu_list("online") or "unknown")
    yield Fact("CPUs possible", proc.cpu_list("possible") or "unknown")
    try:
        yield Fact("kernel BTF", f"{len(kernel_btf()):,} types", "CO-RE works")
    except PurebpfError as error:
        yield Fact("kernel BTF", "no", f"{error}; load(btf=FILE) takes types from a file")
    mounts = {kind: path for path, kind in reversed(proc.mounts())}
    mounted = tracefs.mount_point()
    yield Fact("tracefs", mounted or "not readable", "" if mounted else _explain_unmounted())
    pins = mounts.get("bpf")
    yield Fact("bpffs", pins or "not mounted", "" if pins else "needed to pin only")
    hardware = pmu.attribute("cpu", "type")
    yield Fact(
        "hardware counters",
        "yes" if hardware is not None else "no",
        "" if hardware is not None else "profiles use the CPU clock",
    )
    tool = find_tool()
    yield Fact(
        "source lines",
        tool.path if tool else "no",
        "--lines" if tool else "--lines needs llvm-symbolizer or addr2line",
    )
    asked = servers()
    yield Fact(
        "debuginfod",
        " ".join(asked) or "no servers",
        "--debuginfod asks them" if asked else "DEBUGINFOD_URLS names them for --debuginfod",
    )


def _explain_unmounted() -> str:
    try:
        with tracefs.open_tracefs():
            return "read unmounted"
    except PurebpfError as error:
        return str(error)


def _features() -> Iterator[Answer]:
    groups = {"program type ": "program types", "map type ": "map types", "BTF kind ": "BTF"}
    for feature in features.all_features():
        group = next(
            (title for start, title in groups.items() if feature.name.startswith(start)), ""
        )
        yield Answer(group or "other", *feature)
    for kind in KINDS:
        yield Answer(_ATTACHMENTS, *features.have_attach(kind))
