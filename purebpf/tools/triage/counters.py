"""Counters of the machine and of its cgroups, read before and after."""

from __future__ import annotations

import os
from collections.abc import Iterator

from purebpf.findings.facts import Cgroup
from purebpf.measure.cpu_limits import read_cpu_limit
from purebpf.measure.proc_files import read_text, words

__all__ = ["machine_counters", "read_cgroups", "since"]

_TICK = os.sysconf("SC_CLK_TCK")
_CPU = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_ROOTS = (
    *("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu"),
    *("/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory"),
)
"""Of both versions of cgroups: cgroups(7)."""
_MOST_CGROUPS = 5000
_NO_LIMIT = 1 << 60
"""Version 1 has a number for it that depends on the size of a page."""


def machine_counters() -> dict[str, float]:
    """Seconds of /proc/stat by name, and counters of /proc/net/snmp, netstat and /proc/vmstat."""
    counters: dict[str, float] = {}
    for line in read_text("/proc/stat").splitlines():
        name, *values = line.split()
        if name == "cpu":
            counters |= zip(_CPU, (int(value) / _TICK for value in values), strict=False)
        elif name in ("ctxt", "processes"):
            counters[name] = float(values[0])
    for path in ("/proc/net/snmp", "/proc/net/netstat"):
        counters |= _pairs(read_text(path))
    for name, value in words("/proc/vmstat"):
        if name in ("oom_kill", "pswpin", "pswpout", "allocstall_normal"):
            counters[name] = float(value)
    return counters


def _pairs(text: str) -> dict[str, float]:
    """Lines in pairs, of names and of values; the first word of both is the protocol."""
    lines = text.splitlines()
    counters: dict[str, float] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        protocol, *rest = names.split()
        numbers = map(float, values.split()[1:])
        counters |= {
            protocol.rstrip(":") + name: number for name, number in zip(rest, numbers, strict=False)
        }
    return counters


def read_cgroups() -> dict[str, Cgroup]:
    """The cgroups that have a limit of CPU time or memory, by path."""
    found: dict[str, Cgroup] = {}
    for folder, files in _folders():
        cgroup = Cgroup(folder)
        if "cpu.stat" in files:
            cgroup = _with_cpu(cgroup)
        if "memory.events" in files or "memory.failcnt" in files:
            cgroup = _with_memory(cgroup, files)
        if cgroup.quota_cpus or cgroup.memory_limit or cgroup.memory_high:
            found[folder] = cgroup
    return found


def _folders() -> Iterator[tuple[str, set[str]]]:
    seen: set[str] = set()
    for root in _ROOTS:
        for folder, below, files in os.walk(root):
            if folder == "/sys/fs/cgroup" and "cgroup.procs" not in files:
                below.clear()  # the mount points of version 1
            real = os.path.realpath(folder)
            if real in seen or len(seen) > _MOST_CGROUPS:
                continue
            seen.add(real)
            yield folder, set(files)


def _with_cpu(cgroup: Cgroup) -> Cgroup:
    limit = read_cpu_limit(cgroup.path)
    return cgroup._replace(
        quota_cpus=limit.quota_cpus,
        periods=limit.periods,
        throttled=limit.throttled,
        throttled_s=limit.throttled_s,
    )


def _with_memory(cgroup: Cgroup, files: set[str]) -> Cgroup:
    path = cgroup.path
    if "memory.failcnt" in files:
        limit, hits = _number(f"{path}/memory.limit_in_bytes"), _number(f"{path}/memory.failcnt")
        events = dict(words(f"{path}/memory.oom_control"))
        used = _number(f"{path}/memory.usage_in_bytes")
        high, high_hits = _NO_LIMIT, 0
    else:
        events = dict(words(f"{path}/memory.events"))
        limit, hits = _number(f"{path}/memory.max"), int(events.get("max", 0))
        high, high_hits = _number(f"{path}/memory.high"), int(events.get("high", 0))
        used = _number(f"{path}/memory.current")
    return cgroup._replace(
        memory_limit=0 if limit >= _NO_LIMIT else limit,
        memory_used=used,
        memory_hits=hits,
        memory_high=0 if high >= _NO_LIMIT else high,
        high_hits=high_hits,
        oom_kills=int(events.get("oom_kill", 0)),
    )


def _number(path: str) -> int:
    text = read_text(path).strip()
    return int(text) if text.isdigit() else _NO_LIMIT


def since(now: dict[str, Cgroup], before: dict[str, Cgroup]) -> tuple[Cgroup, ...]:
    """The cgroups of now, with their counters since another reading."""
    grown = []
    for path, cgroup in now.items():
        then = before.get(path, Cgroup(path))
        grown.append(
            cgroup._replace(
                periods=cgroup.periods - then.periods,
                throttled=cgroup.throttled - then.throttled,
                throttled_s=cgroup.throttled_s - then.throttled_s,
                memory_hits=cgroup.memory_hits - then.memory_hits,
                high_hits=cgroup.high_hits - then.high_hits,
                oom_kills=cgroup.oom_kills - then.oom_kills,
            )
        )
    return tuple(grown)
