"""The data of one measurement of the whole machine. Plain data: it goes to JSON and back.

Seconds and counts are sums over the measurement unless a name says otherwise. Processes are named
by their process IDs, as the PID namespace of purebpf has them.
"""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = [
    "OWNER_WORD",
    "Activity",
    "Blocked",
    "CallCount",
    "Cgroup",
    "Connect",
    "End",
    "Endpoint",
    "Facts",
    "FileLock",
    "Goroutines",
    "JavaHeap",
    "JavaMonitor",
    "MemoryUse",
    "PathCount",
    "Process",
    "SignalCount",
    "Socket",
    "StackFrame",
    "Start",
    "ThreadTime",
    "Unanswered",
    "WaitSum",
    "WakerSum",
]


class StackFrame(NamedTuple):
    """A function on a user stack; `name` is "" where it is unknown.

    `module` is the file of its code, `kind` "user", "inlined" or "python"; `line` 0 is unknown.
    """

    name: str
    module: str
    line: int = 0
    kind: str = "user"


class Activity(NamedTuple):
    """Time that a thread spent in one place.

    Attributes:
        kind: "cpu", "wait" or "queue" (ready, but no CPU was free).
        state: of a wait: "S", "D"... of ps(1), or "gil" for Python's lock.
        kernel: names of functions, innermost first; `user` likewise.
        call, argument: the system call that a wait is in, "" for none, and its first argument.
        times: how many waits these were; 0 where that is not known.
        is_open: the wait was not over at the end.
    """

    pid: int
    tid: int
    comm: str
    kind: str
    state: str
    seconds: float
    kernel: tuple[str, ...]
    user: tuple[StackFrame, ...]
    call: str = ""
    argument: int = 0
    times: int = 0
    is_open: bool = False


class Endpoint(NamedTuple):
    """The other end of a descriptor.

    Attributes:
        kind: "file", "pipe", "socket", or "" if it is not known.
        family: "inet", "inet6", "other".
        address, port: of the peer; "" and 0 if there is none.
        local_port: our end of a connection.
    """

    kind: str = ""
    family: str = ""
    address: str = ""
    port: int = 0
    local_port: int = 0
    inode: int = 0


class WaitSum(NamedTuple):
    """Waits of a thread in one system call for one thing. `owner` is the third word of a futex."""

    pid: int
    tid: int
    call: str
    argument: int
    fd: int
    owner: int
    endpoint: Endpoint
    seconds: float
    times: int
    longest_s: float


class WakerSum(NamedTuple):
    """Waits of a thread that one other thread ended; `waker_tid` 0 stands for timers."""

    tid: int
    call: str
    waker_pid: int
    waker_tid: int
    seconds: float
    times: int


class CallCount(NamedTuple):
    """System calls of a process with one result; `error` 0 is success. `fd` is one of many."""

    pid: int
    call: str
    error: int
    times: int
    size: int = 0
    fd: int = -1


class PathCount(NamedTuple):
    """Calls with a path, estimated from one of eight, and failed `connect`s to unix sockets."""

    pid: int
    call: str
    path: str
    times: int


class Connect(NamedTuple):
    """TCP connections of a process to one peer: attempts where `error` is 0, else failures."""

    pid: int
    error: int
    address: str
    port: int
    times: int


class Start(NamedTuple):
    """Programs that were executed by children of a process, or its forks."""

    parent: int
    parent_comm: str
    comm: str
    is_fork: bool
    times: int


class End(NamedTuple):
    """Processes of one name that did not end well; `code` is the status of wait(2)."""

    parent: int
    parent_comm: str
    comm: str
    code: int
    times: int


class SignalCount(NamedTuple):
    """Signals from one process to another; signals of timers have the process that ran."""

    sender: int
    receiver: int
    signal: int
    times: int


class Process(NamedTuple):
    """A process, and the growth of its counters.

    Attributes:
        exe: the path of its executable; "" if it is not known.
        cgroup: the text of /proc/PID/cgroup; `unit` the container, pod or systemd unit, or "".
        cpu_s, children_cpu_s: its CPU time; the CPU time of children that it has waited for.
        anon: bytes of anonymous memory, once a second.
        files, thread_counts: how many descriptors and threads it has, once a second.
        titles: how often its command line was each text, of programs that change theirs.
        allowed: the CPUs that its first thread may use, where these are not all; else empty.
        is_new, is_gone: it was not there at the start, or at the end.
        threads: how many it has.
    """

    pid: int
    ppid: int
    comm: str
    exe: str = ""
    command: str = ""
    cgroup: str = ""
    unit: str = ""
    state: str = ""
    threads: int = 1
    cpu_s: float = 0.0
    children_cpu_s: float = 0.0
    minor_faults: int = 0
    major_faults: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    anon: tuple[int, ...] = ()
    files: tuple[int, ...] = ()
    thread_counts: tuple[int, ...] = ()
    titles: dict[str, int] = {}  # noqa: RUF012 - nobody changes facts
    allowed: tuple[int, ...] = ()
    is_new: bool = False
    is_gone: bool = False


class ThreadTime(NamedTuple):
    """Seconds that a thread ran, and waited for a CPU while it was ready."""

    pid: int
    tid: int
    cpu_s: float
    queued_s: float


OWNER_WORD = 2
"""The place of the owner among the words of glibc's mutex."""


class Blocked(NamedTuple):
    """A thread in a system call at the end: its arguments, and the words of a futex."""

    pid: int
    tid: int
    call: str
    arguments: tuple[int, ...]
    fd: int = -1
    words: tuple[int, ...] = ()

    @property
    def owner(self) -> int:
        """The word in which glibc's mutex has the thread ID of its owner; 0 without words."""
        return self.words[OWNER_WORD] if self.words else 0


class FileLock(NamedTuple):
    """A process that waits for the lock of a file at the end, and the process that holds it."""

    pid: int
    holder: int


class Socket(NamedTuple):
    """A TCP or UDP socket.

    `queue` is the mean length of an accept queue, or of received bytes; `share` the part of the
    time that the socket was there, 0.0 where that is not known. `unacknowledged` is the part of the
    time in which data of a connection was not acknowledged yet.
    """

    inode: int
    protocol: str
    address: str
    port: int
    peer: str
    peer_port: int
    state: int
    queue: float = 0.0
    drops: int = 0
    namespace: int = 0
    share: float = 0.0
    unacknowledged: float = 0.0


class SegmentCount(NamedTuple):
    """TCP segments of a network namespace that were sent, and how many of them once more."""

    namespace: int
    sent: int
    resent: int


class FileSystem(NamedTuple):
    """A local file system: a path to it, its kind, bytes that are free, and in use at each look."""

    path: str
    kind: str
    free: int
    used: tuple[int, ...]


class Cgroup(NamedTuple):
    """A cgroup with a limit, and the growth of its counters.

    Attributes:
        quota_cpus: the CPUs that it may use; 0.0: no limit.
        periods, throttled: how many it ran in, and how many of them it was stopped in.
        throttled_s: time that it was stopped.
        memory_limit, memory_used: bytes, 0 for none; `memory_hits`: how often the limit was met.
        memory_high, high_hits: the limit from which processes are slowed down, likewise.
        oom_kills: processes killed for it.
    """

    path: str
    quota_cpus: float = 0.0
    periods: int = 0
    throttled: int = 0
    throttled_s: float = 0.0
    memory_limit: int = 0
    memory_used: int = 0
    memory_hits: int = 0
    memory_high: int = 0
    high_hits: int = 0
    oom_kills: int = 0


class MemoryUse(NamedTuple):
    """Page faults or growth by stack: `kind` is "faults" (a number) or "grown" (bytes)."""

    pid: int
    kind: str
    amount: int
    user: tuple[StackFrame, ...]


class Unanswered(NamedTuple):
    """A connection that awaits an answer: the part of the time, and the mean age of the request.

    Its ends are "" and 0 where they are not known.
    """

    inode: int
    share: float
    age_s: float
    peer: str = ""
    peer_port: int = 0
    port: int = 0


class JavaMonitor(NamedTuple):
    """A Java thread that waits to enter a monitor, and the thread that is inside, 0 if unknown."""

    pid: int
    tid: int
    monitor: int
    class_name: str
    owner: int


class JavaHeap(NamedTuple):
    """The old generation of a JVM: bytes that survivors of collections use, once a second.

    Attributes:
        most: the bytes that it may use.
        young, old: how many collections there were of the young generation, and of all.
        before: how many of all there had been before the first look.
    """

    pid: int
    used: tuple[int, ...]
    most: int = 0
    young: int = 0
    old: int = 0
    before: int = 0


class Goroutines(NamedTuple):
    """Goroutines, or asyncio's tasks, of a process that wait with one stack: how many at each look.

    Frames of tasks are of the kind "python": coroutines, the innermost first. `stuck` had not moved
    between the first look and the last.
    """

    pid: int
    user: tuple[StackFrame, ...]
    counts: tuple[int, ...]
    stuck: int = 0


class Facts(NamedTuple):
    """Everything that one measurement saw.

    Attributes:
        elapsed_s: how long it took.
        cpus: how many there are.
        counters: the growth of counters of the whole machine: seconds of /proc/stat by name, and
            `UdpInDatagrams`-like names of /proc/net/snmp and netstat.
        descriptors: links of /proc/PID/fd, by process and number.
        file_locks: waits for locks of files at the end.
        unix_peers: the inode of the other end by the inode of a connected unix socket.
        unix_names: the address of a unix socket by inode: of servers, and of their connections.
        lock_holders: the thread that holds the Python lock of a futex address, by process.
        thread_names: Python's names of threads.
        stalled: connections whose other end does not read, `share` of the time.
        held: connections whose request this end has received, and not answered.
        missing: measurements that failed here, a sentence each.
        own_cpu_s: CPU time that the measurement itself took.
    """

    elapsed_s: float
    cpus: int
    activities: tuple[Activity, ...] = ()
    waits: tuple[WaitSum, ...] = ()
    wakers: tuple[WakerSum, ...] = ()
    calls: tuple[CallCount, ...] = ()
    paths: tuple[PathCount, ...] = ()
    connects: tuple[Connect, ...] = ()
    starts: tuple[Start, ...] = ()
    ends: tuple[End, ...] = ()
    signals: tuple[SignalCount, ...] = ()
    processes: tuple[Process, ...] = ()
    threads: tuple[ThreadTime, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    file_locks: tuple[FileLock, ...] = ()
    sockets: tuple[Socket, ...] = ()
    segments: tuple[SegmentCount, ...] = ()
    cgroups: tuple[Cgroup, ...] = ()
    file_systems: tuple[FileSystem, ...] = ()
    memory: tuple[MemoryUse, ...] = ()
    monitors: tuple[JavaMonitor, ...] = ()
    java_heaps: tuple[JavaHeap, ...] = ()
    goroutines: tuple[Goroutines, ...] = ()
    unanswered: tuple[Unanswered, ...] = ()
    held: tuple[Unanswered, ...] = ()
    stalled: tuple[Unanswered, ...] = ()
    counters: dict[str, float] = {}  # noqa: RUF012 - nobody changes facts
    descriptors: dict[int, dict[int, str]] = {}  # noqa: RUF012
    unix_peers: dict[int, int] = {}  # noqa: RUF012
    unix_names: dict[int, str] = {}  # noqa: RUF012
    lock_holders: dict[int, dict[int, int]] = {}  # noqa: RUF012
    missing: tuple[str, ...] = ()
    own_cpu_s: float = 0.0
