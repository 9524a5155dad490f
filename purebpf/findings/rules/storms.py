"""Thousands of cheap calls a second: small transfers, timers, signals, switches."""

from __future__ import annotations

import errno
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, seconds_of
from purebpf.findings.facts import CallCount, SignalCount
from purebpf.findings.finding import Finding
from purebpf.findings.rules.call_groups import by_family, main_pid, members
from purebpf.findings.rules.cpu import busiest_own
from purebpf.findings.words import call_site, describe_site, share

__all__ = ["calls", "signals", "small_transfers", "switches", "timers", "wakeups"]

_TRANSFERS = frozenset({"read", "write", "pread64", "pwrite64", "recvfrom", "sendto"})
_SMALL, _MANY_TRANSFERS, _TRANSFER_S = 64, 5000.0, 1.5e-6
_MESSAGE = 4
"""Bytes from which a transfer of a server may be a whole request or answer."""
_TIMERS = frozenset(
    {"clock_nanosleep", "nanosleep", "timerfd_settime", "setitimer", "timer_settime"}
)
_MANY_TIMERS, _FAST_TIMERS, _OF_A_THREAD = 1500.0, 700.0, 150.0
"""A second, of a process; of one with few threads, which timers of 1 ms wake; of each of these."""
_PART = 0.05
"""The part of the waits of a process that a thread has which matters."""
_MOST_SLEEPS = 0.4
"""The part of all sleeps that a function makes which says enough."""
_AWAKE = frozenset({"cpu", "queue"})
_LOOP_WAITS = frozenset(
    {"epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6"}
)
_SERVES = frozenset(
    {
        *("read", "write", "readv", "writev", "recvfrom", "sendto", "recvmsg", "sendmsg"),
        *("accept", "accept4", "recvmmsg", "sendmmsg", "pread64", "pwrite64", "connect"),
    }
)
_SERVED = 0.1
"""Transfers of a loop that serves somebody, by its wake-ups."""
_PYTHON_POOLS = re.compile(r"/(multiprocessing/pool|concurrent/futures/process)\.py$")
_SENDS = frozenset({"kill", "tgkill", "tkill", "rt_sigqueueinfo"})
_SIGCHLD = 17
_MANY_SIGNALS, _SIGNAL_S = 1000.0, 2e-5
_MANY_CALLS, _CALL_S = 20_000.0, 2e-6
_MANY_SWITCHES = 20_000.0
_BROADCASTS = re.compile(r"cond_broadcast|notify_?all|NotifyAll|PulseAll")
_FLOCK, _EVENLY, _AT_ONCE = 8, 0.3, 4.0
"""Threads that one thread wakes, how evenly, and how many of them by one call."""
_HERD = 0.08
"""The part of the CPU time that waking all threads of a condition takes."""
_OF_FAULTS = frozenset({4, 5, 7, 8, 11})
"""Signals that the kernel sends for what an instruction of the process does."""
_SIGNALS = {
    4: "SIGILL",
    5: "SIGTRAP",
    7: "SIGBUS",
    8: "SIGFPE",
    11: "SIGSEGV",
    10: "SIGUSR1",
    12: "SIGUSR2",
    14: "SIGALRM",
    17: "SIGCHLD",
    18: "SIGCONT",
    26: "SIGVTALRM",
    27: "SIGPROF",
    29: "SIGIO",
}


def small_transfers(evidence: Evidence) -> Iterator[Finding]:
    """Reads or writes of a few bytes, thousands a second."""
    for count in evidence.facts.calls:
        rate = count.times / evidence.elapsed_s
        if count.error or count.call not in _TRANSFERS or rate < _MANY_TRANSFERS:
            continue
        if count.pid not in evidence.processes or count.size >= _SMALL * count.times:
            continue
        if count.size >= _MESSAGE * count.times and _is_answering(evidence, count):
            continue
        word = re.sub(r"from|to$|64|^p", "", count.call)
        path = evidence.path_of(count.pid, count.fd)
        cpus = evidence.cpu_of[count.pid]
        yield Finding(
            *("small-calls", evidence.process(count.pid).comm, (count.pid,)),
            max(min(1.0, rate * _TRANSFER_S) + 0.05, 0.9 * cpus),
            f"makes {rate:.0f} {count.call} calls a second of {count.size / count.times:.0f} bytes "
            "each" + (f", {path}" if path else ""),
            (describe_site(evidence, (count.pid,), word),),
            ("summary", "-p", str(count.pid)),
        )


def _is_answering(evidence: Evidence, count: CallCount) -> bool:
    """Return True for a server that reads short requests, or answers them, on a connection.

    The connection may have been closed meanwhile.
    """
    link = evidence.facts.descriptors.get(count.pid, {}).get(count.fd, "")
    if not link:
        return evidence.connections.is_service((count.pid,))
    return link.startswith("socket:[") and evidence.connections.serves(int(link[8:-1]))


def timers(evidence: Evidence) -> Iterator[Finding]:
    """A program sets or sleeps on timers thousands of times a second."""
    for count in evidence.facts.calls:
        rate = count.times / evidence.elapsed_s
        if not _is_fast(evidence, count.pid, rate) or count.pid not in evidence.processes:
            continue
        if count.call == "futex" and count.error == errno.ETIMEDOUT:
            yield _timed_waits(evidence, count)
        if count.call not in _TIMERS:
            continue
        is_sleep = "nanosleep" in count.call
        function = _sleeper(evidence, count) if is_sleep else ""
        function = function or call_site(
            evidence, (count.pid,), "nanosleep" if is_sleep else "timer"
        )
        if is_sleep and not function:
            continue  # a runtime's own thread
        cpus = evidence.cpu_of[count.pid]
        yield Finding(
            *("timers", evidence.process(count.pid).comm, (count.pid,), max(cpus, rate * _CALL_S)),
            f"sets {rate:.0f} timers a second ({count.call})",
            (f"in {function}, {cpus:.2f} CPUs" if function else f"{cpus:.2f} CPUs",),
            ("summary", "-p", str(count.pid)),
        )


def _sleeper(evidence: Evidence, count: CallCount) -> str:
    """The own function that makes most of these sleeps, or that its threads run in between.

    "" if it did not show: a thread that sleeps seldom says nothing of the others.
    """
    stays = evidence.by_process.get(count.pid, ())
    sleeps: Counter[int] = Counter()
    functions: Counter[str] = Counter()
    for stay in stays:
        if stay.kind == "sleep":
            sleeps[stay.tid] += stay.times
            if stay.own is not None:
                functions[evidence.spell(stay.own)] += stay.times
    name, times = functions.most_common(1)[0] if functions else ("", 0)
    if times > _MOST_SLEEPS * sleeps.total():
        return name
    most = max(sleeps.values(), default=0)
    busy = {tid for tid, many in sleeps.items() if many > _EVENLY * most}
    own = busiest_own([stay for stay in stays if stay.tid in busy and stay.kind in _AWAKE])
    return evidence.spell(own) if own else ""


def _is_fast(evidence: Evidence, pid: int, rate: float) -> bool:
    """Return True for many timers, or for a thread that hardly sleeps between two."""
    if rate >= _MANY_TIMERS or rate < _FAST_TIMERS:
        return rate >= _MANY_TIMERS
    times: Counter[int] = Counter()
    for one in evidence.waits_of.get(pid, ()):
        times[one.tid] += one.times
    least = _PART * times.total()
    awake = sum(waits > least for waits in times.values())
    return rate >= _OF_A_THREAD * max(1, awake)


def _timed_waits(evidence: Evidence, count: CallCount) -> Finding:
    """A scheduler's thread waits with a time limit, and is woken by that only."""
    rate, cpus = count.times / evidence.elapsed_s, evidence.cpu_of[count.pid]
    waits: Counter[int] = Counter()
    for one in evidence.facts.waits:
        if one.pid == count.pid and one.call == "futex":
            waits[one.tid] += one.times
    tid = waits.most_common(1)[0][0] if waits else 0
    stays = evidence.by_thread.get(tid, [])
    stays = sorted((one for one in stays if one.kind == "cond"), key=lambda one: -one.times)
    where = next((f" in {evidence.spell(one.own)}" for one in stays if one.own), "")
    thread = f'thread {tid} "{stays[0].comm}"{where}, ' if stays else ""
    return Finding(
        *("timers", evidence.process(count.pid).comm, (count.pid,), max(cpus, rate * _CALL_S)),
        f"is woken by timers {rate:.0f} times a second (futex with a time limit)",
        (f"{thread}{cpus:.2f} CPUs",),
        ("offcpu", "-p", str(count.pid)),
    )


def wakeups(evidence: Evidence) -> Iterator[Finding]:
    """An event loop wakes up thousands of times a second and transfers nothing."""
    for pid, counts in evidence.calls.items():
        waits = sum(one.times for one in counts if one.call in _LOOP_WAITS and not one.error)
        served = sum(one.times for one in counts if one.call in _SERVES and not one.error)
        rate = waits / evidence.elapsed_s
        if (
            not _is_fast(evidence, pid, rate)
            or served > _SERVED * waits
            or pid not in evidence.processes
            or _keeps_a_pool(evidence, pid)
        ):
            continue
        function = call_site(evidence, (pid,), "epoll") or call_site(evidence, (pid,), "poll")
        own = busiest_own([s for s in evidence.by_process.get(pid, ()) if s.kind == "cpu"])
        function = function or (evidence.spell(own) if own else "")
        cpus = evidence.cpu_of[pid]
        yield Finding(
            *("wakeups", evidence.process(pid).comm, (pid,), max(cpus, rate * _CALL_S)),
            f"its event loop wakes up {rate:.0f} times a second and hardly reads or writes: a "
            "timer, or a descriptor that is always ready",
            (f"in {function}" if function else "", f"{cpus:.2f} CPUs"),
            ("summary", "-p", str(pid)),
        )


def _keeps_a_pool(evidence: Evidence, pid: int) -> bool:
    """Return True for a process whose only loop is the thread that looks after a pool of Python.

    It polls the pipe of the results, which another thread of the pool reads.
    """
    polls = [stay for stay in evidence.by_process.get(pid, ()) if stay.call in _LOOP_WAITS]
    return bool(polls) and all(
        stay.own is None and any(_PYTHON_POOLS.search(frame.module) for frame in stay.user)
        for stay in polls
    )


def signals(evidence: Evidence) -> Iterator[Finding]:
    """Processes get thousands of signals a second."""
    timed: Counter[tuple[int, int]] = Counter()
    for one in evidence.facts.signals:
        sent = evidence.count_calls((one.sender,), _SENDS)
        if one.receiver not in evidence.processes:
            continue
        if one.signal == _SIGCHLD:  # the kernel's, of children and of what a tracer stops
            continue
        if sent <= 0.3 * one.times:  # the interrupt of a timer came while this process ran
            timed[one.receiver, one.signal] += one.times
        elif one.times / evidence.elapsed_s >= _MANY_SIGNALS:
            yield _sent_signals(evidence, one)
    for (receiver, number), times in timed.items():
        rate = times / evidence.elapsed_s
        if rate >= _MANY_SIGNALS:
            reason = _reason(evidence, receiver, number)
            text = f"gets {rate:.0f} signals a second ({_signal_name(number)}){reason}"
            yield _signal_storm(evidence, (receiver,), rate, text)


def _reason(evidence: Evidence, pid: int, number: int) -> str:
    """A clause about signals that no process sends by a call."""
    if number in _OF_FAULTS:
        return _of_faults(evidence, pid)
    if number != signal.SIGIO:
        return " from a timer"
    senders: Counter[int] = Counter()
    for one in evidence.facts.signals:
        if (one.receiver, one.signal) == (pid, number) and one.sender != pid:
            senders[one.sender] += one.times
    who = next((evidence.name(p) for p in senders if p in evidence.processes), "")
    return ": a descriptor has O_ASYNC, and each arrival of data sends one" + (
        f"; {who} sends most data" if who else ""
    )


def _of_faults(evidence: Evidence, pid: int) -> str:
    """A clause about signals for accesses of its own code that a handler of the program expects."""
    rate = evidence.count_calls((pid,), ("mprotect",)) / evidence.elapsed_s
    protects = f", which makes {rate:.0f} mprotect calls a second" if rate > _MANY_SIGNALS else ""
    return f": faults of its own code that it handles{protects}"


def _sent_signals(evidence: Evidence, one: SignalCount) -> Finding:
    rate = one.times / evidence.elapsed_s
    what = f"{rate:.0f} signals a second ({_signal_name(one.signal)})"
    if one.sender == one.receiver:
        return _signal_storm(evidence, (one.receiver,), rate, f"sends itself {what}")
    if one.sender not in evidence.processes:
        text = f"gets {what} from a process that has ended ({one.sender})"
        return _signal_storm(evidence, (one.receiver,), rate, text)
    text = f"sends {what} to {evidence.name(one.receiver)}"
    return _signal_storm(evidence, (one.sender, one.receiver), rate, text)


def _signal_storm(evidence: Evidence, pids: tuple[int, ...], rate: float, text: str) -> Finding:
    function = call_site(evidence, pids[:1], "kill")
    if not function:
        own = Counter(evidence.spell(s.own) for s in evidence.by_process.get(pids[0], ()) if s.own)
        function = own.most_common(1)[0][0] if own else ""
    return Finding(
        *("signals", evidence.process(pids[0]).comm, pids),
        *(max(0.1, rate * _SIGNAL_S, 0.9 * evidence.cpu_of[pids[0]]), text),
        (f"in {function}" if function else "",),
        ("trace", "-p", str(pids[0])),
    )


def _signal_name(number: int) -> str:
    return _SIGNALS.get(number, f"signal {number}")


def switches(evidence: Evidence) -> Iterator[Finding]:
    """Threads hand work to each other in tiny pieces, and switch all the time."""
    waits: Counter[int] = Counter()
    for one in evidence.facts.waits:
        waits[one.pid] += one.times
    for pid, times in waits.items():
        rate = times / evidence.elapsed_s
        if rate < _MANY_SWITCHES or pid not in evidence.processes:
            continue
        own = [s for s in evidence.by_process.get(pid, ()) if s.kind not in ("cpu", "queue")]
        own.sort(key=lambda stay: -stay.times)
        kernel = Counter[str]()
        for stay in own:
            kernel[next((n for n in stay.kernel if _is_wait(n)), stay.kind)] += stay.times
        functions = dict.fromkeys(evidence.spell(stay.own) for stay in own[:8] if stay.own)
        functions = functions or _callers(evidence, pid)
        where = kernel.most_common(1)[0][0] if kernel else "?"
        yield Finding(
            *("switch-storm", evidence.process(pid).comm, (pid,), max(0.2, evidence.cpu_of[pid])),
            f"switches threads {rate:.0f} times a second, waiting in {where}"
            + _herd(evidence, pid),
            (f"between {', '.join([*functions][:3])}" if functions else "",),
            ("offcpu", "-p", str(pid)),
        )


def _callers(evidence: Evidence, pid: int) -> dict[str, None]:
    """The functions that run between the switches, where no stack of a wait was read."""
    weights: Counter[str] = Counter()
    for stay in evidence.by_process.get(pid, ()):
        if stay.kind == "cpu" and stay.own is not None:
            weights[evidence.spell(stay.own)] += round(1e6 * stay.seconds)
    return dict.fromkeys(name for name, _ in weights.most_common(3))


def _herd(evidence: Evidence, pid: int) -> str:
    """A clause about a condition that wakes all of its threads at once, if that takes long."""
    running = [stay for stay in evidence.by_process.get(pid, ()) if stay.kind == "cpu"]
    waking = [
        stay for stay in running if any(_BROADCASTS.search(frame.name) for frame in stay.user[:4])
    ]
    woken = {one.tid for one in evidence.waits_of.get(pid, ()) if one.call == "futex"}
    if not waking or seconds_of(waking) < _HERD * seconds_of(running):
        many = _woken_at_once(evidence, pid)
        return (
            f"; one thread wakes {many} others at once (a thundering herd: notify_all)"
            if many
            else ""
        )
    return f"; a condition wakes its {len(woken)} threads at once (a thundering herd: broadcast)"


def _woken_at_once(evidence: Evidence, pid: int) -> int:
    """The threads that one thread wakes with each of its calls of futex(2): 0 for fewer than 8.

    A thread that gives jobs to others in turn needs a call for each.
    """
    woken: dict[int, Counter[int]] = defaultdict(Counter)
    for one in evidence.facts.wakers:
        is_own = evidence.process_of_thread.get(one.tid) == pid == one.waker_pid
        if is_own and one.call == "futex" and one.waker_tid:
            woken[one.waker_tid][one.tid] += one.times
    if not woken:
        return 0
    by_thread = max(woken.values(), key=Counter.total)
    waits = sum(one.times for one in evidence.waits_of[pid] if one.call == "futex")
    wakes = max(1, evidence.count_calls((pid,), ("futex",)) - waits)
    is_even = min(by_thread.values()) > _EVENLY * max(by_thread.values())
    is_herd = len(by_thread) >= _FLOCK and is_even and by_thread.total() > _AT_ONCE * wakes
    return len(by_thread) if is_herd else 0


def _is_wait(name: str) -> bool:
    return bool(
        re.search(r"pipe_(read|write)|futex_wait|unix_stream|epoll_wait|tcp_recv|eventfd", name)
    )


def _handed_over(evidence: Evidence, pid: int, call: str) -> str:
    """A clause about calls of futex(2), which threads make for each other only."""
    waiting = {one.tid for one in evidence.waits_of.get(pid, ()) if one.call == "futex"}
    if call != "futex" or len(waiting) < 2:  # noqa: PLR2004
        return ""
    return f"{len(waiting)} threads wait for each other and wake each other: a lock, or tiny jobs"


def calls(evidence: Evidence) -> Iterator[Finding]:
    """Very many system calls of any kind; a sharper finding replaces this one."""
    for family, counts in by_family(evidence).items():
        total = sum(count.times for count in counts) / evidence.elapsed_s
        failed = sum(count.times for count in counts if count.error) / evidence.elapsed_s
        if total < _MANY_CALLS or failed > 0.8 * total:
            continue
        by_call: Counter[str] = Counter()
        for count in counts:
            by_call[count.call] += count.times
        call, times = by_call.most_common(1)[0]
        pids, pid = members(evidence, family, counts), main_pid(counts)
        word = re.sub(r"from$|to$|msg$|64$", "", call)
        yield Finding(
            *("call-storm", family[0], (pid, *(one for one in pids if one != pid))),
            min(1.0, total * _CALL_S),
            f"makes {total:.0f} system calls a second, mostly {call} "
            f"({share(times, total * evidence.elapsed_s)})",
            (describe_site(evidence, pids, word), _handed_over(evidence, pid, call)),
            ("summary", "-p", str(pid)),
        )
