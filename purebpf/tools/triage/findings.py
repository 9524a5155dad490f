"""From what four tools measured to the lines of one screen. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from purebpf.measure.latency import Interval
from purebpf.results import Loss, Profile
from purebpf.results.formats.answer import rank
from purebpf.results.model.profile import Stack
from purebpf.results.shape.distribution import PERCENTILES, Distribution
from purebpf.results.shape.histogram import percentile
from purebpf.symbols.frame import Frame
from purebpf.symbols.short_names import merge_clones
from purebpf.tools.summary.calls import errno_name
from purebpf.tools.summary.table import Table
from purebpf.tools.triage.locks import Lock, find_locks, is_parked

__all__ = ["Failure", "Findings", "Share", "Wait", "find"]

_NOT_YET = frozenset({"EAGAIN", "EINTR", "ETIMEDOUT", "EINPROGRESS", "ERESTARTSYS"})
_WAITING_FOR_WORK = (
    *("epoll_wait", "do_epoll_wait", "do_poll", "do_select", "do_sys_poll", "hrtimer_nanosleep"),
    *("do_wait", "kernel_wait4", "sigsuspend", "pipe_read", "anon_pipe_read", "do_sigtimedwait"),
    *("inet_csk_accept", "unix_accept", "kthread_worker_fn", "worker_thread", "smpboot_thread_fn"),
    *("wait_woken", "io_cqring_wait", "rcu_gp_fqs_loop", "kswapd", "kauditd_thread", "n_tty_read"),
)
_MOST_OF_IT = 0.5
"""Of a run."""


class Share(NamedTuple):
    """A process or function, and how many CPUs it used; `percent` of all samples."""

    name: str
    pid: int
    percent: float
    cpus: float


class Wait(NamedTuple):
    """What a process waited for: seconds, added up over its threads."""

    process: str
    pid: int
    state: str
    where: str
    seconds: float
    times: int


class Failure(NamedTuple):
    """A system call that failed: how often, of how many, mostly how."""

    name: str
    failed: int
    calls: int
    error: str


class Findings(NamedTuple):
    """One screen.

    Attributes:
        elapsed_s: how long was looked.
        cpus: how many there are; `busy` of them were, on average.
        queue_us: percentiles of the time in the run queue, in microseconds, and the number of
            waits.
        queued: how many threads waited for a CPU, on average.
        losses: of each tool by the name of its command.
    """

    elapsed_s: float
    cpus: int
    busy: float
    processes: list[Share]
    functions: list[Share]
    waits: list[Wait]
    locks: list[Lock]
    queue_us: dict[str, int]
    queued: float
    failures: list[Failure]
    losses: dict[str, tuple[Loss, str]]


def find(profile: Profile, offcpu: Profile, queue: Interval, table: Table) -> Findings:
    """Everything that was found, each part with the heaviest first."""
    elapsed_s = _number(profile.about["elapsed_s"])
    frequency = _number(profile.about["frequency_hz"])
    cpus = profile.about["cpus"]
    assert isinstance(cpus, list)
    total = profile.total or 1
    per_sample = 1 / frequency / elapsed_s if elapsed_s else 0.0
    processes: Counter[tuple[str, int]] = Counter()
    for row in profile.rows():
        processes[row.labels.process_name, row.labels.pid] += row.weight
    return Findings(
        elapsed_s,
        len(cpus),
        profile.total * per_sample,
        [
            Share(name, pid, 100 * weight / total, weight * per_sample)
            for (name, pid), weight in processes.most_common()
        ],
        [
            Share(line.name, 0, 100 * line.own / total, line.own * per_sample)
            for line in rank(profile)
            if line.own
        ],
        _waits(offcpu, elapsed_s),
        find_locks(offcpu),
        _queue(queue.distributions),
        sum(waits.total_ns for waits in queue.distributions) / 1e9 / (queue.elapsed_s or 1.0),
        _failures(table),
        {
            "profile": (profile.loss, "samples"),
            "offcpu": (offcpu.loss, "times"),
            "summary": (table.loss, "calls"),
        },
    )


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _waits(profile: Profile, elapsed_s: float) -> list[Wait]:
    """Waits of threads that have something to do: not those for requests, timers and children."""
    weights: Counter[tuple[str, int, str, str]] = Counter()
    times: Counter[tuple[str, int, str, str]] = Counter()
    for row in profile.rows():
        where = _where(row.kernel)
        state = row.labels.state
        is_kernel_thread = not row.user and state in "SI"
        if is_kernel_thread or (state == "S" and _has_nothing_to_do(row.kernel)):
            continue
        each_ns = row.weight / max(1, row.marks.times)
        if is_parked(row.kernel, row.user, whole_run=each_ns > _MOST_OF_IT * elapsed_s * 1e9):
            continue
        key = row.labels.process_name, row.labels.pid, state, where
        weights[key] += row.weight
        times[key] += row.marks.times
    return [Wait(*key, weight / 1e9, times[key]) for key, weight in weights.most_common()]


def _names(kernel: Stack | None) -> list[str]:
    return [merge_clones(entry.name) for entry in kernel or () if isinstance(entry, Frame)]


def _has_nothing_to_do(kernel: Stack | None) -> bool:
    return not kernel or any(name in _WAITING_FOR_WORK for name in _names(kernel))


def _where(kernel: Stack | None) -> str:
    names = _names(kernel)
    return names[0] if names else "?"


def _queue(queue: Sequence[Distribution]) -> dict[str, int]:
    if not queue or not queue[0].durations:
        return {}
    buckets = queue[0].buckets
    percentiles = {f"p{at}": percentile(buckets, at) or 0 for at in PERCENTILES}
    return {**percentiles, "waits": queue[0].durations}


def _failures(table: Table) -> list[Failure]:
    """Failed calls by name, without the errors that say no more than "not yet"."""
    failures: list[Failure] = []
    for group in table.groups:
        for row in group.rows:
            errnos = {errno_name(number): count for number, count in row.statistics.errnos.items()}
            real = {name: count for name, count in errnos.items() if name not in _NOT_YET}
            if real:
                most = max(real, key=real.__getitem__)
                failed = sum(real.values())
                failures.append(Failure(row.call.name, failed, row.statistics.calls, most))
    return sorted(failures, key=lambda failure: -failure.failed)
