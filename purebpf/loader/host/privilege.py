"""The reason for an EPERM of the kernel: facts of this host, and the one command that helps.

The rules come from kernel/bpf/syscall.c (CAP_BPF and CAP_PERFMON since Linux 5.8: commit
a17b53c4a4b5 and commit c9e0924e5c2b; CAP_SYS_ADMIN includes both; uprobes of the PMU again need
CAP_SYS_ADMIN since Linux 6.16: commit ba677dbe77af), from security/lockdown, and from
RLIMIT_MEMLOCK, which limited maps and programs before Linux 5.11 (commit 97306be45fbe).
"""

from __future__ import annotations

import sys

from purebpf.errors import KernelError
from purebpf.loader.host.process_limits import locked_memory
from purebpf.syscall import proc
from purebpf.tuples import NamedTuple

__all__ = [
    "Host",
    "advice",
    "explain_eperm",
    "has",
    "perf_needs_admin",
    "read_host",
    "uprobe_needs_admin",
]

_BITS = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21, "CAP_PERFMON": 38, "CAP_BPF": 39}
_PARENT_HAS_ALL = "0 0 4294967295"


class Host(NamedTuple):
    """The facts that decide about permission; None where this kernel lacks them.

    `capabilities` is CapEff, `uid_map` the process's user namespace, `seccomp` the mode of
    seccomp(2), `memlock` the soft RLIMIT_MEMLOCK in bytes (None: unlimited).
    """

    capabilities: int
    last_capability: int
    uid_map: str | None
    seccomp: int
    lockdown: str | None
    unprivileged_bpf_disabled: str | None
    perf_event_paranoid: str | None
    memlock: int | None
    command: str


def read_host() -> Host:
    """Read it all, for this process."""
    import resource  # only when something was refused
    import shlex

    status = proc.status() or {}
    soft, _ = locked_memory()
    return Host(
        capabilities=int(status.get("CapEff", "0"), 16),
        last_capability=int(proc.sysctl("kernel.cap_last_cap") or 0),
        uid_map=proc.uid_map(),
        seccomp=int(status.get("Seccomp", "0")),
        lockdown=proc.lockdown(),
        unprivileged_bpf_disabled=proc.sysctl("kernel.unprivileged_bpf_disabled"),
        perf_event_paranoid=proc.sysctl("kernel.perf_event_paranoid"),
        memlock=None if soft == resource.RLIM_INFINITY else soft,
        command=shlex.join(_command()),
    )


def advice(host: Host, *needed: str) -> tuple[str, str]:
    """Why a call that needs the capabilities `needed` ("CAP_BPF", ...) was refused, and the fix.

    The first reason that holds is returned; the second string may be empty.
    """
    missing = _missing(host, needed)
    if missing:
        return _lacks(host, missing), f"run it as root: sudo {host.command}"
    if host.uid_map not in (None, _PARENT_HAS_ALL):
        why = "this process has its capabilities in a user namespace only (a rootless container)"
        fix = "run it outside, or in a container that root starts with --privileged"
        if "CAP_BPF" in needed:
            fix += ", or where BPF is delegated: load(..., token=)"
        return why, fix
    held = " and ".join(needed)
    why = f"this process has {held}: a security module, or a rule of the call itself, refuses it"
    facts, fixes = _restrictions(host, needed)
    if facts:
        why += f". Read on this host: {'; '.join(facts)}"
    return why, "; ".join(fixes)


def _restrictions(host: Host, needed: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Yield other possible reasons, and the remedy for each. Each concerns only some calls."""
    facts, fixes = [], []
    if host.lockdown not in (None, "none", ""):
        facts.append(f"the kernel is locked down (/sys/kernel/security/lockdown: {host.lockdown})")
        fixes.append("boot with lockdown=none, or with Secure Boot off")
    if host.seccomp:
        facts.append(f"a seccomp filter is active (/proc/self/status: Seccomp {host.seccomp})")
        fixes.append("start the container with --security-opt seccomp=unconfined")
    if not facts and host.memlock is not None and "CAP_BPF" in needed:
        facts.append(f"RLIMIT_MEMLOCK is {host.memlock} bytes, which limits BPF before Linux 5.11")
        fixes.append("raise it in the shell: ulimit -l unlimited")
    return facts, fixes


def advise_or(*needed: str, otherwise: str) -> tuple[str, str]:
    """As `advice` on this host, for an EPERM that has another cause when nothing is missing."""
    host = read_host()
    return (otherwise, "") if has(host, *needed) else advice(host, *needed)


def has(host: Host, *needed: str) -> bool:
    """Return True if the process has these capabilities, and not only in a user namespace."""
    return not _missing(host, needed) and host.uid_map in (None, _PARENT_HAS_ALL)


def _missing(host: Host, needed: tuple[str, ...]) -> list[str]:
    if host.capabilities & 1 << _BITS["CAP_SYS_ADMIN"]:
        return [name for name in needed if name == "CAP_NET_ADMIN" and not _has(host, name)]
    if host.last_capability < _BITS["CAP_BPF"]:
        return ["CAP_SYS_ADMIN"]
    return [name for name in needed if not _has(host, name)]


def _has(host: Host, name: str) -> bool:
    return bool(host.capabilities & 1 << _BITS[name])


def _lacks(host: Host, missing: list[str]) -> str:
    why = f"this process lacks {' and '.join(missing)} (CapEff {host.capabilities:#x})"
    if "CAP_PERFMON" in missing and host.perf_event_paranoid is not None:
        why += f"; kernel.perf_event_paranoid is {host.perf_event_paranoid}"
    if host.unprivileged_bpf_disabled not in (None, "0"):
        why += f"; kernel.unprivileged_bpf_disabled is {host.unprivileged_bpf_disabled}"
    return why


def perf_needs_admin(host: Host) -> bool:
    """Return True if CAP_PERFMON does not help this process with perf events (a patch of
    Debian's).
    """
    has = {name: _has(host, name) for name in ("CAP_PERFMON", "CAP_SYS_ADMIN")}
    paranoid = int(host.perf_event_paranoid or 0)
    return has["CAP_PERFMON"] and not has["CAP_SYS_ADMIN"] and paranoid > 2


def uprobe_needs_admin(host: Host) -> bool:
    """Return True if CAP_PERFMON does not help this process with an event of the uprobe PMU.

    Commit ba677dbe77af, "perf: Revert to requiring CAP_SYS_ADMIN for uprobes" (CVE-2025-38466), in
    Linux 6.16 and the stable kernels of July 2025. Links of many uprobes do not need it.
    """
    return _has(host, "CAP_PERFMON") and not _has(host, "CAP_SYS_ADMIN")


def explain_eperm(error: KernelError, description: str, *needed: str) -> KernelError:
    """An EPERM error again, about `description`, with the reason and the fix."""
    why, fix = advice(read_host(), *needed)
    return KernelError(error.call, error.errno or 0, description, why=why, fix=fix)


def _command() -> list[str]:
    """The typed command, with the path of Python; -P imports nothing from the directory."""
    words = sys.orig_argv[1:]
    return [sys.executable, *(["-P"] if words[:1] == ["-m"] else []), *words]
