"""Calls that fail and are tried again."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import CallCount
from purebpf.findings.finding import Finding
from purebpf.findings.rules.call_groups import by_family, members
from purebpf.findings.words import call_site, share
from purebpf.late_pattern import compile_later

__all__ = ["closed_in_vain", "errors", "spinning"]

_SPINS = 2000.0
"""Failures a second of who asks without waiting."""
_SPIN_CPUS = 0.2
_HARD = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOMEM),
        *(errno.ENOBUFS, errno.EROFS, errno.EPIPE, errno.EFBIG, errno.EADDRNOTAVAIL, errno.ENODEV),
    }
)
"""Errors that a program does not expect."""
_STARTS = frozenset({"clone", "clone3", "fork", "vfork"})
"""Calls that fail with EAGAIN where a limit of processes or threads is met: fork(2)."""
_CLOSES, _CLOSE_S = 20_000.0, 2e-7
"""Closes a second of descriptors that are not open, and what one costs at least."""
_RATE, _SHARE, _MANY = 0.3, 0.05, 20.0
_NOT_TRIED_AGAIN = frozenset({"futex", "rt_sigtimedwait", "wait4", "rt_sigreturn"})
_MEMORY = compile_later(r"/proc/\d+/(task/\d+/)?mem")
_SAYS_WHERE = ("/dev/", "/proc/", "/sys/")


def _attempts(evidence: Evidence, count: CallCount) -> int:
    return evidence.count_calls((count.pid,), (count.call,))


def spinning(evidence: Evidence) -> Iterator[Finding]:
    """A thread asks again and again instead of waiting: nearly all of its calls say EAGAIN."""
    for count in evidence.facts.calls:
        rate = count.times / evidence.elapsed_s
        if count.error != errno.EAGAIN or count.call in _NOT_TRIED_AGAIN or rate < _SPINS:
            continue
        attempts = _attempts(evidence, count)
        cpus = evidence.cpu_of[count.pid]
        if count.pid not in evidence.processes or count.times < 0.8 * attempts or cpus < _SPIN_CPUS:
            continue
        function = call_site(evidence, (count.pid,), count.call.rstrip("64").replace("from", ""))
        yield Finding(
            *("spin", evidence.process(count.pid).comm, (count.pid,), cpus),
            f"spins: {count.call} fails with EAGAIN {rate:.0f} times a second, "
            f"{share(count.times, attempts)} of its calls",
            (f"in {function}" if function else "", f"{cpus:.2f} CPUs: it asks without waiting"),
            ("summary", "-x", "-p", str(count.pid)),
        )


def closed_in_vain(evidence: Evidence) -> Iterator[Finding]:
    """A child closes every number that a descriptor may have, up to a large limit."""
    for family, counts in by_family(evidence).items():
        closes = [one for one in counts if one.call == "close" and one.error == errno.EBADF]
        rate = sum(one.times for one in closes) / evidence.elapsed_s
        if rate < _CLOSES:
            continue
        callers = {one.pid for one in closes}
        living, pids = callers & evidence.processes.keys(), members(evidence, family, closes)
        children_s = sum(evidence.process(pid).children_cpu_s for pid in pids)
        cpus = sum(evidence.cpu_of[pid] for pid in living) + children_s / evidence.elapsed_s
        function = call_site(evidence, pids, "close")
        yield Finding(
            *("errors", family[0], pids, max(rate * _CLOSE_S, cpus)),
            f"closes {rate:.0f} descriptors a second that are not open (EBADF)"
            + (", in children that end soon" if not living else ""),
            (
                f"in {function}" if function else "",
                f"{max(one.times for one in closes)} in one process; close_range(2) is one call",
                f"{cpus:.2f} CPUs",
            ),
            ("summary", "-x", "-p", str(pids[0])),
        )


def errors(evidence: Evidence) -> Iterator[Finding]:
    """Calls fail for want of something: disk space, descriptors, memory."""
    for count in evidence.facts.calls:
        rate = count.times / evidence.elapsed_s
        is_limit = count.error == errno.EAGAIN and count.call in _STARTS
        if (
            (count.error not in _HARD and not is_limit)
            or rate < _RATE
            or count.pid not in evidence.processes
            or _reads_other_memory(evidence, count)
        ):
            continue
        attempts = _attempts(evidence, count)
        if count.times < _SHARE * attempts and rate < _MANY:
            continue
        process = evidence.process(count.pid)
        function = call_site(evidence, (count.pid,), count.call.removesuffix("at"))
        yield Finding(
            *("errors", process.comm, (count.pid,), min(1.0, 0.3 + rate / 100)),
            f"{count.call} fails with {errno.errorcode.get(count.error, count.error)} "
            f"({_meaning(count.error)}) {rate:.1f} times a second, "
            f"{share(count.times, attempts)} of its calls",
            (_files(evidence, count), f"in {function}" if function else ""),
            ("trace", "-p", str(count.pid)),
        )


def _reads_other_memory(evidence: Evidence, count: CallCount) -> bool:
    """Return True for a debugger or profiler: /proc/PID/mem says EIO where nothing is mapped."""
    links = evidence.facts.descriptors.get(count.pid, {}).values()
    return count.error == errno.EIO and any(map(_MEMORY.fullmatch, links))


_MEANINGS = {
    errno.EAGAIN: "a limit of processes or threads: pids.max, ulimit -u",
    errno.ENOSPC: "no space left on the device",
    errno.EDQUOT: "disk quota used up",
    errno.EMFILE: "too many open files of this process",
    errno.ENFILE: "too many open files",
    errno.EIO: "input/output error",
    errno.ENOMEM: "no memory",
    errno.ENOBUFS: "no buffers",
    errno.EROFS: "read-only file system",
    errno.EPIPE: "nobody reads the pipe",
    errno.EFBIG: "file too large",
    errno.EADDRNOTAVAIL: "no free port",
    errno.ENODEV: "no such device",
}


def _meaning(number: int) -> str:
    return _MEANINGS[number]


def _files(evidence: Evidence, count: CallCount) -> str:
    """Paths that the failing calls may be about: given to them, or open."""
    given = [
        one.path
        for one in sorted(evidence.facts.paths, key=lambda one: -one.times)
        if one.pid == count.pid
        and one.path.startswith("/")
        and not one.path.startswith(_SAYS_WHERE)
    ]
    opened = [
        link
        for link in evidence.facts.descriptors.get(count.pid, {}).values()
        if link.startswith("/") and not link.startswith(_SAYS_WHERE)
    ]
    files = [*dict.fromkeys([*opened[:2], *given[:2]])][:2]
    command = evidence.process(count.pid).command
    text = f"files: {', '.join(files)}; " if files else ""
    return f"{text}command: {command[:60]}" if command else text
