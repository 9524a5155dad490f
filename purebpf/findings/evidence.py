"""`Evidence`: the facts with indexes, and each thread's time judged. Pure.

A `Stay` is the time that a thread spent in one place. Rules ask for stays, and follow them to the
other end: of a connection, a pipe, a lock.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable
from functools import cached_property
from typing import TypeVar

from purebpf.findings.connections import Connections
from purebpf.findings.facts import (
    Activity,
    Blocked,
    CallCount,
    Endpoint,
    Facts,
    Process,
    StackFrame,
    WaitSum,
)
from purebpf.findings.finding import Source
from purebpf.findings.goroutines import are_coroutines, goroutine_stays
from purebpf.findings.ownership import Program, is_interpreter, is_script, spell_function
from purebpf.findings.stays import Stay, seconds_of, threads_of
from purebpf.findings.turns import with_turns
from purebpf.findings.unread import fill_unread
from purebpf.findings.waiting import (
    HAVE_HOMES,
    Judgement,
    Side,
    are_deeper_than_home,
    handles_a_request,
    judge,
)

__all__ = ["Evidence", "Stay", "seconds_of", "threads_of"]

_FORKS = ("BaseProcess._bootstrap", "Popen._launch", "ForkServer.")
"""Python's functions in which a forked child begins: frames outside of them are its parent's."""
_TIMED = ("nanosleep", "clock_nanosleep", "restart_syscall")
_HOME_SHARE = 0.02
_SEVERAL = 3
_OF_COROUTINES = frozenset({"lock", "permit"})
"""Waits of coroutines that are like those of threads; a coroutine that sleeps blocks no loop."""
_NOBODY = Process(0, 0, "?")

Key = TypeVar("Key")
Item = TypeVar("Item")


class Evidence:
    """Indexes of facts.

    Attributes:
        facts: the facts.
        connections: sockets and pipes, and the processes that have them open.
        elapsed_s: how long they took.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.connections = Connections(facts)
        self.elapsed_s = facts.elapsed_s or 1.0
        self.processes: dict[int, Process] = {process.pid: process for process in facts.processes}
        self.blocked: dict[int, Blocked] = {blocked.tid: blocked for blocked in facts.blocked}

    # Processes

    def process(self, pid: int) -> Process:
        """A process; one without a name if it came and went."""
        return self.processes.get(pid, _NOBODY)

    def name(self, pid: int) -> str:
        """`name (PID)`; the name alone in stored windows, which have no process IDs."""
        return f"{self.process(pid).comm} ({pid})" if pid > 0 else self.process(pid).comm

    def is_new(self, pid: int) -> bool:
        """Return True for a process that started during the measurement."""
        return pid not in self.processes or self.processes[pid].is_new

    def program(self, pid: int) -> Program:
        """The program that a process runs."""
        known = self._programs.get(pid)
        if known is None:
            exe = self.process(pid).exe
            known = self._programs[pid] = Program(exe, pid in self._go)
        return known

    @cached_property
    def _programs(self) -> dict[int, Program]:
        return {}

    @cached_property
    def _go(self) -> set[int]:
        return {one.pid for one in self.facts.goroutines if not are_coroutines(one.user)} | {
            activity.pid
            for activity in self.facts.activities
            if any(frame.name.startswith(("runtime.", "main.main")) for frame in activity.user)
        }

    def family(self, pid: int) -> tuple[str, str]:
        """The name and program under which equal processes are added up.

        For an interpreter the program is its script: two services in Python are two programs.
        """
        known = self._families.get(pid)
        if known is None:
            process = self.processes.get(pid)
            known = (process.comm, _program_of(process)) if process else ("", "")
            self._families[pid] = known
        return known

    @cached_property
    def _families(self) -> dict[int, tuple[str, str]]:
        return {}

    def pids_of(self, family: tuple[str, str]) -> tuple[int, ...]:
        """The processes of a family."""
        return tuple(pid for pid in self.processes if self.family(pid) == family)

    @cached_property
    def cpu_of(self) -> dict[int, float]:
        """CPUs used by process."""
        used: dict[int, float] = defaultdict(float)
        for thread in self.facts.threads:
            used[thread.pid] += thread.cpu_s / self.elapsed_s
        return used

    # Stays

    @cached_property
    def stays(self) -> tuple[Stay, ...]:
        """The time of all threads, and of goroutines that are at work."""
        owners = {one.owner for one in self.facts.blocked if one.words}
        merged = fill_unread(self.facts.activities, owners)
        stays = [self._stay(activity) for activity in merged]
        at_work = (
            stay
            for stay in self.goroutines
            if stay.kind in _OF_COROUTINES
            or (not are_coroutines(stay.user) and (stay.is_work or stay.is_called))
        )
        judged = tuple(self._with_homes(stays))
        return (*with_turns(judged, self.program, self.wakers_of, self.elapsed_s), *at_work)

    @cached_property
    def goroutines(self) -> tuple[Stay, ...]:
        """The waits of goroutines, which are no threads."""
        return tuple(goroutine_stays(self.facts, self.program))

    @cached_property
    def by_thread(self) -> dict[int, list[Stay]]:
        """Stays by thread."""
        return _group(self.stays, lambda stay: stay.tid)

    @cached_property
    def by_process(self) -> dict[int, list[Stay]]:
        """Stays by process."""
        return _group(self.stays, lambda stay: stay.pid)

    @cached_property
    def cpu(self) -> list[Stay]:
        """CPU time."""
        return [stay for stay in self.stays if stay.kind == "cpu"]

    def work(self, *kinds: str) -> list[Stay]:
        """Waits of some kinds in the middle of work."""
        return [stay for stay in self.stays if stay.kind in kinds and stay.is_work]

    def rate(self, stays: Iterable[Stay]) -> float:
        """Seconds a second."""
        return seconds_of(stays) / self.elapsed_s

    def _stay(self, activity: Activity) -> Stay:
        program = self.program(activity.pid)
        user = _since_fork(activity.user)
        endpoint, times, longest, waited_s = Endpoint(), 1, activity.seconds, 0.0
        own = _own(program, user)
        if activity.kind != "wait":
            return _make(activity, activity.kind, user, own, Judgement("", True, False, 0))
        sums = self._sums_of(activity)
        if sums:
            waited_s, waits = sum(one.seconds for one in sums), sum(one.times for one in sums)
            times = max(1, round(activity.seconds * waits / waited_s)) if waited_s else 1
            longest = max(one.longest_s for one in sums)
            endpoint = max(sums, key=self._telling).endpoint
        blocked = self.blocked.get(activity.tid)
        in_progress = blocked is not None and blocked.call == activity.call
        left_s = activity.seconds - waited_s  # not explained by the waits that ended
        is_open = in_progress and left_s > max(2 * longest + 0.05, 0.5 * activity.seconds)
        is_one = activity.pid > 0  # stored windows have the sum of all threads
        is_open = is_open or (is_one and not sums and activity.seconds > 0.9 * self.elapsed_s)
        if blocked is not None and not endpoint.kind and (is_open or not sums):
            endpoint = self._endpoint_now(blocked)
        endpoint = self.connections.named(endpoint)
        side = self.connections.side(endpoint)
        if endpoint.family == "other" and not sums:
            side = Side.UNKNOWN  # it may have subscribed to events
        judgement = judge(
            program,
            activity.kernel,
            user,
            state=activity.state,
            side=side,
            is_connection=endpoint.kind == "socket",
            call=activity.call,
        )
        if own is None and judgement.kind == "lock":
            own = next(filter(program.owns_unnamed, user), None)
        stay = _make(activity, judgement.kind, user, own, judgement)
        return stay._replace(times=times, is_open=is_open, endpoint=endpoint, side=side)

    def _with_homes(self, stays: list[Stay]) -> Iterable[Stay]:
        for group in _group(stays, lambda stay: stay.tid).values():
            waits = [stay for stay in group if stay.kind not in ("cpu", "queue") and stay.user]
            program = self.program(group[0].pid)
            judged = [
                (
                    Judgement(stay.kind, stay.is_work, stay.is_called, _depth(program, stay.user)),
                    stay.seconds,
                    stay.times,
                    stay.side,
                )
                for stay in waits
            ]
            deeper = are_deeper_than_home(judged, _HOME_SHARE * self.elapsed_s)
            if any(map(_awaits_requests, group)):
                deeper = [
                    is_deep or (stay.own is not None and not _awaits_requests(stay))
                    for stay, is_deep in zip(waits, deeper, strict=True)
                ]
            kinds = {stay.kind for stay in group} - {"cpu", "queue"}
            if len(waits) == 1 and kinds == {"cond"}:
                deeper = [deeper[0] or handles_a_request(program, waits[0].user)]
            raised = {
                id(stay)
                for stay, is_deep in zip(waits, deeper, strict=True)
                if is_deep and stay.kind in HAVE_HOMES
            }
            for stay in group:
                yield stay._replace(is_work=True) if id(stay) in raised else stay

    # The reasons of waits

    @cached_property
    def sums(self) -> dict[tuple[int, str, int], list[WaitSum]]:
        """Sums of waits by thread, call and argument."""
        return _group(self.facts.waits, lambda one: (one.tid, one.call, _argument(one)))

    @cached_property
    def waits_of(self) -> dict[int, list[WaitSum]]:
        """Sums of waits by process."""
        return _group(self.facts.waits, lambda one: one.pid)

    def _sums_of(self, activity: Activity) -> list[WaitSum]:
        if not activity.call:
            return []
        argument = 0 if activity.call in _TIMED else activity.argument
        return self.sums.get((activity.tid, activity.call, argument), [])

    @cached_property
    def wakers(self) -> dict[int, Counter[int]]:
        """Nanoseconds of waits by the thread that ended them, by thread."""
        wakers: dict[int, Counter[int]] = defaultdict(Counter)
        for (tid, _), counts in self._wakers_by_call.items():
            wakers[tid].update(counts)
        return wakers

    def wakers_of(self, stays: Iterable[Stay]) -> Counter[int]:
        """The same of waits of these threads in these calls, in all."""
        wakers: Counter[int] = Counter()
        for key in {(stay.tid, stay.call) for stay in stays}:
            wakers.update(self._wakers_by_call.get(key, {}))
        return wakers

    @cached_property
    def _wakers_by_call(self) -> dict[tuple[int, str], Counter[int]]:
        """As `wakers`, by thread and call.

        The interrupt of a timer may come while any process runs, which then seems to have ended a
        wait for a futex; only processes of one program share futexes.
        """
        wakers: dict[tuple[int, str], Counter[int]] = defaultdict(Counter)
        for one in self.facts.wakers:
            pid = self.process_of_thread.get(one.tid, 0)
            is_strange = bool(pid and one.waker_pid) and one.call == "futex"
            if is_strange and not self.may_share(pid, one.waker_pid):
                continue
            wakers[one.tid, one.call][one.waker_tid] += round(1e9 * one.seconds)
        return wakers

    def may_share(self, pid: int, other: int) -> bool:
        """Return True for processes of one program, also with names of their own."""
        exe = self.process(pid).exe
        is_same = bool(exe) and exe == self.process(other).exe and not is_interpreter(exe)
        return is_same or self.family(pid) == self.family(other)

    @cached_property
    def process_of_thread(self) -> dict[int, int]:
        """The process of each thread."""
        known = {one.tid: one.pid for one in self.facts.waits}
        known |= {blocked.tid: blocked.pid for blocked in self.facts.blocked}
        return known | {thread.tid: thread.pid for thread in self.facts.threads}

    def _telling(self, one: WaitSum) -> tuple[bool, bool, float]:
        """Order reasons of waits: what both ends of are known of says most."""
        is_known = one.endpoint.inode in self.facts.unix_peers
        return bool(one.endpoint.kind), is_known, one.seconds

    # Descriptors

    def _endpoint_now(self, blocked: Blocked) -> Endpoint:
        """The other end of a descriptor that a thread is blocked on."""
        link = self.facts.descriptors.get(blocked.pid, {}).get(blocked.fd, "")
        kind, _, number = link.partition(":[")
        if kind == "pipe":
            return Endpoint("pipe", inode=int(number[:-1]))
        if kind != "socket":
            return Endpoint("file") if link.startswith("/") else Endpoint()
        inode = int(number[:-1])
        socket = self.connections.by_inode.get(inode)
        if socket is not None:
            ends = (socket.peer, socket.peer_port, socket.port, inode)
            return Endpoint("socket", "inet", *ends)
        return Endpoint("socket", "other", inode=inode)

    # Calls

    @cached_property
    def calls(self) -> dict[int, list[CallCount]]:
        """Counts of calls by process."""
        return _group(self.facts.calls, lambda count: count.pid)

    def count_calls(
        self, pids: Iterable[int], names: Container[str], error: int | None = None
    ) -> int:
        """Return how often processes made these calls; with `error`, how often that was the result.

        An error of 0 is success.
        """
        return sum(
            one.times
            for pid in pids
            for one in self.calls.get(pid, ())
            if one.call in names and error in (None, one.error)
        )

    def path_of(self, pid: int, fd: int) -> str:
        """The path of a descriptor; "" if it is no file."""
        link = self.facts.descriptors.get(pid, {}).get(fd, "")
        return link if link.startswith("/") else ""

    # Functions

    def source(self, frame: StackFrame | None) -> Source | None:
        """A function as findings have it."""
        if frame is None:
            return None
        if not is_script(frame):
            return Source(spell_function(frame.name), "", 0)
        return Source(frame.name.replace(".<locals>", ""), frame.module, frame.line)

    def spell(self, frame: StackFrame | None) -> str:
        """A function in a sentence; "?" if there is none."""
        source = self.source(frame)
        return "?" if source is None or not source.function else str(source)

    def own_path(self, stay: Stay, most: int = 3) -> list[StackFrame]:
        """Own functions of a stack, the outermost first: the innermost `most` of them."""
        program, path = self.program(stay.pid), list[StackFrame]()
        for frame in reversed(stay.user):
            if program.owns(frame) and (not path or path[-1].name != frame.name):
                path.append(frame)
        return path[-most:]


def _program_of(process: Process) -> str:
    """The executable, and of an interpreter its first arguments."""
    words = process.command.split()
    if not is_interpreter(process.exe) or not words or not is_interpreter(f"/{words[0]}"):
        return process.exe
    if "-m" in words[1:3]:  # a module: its arguments tell two services apart
        return " ".join((process.exe, *words[1:]))
    return " ".join((process.exe, *words[1:3]))


def _argument(one: WaitSum) -> int:
    return 0 if one.call in _TIMED else one.argument


def _group(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    groups: dict[Key, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def _make(
    activity: Activity,
    kind: str,
    user: tuple[StackFrame, ...],
    own: StackFrame | None,
    judgement: Judgement,
) -> Stay:
    return Stay(
        *(activity.pid, activity.tid, activity.comm, kind, activity.seconds, 1),
        *(activity.kernel, user, activity.call, activity.argument, own),
        *(judgement.is_work, judgement.is_called, activity.is_open, Endpoint(), Side.UNKNOWN),
    )


def _own(program: Program, user: tuple[StackFrame, ...]) -> StackFrame | None:
    """The innermost function of the program's own, or the first lines of its script."""
    for frame in user:
        if program.owns(frame):
            return frame
    top = next((frame for frame in user if program.is_script_top(frame)), None)
    if top is not None or program.is_go:
        return top
    return next((frame for frame in user if program.is_main(frame)), None)


def _awaits_requests(stay: Stay) -> bool:
    """Return True for the wait of a thread that serves one connection after the other."""
    return stay.kind == "sock-read" and stay.side is Side.SERVER and stay.times > _SEVERAL


def _depth(program: Program, user: tuple[StackFrame, ...]) -> int:
    return sum(map(program.owns, user))


def _since_fork(user: tuple[StackFrame, ...]) -> tuple[StackFrame, ...]:
    """Return the part of a stack since the fork of its process."""
    for at, frame in enumerate(user):
        if frame.kind == "python" and frame.name.startswith(_FORKS):
            return user[: at + 1]
    return user
