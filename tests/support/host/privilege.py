"""Running a command with fewer privileges than root has."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.support.environment import ROOT, mounted, run, said
from tests.support.probe_kernel import memory_by_cgroup

__all__ = [
    "PLAIN_TRACEPOINTS",
    "USERS",
    "as_user",
    "least_user",
    "reachable",
    "run_as",
    "worked",
]

_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def _with(*capabilities: str) -> tuple[str, ...]:
    names = ",".join(("-all", *(f"+{name}" for name in capabilities)))
    return (*_NOBODY, f"--inh-caps={names}", f"--ambient-caps={names}", f"--bounding-set={names}")


PLAIN_TRACEPOINTS = ("open",)
"""Commands that attach by a number of tracefs, and so need the right to enter it."""

USERS: dict[str, tuple[str, ...]] = {
    "ordinary": _with(),
    "bpf and perfmon": _with("bpf", "perfmon"),
    "bpf, perfmon and tracefs": _with("bpf", "perfmon", "dac_read_search"),
    "bpf only": _with("bpf"),
    "root without sys_resource": (
        # 64 KiB is what Linux before 5.11 grants by default, and counts BPF against
        *("prlimit", "--memlock=65536:65536"),
        *("setpriv", "--bounding-set=-sys_resource"),
    ),
}


def least_user(name: str) -> str:
    """The one of `USERS` with no more than a command needs: plain tracepoints need tracefs."""
    return "bpf, perfmon and tracefs" if name in PLAIN_TRACEPOINTS else "bpf and perfmon"


def as_user(user: str) -> tuple[str, ...]:
    """What comes before a command that one of `USERS` runs."""
    lifted = _lifted() if user.startswith("bpf") else ()
    return (*reachable(), *lifted, *USERS[user])


def run_as(name: str, user: str) -> subprocess.CompletedProcess[str]:
    """Run a command as one of `USERS`."""
    return run(name, prefix=as_user(user))


@cache
def _lifted() -> tuple[str, ...]:
    """What such a user must be given where BPF counts against the memory a process may lock."""
    return ("prlimit", "--memlock=unlimited:unlimited") if memory_by_cgroup() else ()


def worked(result: subprocess.CompletedProcess[str]) -> bool:
    """Whether a command of a user with CAP_BPF and CAP_PERFMON printed its result.

    Above 2, kernel.perf_event_paranoid does not let such a user have perf events where the kernel
    is Debian's: then the one paragraph that says so is as good.
    """
    paranoid = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if paranoid > 2 and result.returncode == 1:
        text = said(result)
        assert re.fullmatch(
            r"purebpf\.\w+: event [\w-]+ of every process on CPU 0: perf_event_open failed "
            rf"with EACCES\. kernel\.perf_event_paranoid is {paranoid}; above 2, the kernels of "
            r"Debian and Ubuntu require CAP_SYS_ADMIN\. "
            r"allow it: sudo sysctl kernel\.perf_event_paranoid=2",
            text,
        ), text
        return result.stdout == ""
    assert result.returncode == 0, result.stderr
    return bool(result.stdout and re.search(r"^lost: ", result.stderr, re.MULTILINE))


def reachable() -> tuple[str, ...]:
    """A mount namespace in which every user can reach Python, its packages and the tree.

    They may be in a home that other users may not enter; that is covered with a folder
    that has nothing but them.
    """
    needed = {Path(sys.base_prefix), Path(sys.prefix), ROOT}
    closed = {path: top for path in needed if (top := _closed(path)) is not None}
    if not closed:
        return ()
    lines = ["aside=$(mktemp -d)", 'mount -t tmpfs -o mode=755 tmpfs "$aside"']
    for number, path in enumerate(closed):
        lines += [f'mkdir "$aside/{number}"', f"mount --bind '{path}' \"$aside/{number}\""]
    lines += [f"mount -t tmpfs -o mode=755 tmpfs '{top}'" for top in sorted(set(closed.values()))]
    for number, path in enumerate(closed):
        lines += [f"mkdir -p '{path}'", f"mount --move \"$aside/{number}\" '{path}'"]
    lines.append(f"cd '{ROOT}'")
    return mounted(*lines)


def _closed(path: Path) -> Path | None:
    """The outermost folder above `path` that others may not enter."""
    for folder in reversed(path.resolve().parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            return folder
    return None
