"""Calls that fail and are tried again."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import CallCount
from purebpf.findings.finding import Finding
from purebpf.findings.rules.call_groups import by_family, members
from purebpf.findings.words import call_site, describe_site, share
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
_SENDS = frozenset({"sendto", "sendmsg", "sendmmsg", "write", "writev"})
_OPENS = frozenset({"open", "openat", "openat2", "creat"})
_CHANGES = frozenset(
    {
        *("mkdir", "mkdirat", "unlink", "unlinkat", "rename", "renameat", "renameat2", "link"),
        *("chown", "fchown", "chmod", "fchmod", "truncate", "ftruncate", "symlink", "mount"),
    }
)
_TRANSFERS = _SENDS | {"read", "readv", "pread64", "pwrite64", "recvfrom", "recvmsg", "fsync"}
_HARD_FOR: dict[int, frozenset[str]] = {
    errno.EADDRINUSE: frozenset({"bind", "listen"}),
    errno.EMSGSIZE: _SENDS,
    errno.EACCES: _OPENS | _CHANGES | {"bind", "execve", "kill", *_SENDS},
    errno.EPERM: _OPENS | _CHANGES | {"bind", "execve", "kill", "tgkill", "connect", *_SENDS},
    errno.EBADF: _TRANSFERS,
    errno.ENXIO: frozenset({*_OPENS, "sendto"}),
    errno.EBUSY: _CHANGES,
    errno.ENOLCK: frozenset({"fcntl", "flock"}),
    errno.EXDEV: frozenset({"rename", "renameat", "renameat2", "link", "linkat"}),
}
"""Errors that a program does not expect of some calls; of others, they are answers."""
_MOSTLY_FAILS, _OFTEN = 0.3, 0.8
"""The part of such calls that fails, and failures a second, from which it is no probing."""
_STARTS = frozenset({"clone", "clone3", "fork", "vfork", "io_setup", "timer_create", "execve"})
"""Calls that fail with EAGAIN where a limit is met, of processes or threads for example."""
_CLOSES, _CLOSE_S = 20_000.0, 2e-7
"""Closes a second of descriptors that are not open, and what one costs at least."""
_RATE, _SHARE, _MANY = 0.3, 0.05, 20.0
_NOT_TRIED_AGAIN = frozenset({"futex", "rt_sigtimedwait", "wait4", "rt_sigreturn"})
_MEMORY = compile_later(r"/proc/\d+/(task/\d+/)?mem")
_STDERR = 2
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
        site = describe_site(evidence, (count.pid,), count.call.rstrip("64").replace("from", ""))
        yield Finding(
            *("spin", evidence.process(count.pid).comm, (count.pid,), cpus),
            f"spins: {count.call} fails with EAGAIN {rate:.0f} times a second, "
            f"{share(count.times, attempts)} of its calls",
            (site, f"{cpus:.2f} CPUs: it asks without waiting"),
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
        is_odd = count.call in _HARD_FOR.get(count.error, ())
        if (
            (count.error not in _HARD and not is_limit and not is_odd)
            or rate < _RATE
            or count.pid not in evidence.processes
            or _reads_other_memory(evidence, count)
        ):
            continue
        attempts = _attempts(evidence, count)
        if is_odd and (rate < _OFTEN or count.times < _MOSTLY_FAILS * attempts):
            continue
        if is_odd and _asks_for_state(evidence, count):
            continue
        if count.times < _SHARE * attempts and rate < _MANY:
            continue
        process = evidence.process(count.pid)
        site = describe_site(evidence, (count.pid,), count.call.removesuffix("at"))
        yield Finding(
            *("errors", process.comm, (count.pid,), min(1.0, 0.3 + rate / 100)),
            f"{count.call} fails with {errno.errorcode.get(count.error, count.error)} "
            f"({_meaning(count)}) {rate:.1f} times a second, "
            f"{share(count.times, attempts)} of its calls",
            (_files(evidence, count), site),
            ("trace", "-p", str(count.pid)),
        )


def _asks_for_state(evidence: Evidence, count: CallCount) -> bool:
    """Return True for a monitor that may not see other users' processes in /proc, or a terminal."""
    paths = [one for one in evidence.facts.paths if one.pid == count.pid]
    state = sum(one.times for one in paths if one.path.startswith(_SAYS_WHERE))
    return count.call in _OPENS and state * 2 > sum(one.times for one in paths)


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
    errno.EADDRINUSE: "somebody else has that port or address",
    errno.EMSGSIZE: "the message is too large for a datagram",
    errno.EACCES: "no permission",
    errno.EPERM: "not permitted",
    errno.EBADF: "the descriptor is not open, or not for that",
    errno.ENXIO: "nobody has the other end open",
    errno.EBUSY: "it is in use",
    errno.ENOLCK: "no locks left",
    errno.EXDEV: "the two paths are on different file systems",
}
_MAPS = ("mmap", "mprotect", "mremap", "munmap", "brk", "madvise")
_MEANINGS_FOR: dict[tuple[str, int], str] = {
    ("inotify_add_watch", errno.ENOSPC): "the limit of watches: fs.inotify.max_user_watches",
    ("inotify_init", errno.EMFILE): "the limit of instances: fs.inotify.max_user_instances",
    ("inotify_init1", errno.EMFILE): "the limit of instances: fs.inotify.max_user_instances",
    ("fanotify_mark", errno.ENOSPC): "the limit of marks: fs.fanotify.max_user_marks",
    ("epoll_ctl", errno.ENOSPC): "the limit of watches: fs.epoll.max_user_watches",
    ("mlock", errno.ENOMEM): "the limit of locked memory: ulimit -l",
    ("mlock2", errno.ENOMEM): "the limit of locked memory: ulimit -l",
    ("mlockall", errno.ENOMEM): "the limit of locked memory: ulimit -l",
    ("semget", errno.ENOSPC): "the limit of semaphores: kernel.sem",
    ("shmget", errno.ENOSPC): "the limit of shared memory: kernel.shmmni, kernel.shmall",
    ("msgget", errno.ENOSPC): "the limit of message queues: kernel.msgmni",
    ("mq_open", errno.ENOSPC): "the limit of message queues: fs.mqueue.queues_max",
    ("mq_open", errno.EMFILE): "the limit of message queues: ulimit -q",
    ("unshare", errno.ENOSPC): "the limit of namespaces: user.max_*_namespaces",
    ("clone", errno.ENOSPC): "the limit of namespaces: user.max_*_namespaces",
    ("add_key", errno.EDQUOT): "the quota of keys: kernel.keys.maxkeys",
    ("io_setup", errno.EAGAIN): "the limit of asynchronous I/O: fs.aio-max-nr",
    ("timer_create", errno.EAGAIN): "the limit of pending signals: ulimit -i",
    ("write", errno.EFBIG): "a file as large as ulimit -f allows",
    ("pwrite64", errno.EFBIG): "a file as large as ulimit -f allows",
    ("open", errno.ENXIO): "nobody reads the named pipe",
    ("openat", errno.ENXIO): "nobody reads the named pipe",
    ("write", errno.EPIPE): "nobody reads the pipe or connection",
    **{
        (call, errno.ENOMEM): "no memory, or the limit of mappings (vm.max_map_count) or of "
        "memory (ulimit -v)"
        for call in _MAPS
    },
}


def _meaning(count: CallCount) -> str:
    special = _MEANINGS_FOR.get((count.call, count.error))
    return special or _MEANINGS[count.error]


def _files(evidence: Evidence, count: CallCount) -> str:
    """Paths that the failing calls may be about: given to them, or open; standard output last."""
    given = [
        one.path
        for one in sorted(evidence.facts.paths, key=lambda one: -one.times)
        if one.pid == count.pid
        and one.path.startswith("/")
        and not one.path.startswith(_SAYS_WHERE)
    ]
    links = evidence.facts.descriptors.get(count.pid, {})
    opened = dict.fromkeys(
        links[fd]
        for fd in sorted(links, key=lambda fd: (fd <= _STDERR, fd))
        if links[fd].startswith("/") and not links[fd].startswith(_SAYS_WHERE)
    )
    files = [*dict.fromkeys([*[*opened][:2], *given[:2]])][:2]
    command = evidence.process(count.pid).command
    text = f"files: {', '.join(files)}; " if files else ""
    return f"{text}command: {command[:60]}" if command else text
