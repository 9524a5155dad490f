"""Idle or work: the kind of a wait, and whether a thread waited in the middle of work. Pure.

A thread that waits for the next request, job or timer is idle. One that waits for a lock, an
answer, a file or a child while it does something waits in the middle of work, and somebody waits
for it. Stacks tell the two apart (docs/design has the figures: 97 % of 267 waits were right):

1. the kernel's frames show the reason for a wait, user frames the kind of a futex;
2. some kinds are always work, some always idle;
3. for the others, own code below a library's code (a framework called a handler) is work;
4. else the thread's home decides: `are_deeper_than_home`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise

from purebpf.findings.ownership import FrameLike, Program, is_interpreter, is_java, short_name
from purebpf.late_pattern import compile_later
from purebpf.tuples import NamedTuple

__all__ = [
    "HAVE_HOMES",
    "Judgement",
    "Side",
    "are_deeper_than_home",
    "handles_a_request",
    "is_in_fsync",
    "judge",
    "takes_jobs",
]


class Side(Enum):
    """The side of a connection that a thread is on."""

    CLIENT = "client"
    SERVER = "server"
    UNKNOWN = "unknown"


_BY_KERNEL = tuple(
    (kind, compile_later(rf"_*(x64_sys_|do_|se_sys_)?({pattern})"))
    for kind, pattern in (
        ("futex", r"futex_"),
        ("sleep", r"hrtimer_nanosleep|nanosleep|common_nsleep"),
        ("epoll", r"epoll_wait|ep_poll"),
        ("pipe-read", r"(anon_)?pipe_read|fifo_open|wait_for_partner"),
        ("pipe-write", r"(anon_)?pipe_write"),
        ("accept", r"\w*_accept$|inet_csk_wait_for_connect"),
        ("child", r"wait$|kernel_wait|kernel_waitid|wait4"),
        ("signal", r"sigsuspend|sigtimedwait|sys_pause|pause$|signalfd_"),
        ("tty", r"n_tty_|tty_read"),
        (
            "sock-write",
            r"sk_stream_wait_memory|sock_alloc_send_pskb|sock_wait_for_wmem|unix_wait_for_peer",
        ),
        (
            "sock-read",
            r"(tcp|udp|inet|unix_\w*)_recvmsg|sk_wait_data|unix_stream_(read|data)|__?skb_(wait|recv)",
        ),
        ("connect", r"inet_(stream_|wait_for_)?connect|unix_stream_connect"),
        ("file-lock", r"flock_lock|posix_lock|locks_lock|fcntl_setlk"),
        (
            "fsync",
            r"\w*fsync|\w+_sync_file|jbd2_(log_wait|complete)|file_write_and_wait|\w+_log_force",
        ),
        ("queue-full", r"mq_timedsend|msg_?snd"),
        ("semaphore", r"semtimedop|msg_?rcv|mq_timedreceive|eventfd_read"),
        ("io-uring", r"io_cqring_wait|io_wq"),
        ("request", r"fuse_dev_|fanotify_read|inotify_read"),
        ("remote-file", r"rpc_wait_bit|nfs4?_wait|request_wait_answer|fuse_|cifs_|p9_client|ceph_"),
        (
            "memory-limit",
            r"mem_cgroup_handle_over|try_charge|try_to_free_mem_cgroup|mem_cgroup_oom",
        ),
        ("reclaim", r"reclaim_throttle|throttle_direct_reclaim|shrink_(node|lruvec)"),
        ("reclaim", r"do_try_to_free_pages|__alloc_pages_direct|congestion_wait|compact_zone"),
        ("dirty-pages", r"balance_dirty_pages"),
        ("kernel-lock", r"rwsem_down|mutex_lock|__mutex|percpu_rwsem|down_(read|write)"),
        ("disk", r"io_schedule|folio_wait|submit_bio|blk_|blkdev|iomap|bio_wait|swap_read"),
        ("disk", r"rq_qos_wait|wbt_wait|jbd2_|wait_transaction_locked|start_this_handle|lock_page"),
        ("disk", r"(ext4|xfs|btrfs)_"),
        ("poll", r"sys_poll|do_select|select|poll"),
        ("stopped", r"signal_stop|ptrace_stop|cgroup_freeze|freezer_trap|refrigerator"),
    )
)
_FSYNC = dict(_BY_KERNEL)["fsync"]
_CONNECT = dict(_BY_KERNEL)["connect"]
_BY_STATE = {"gil": "gil", "monitor": "jvm-monitor"}
_DEPTH = 14
"""Kernel frames that are looked at."""

_ALWAYS_WORK = frozenset(
    {
        *("fsync", "disk", "pipe-write", "sock-write", "connect", "memory-limit", "dirty-pages"),
        *("kernel-lock", "jvm-monitor", "file-lock", "gil", "nested-loop", "database-lock"),
        "standby",
        *("ruby-mutex", "ruby-gvl", "queue-full", "permit", "nap", "barrier"),
        *("call", "reclaim", "remote-file"),
    }
)
_NO_WAITS = frozenset(
    {
        *("open", "openat", "close", "stat", "lstat", "fstat", "newfstatat", "statx", "access"),
        *("unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir"),
        *("link", "symlink", "readlink", "getdents64", "truncate", "ftruncate", "fallocate"),
        *("mmap", "munmap", "mremap", "mprotect", "madvise", "brk", "mlock", "membarrier"),
        *("execve", "clone", "clone3", "fork", "mount", "umount2", "setns", "unshare"),
        *("shutdown", "bind", "listen", "socket", "setsockopt", "getsockopt", "chmod", "chown"),
        *("epoll_ctl", "eventfd2", "timerfd_create", "bpf", "init_module", "finit_module"),
    }
)
"""Calls that nobody makes in order to wait."""
_IDLE_UNLESS_CALLED = frozenset(
    {"sleep", "cond", "semaphore", "pipe-read", "poll", "child", "other"}
)
HAVE_HOMES = frozenset(
    {"sleep", "cond", "semaphore", "pipe-read", "sock-read", "child", "poll", "other"}
)
"""Kinds that may be the place a thread returns to."""

_PYTHON_QUEUES = compile_later(
    r"(Condition|Event|Barrier|Semaphore|BoundedSemaphore)\.|Thread\.(join|_wait_for)|\w*Queue\.(get|put)|_worker$"
)
_PYTHON_LIBRARY = compile_later(r"/(queue|threading|concurrent/futures/\w+)\.py$")
_LIBRARIES_THAT_WAIT = (
    (
        "barrier",
        compile_later(
            r"(__)?(pthread|gomp(_team)?)_barrier_wait|std::barrier.*wait|std::sync::barrier|"
            r"Barrier\.wait$"
        ),
    ),
    (
        "result",
        compile_later(
            r"std::(__atomic_futex_unsigned_base|__basic_future|__future_base)|Future\.result$"
        ),
    ),
    ("queue-full", compile_later(r".*Queue\.put$|.*[Cc]hannel<.*>::send")),
    (
        "permit",
        compile_later(
            r".*Semaphore\.(acquire|__enter__)$|.*counting_semaphore.*::.*acquire|"
            r".*__(atomic|platform)_semaphore.*::_M_(try_)?acquire|"
            r".*[Pp]ool\w*\.(_?get_?conn\w*|_do_get|acquire|borrow\w*|checkout|lease)$"
        ),
    ),
)
_FUNCTIONS_THAT_WAIT = tuple(
    (kind, compile_later(rf"(block .*in )?(.*(::|[._]))?({verbs})(_\w+)?(\(.*)?$"))
    for kind, verbs in (
        ("queue-full", "push|put|enqueue|offer"),
        ("permit", "acquire|borrow|checkout|check_out|lease|rent|(get|take|with)_?conn(ection)?"),
    )
)
"""Of libraries, and of programs themselves, which are named for what they do."""
_NEAR = 12
"""Frames inside of which a call of a queue or of a pool of permits leads to its wait."""
_NATIVE_LOCKS = compile_later(
    r"pthread_mutex_lock|lll_lock|lll_mutex|mutex_lock_full|rwlock|futex_lock_pi|mtx_lock|"
    r"mutex_cond_lock|parking_lot|Mutex.*lock_contended|spin_lock"
)
_GO_PARKS = compile_later(r"runtime\.(futexsleep|futex\b|notesleep|notetsleep|mPark)")
_JAVA_MONITOR = compile_later(r"ObjectMonitor::(enter|Enter)|ObjectSynchronizer::enter")
_JAVA_PARKS = compile_later(
    r"ObjectMonitor|Unsafe_Park|Monitor::|PlatformMonitor|os::PlatformEvent|Parker"
)
_JAVA_WAITS = (
    ("barrier", compile_later(r"java\.util\.concurrent\.CyclicBarrier\.")),
    (
        "lock",
        compile_later(r"java\.util\.concurrent\.locks\.(Reentrant|Stamped)[\w$]*\.\w*[lL]ock\w*$"),
    ),
    (
        "permit",
        compile_later(
            r"java\.util\.concurrent\.Semaphore\.(acquire|tryAcquire)|"
            r".*[Pp]ool\w*\.(getConnection|borrowObject|acquire|lease)"
        ),
    ),
    ("queue-full", compile_later(r"java\.util\.concurrent\.\w*(Queue|Deque)\.(put|offer)")),
    (
        "result",
        compile_later(
            r"java\.util\.concurrent\.(FutureTask|CompletableFuture|ForkJoinTask)\.(get|join)"
        ),
    ),
)
"""The purposes of threads that the JVM has parked, by methods of its library."""
_RUBY_MUTEX, _RUBY_CODE = "rb_mutex_", "rb_vm_exec"
"""A function of Ruby's Mutex inside of the innermost code in Ruby is what a thread waits in; of
stacks with Ruby frames there is no other one."""
_RUBY_CONDITION = "rb_mutex_sleep"
"""The function in which a ConditionVariable waits; it takes the Mutex again in another one."""
_RUBY_BUILT_IN = "built-in"
"""The file of Ruby's methods that are written in C."""
_RUBY_BLOCKING = (
    *("rb_nogvl", "rb_thread_io_blocking_region", "rb_thread_call_without_gvl"),
    *("rb_io_wait", "rb_thread_wait_fd", "rb_wait_for_single_fd"),
)
_RUBY_WAITING = compile_later(r"(__)?futex|(__)?pthread_cond_|rb_native_cond_|libruby.*!0x")
"""A thread that returns from a blocking call waits for Ruby's lock in functions of Ruby only."""
_NAPS = compile_later(r".*(sleep|nap|delay|pause|wait_until)", re.IGNORECASE)
"""Functions whose callers want to sleep."""
_MUTEXES = compile_later(r"_*(GI_|libc_)*_*(lll_lock_wait|pthread_(mutex|rwlock)_)")
_NAP_LOCKS = compile_later(
    r"(.*::)?((spin|try|mutex|read|write|rd|wr)_?)?(lock|acquire)"
    r"(_?(slow|contended|shared|exclusive|path))*(\(.*)?$",
    re.IGNORECASE,
)
"""Own functions that take a lock by sleeping and trying again."""
_CALL = compile_later(r"__(?:x64|arm64|ia32|se)_sys_(\w+)$")
_LIBRARY_FILES = compile_later(r".*/lib[^/]*\.so[\d.]*$")
_RUNTIME_FILES = compile_later(
    r".*/(libc|libpthread|libstdc\+\+|libc\+\+|libpython|libruby|libperl|libjvm|libnode|libphp)[-.\d]"
)
_NAP_FRAMES = 2
"""Frames of a library between its caller and its sleep: one alone sleeps for its caller."""
_OF_SUBPROCESSES = frozenset({"poll", "epoll", "pipe-read", "sleep"})
"""Waits for the output of a child, or for its end, in Python's module for that."""
_HANDLES = compile_later(
    r"(?!\w*([lL]oop|[fF]orever|[qQ]ueue|[jJ]obs|[tT]asks)$)"
    r"(handle|serve|process|dispatch|respond|reply|answer)([_A-Z]|$)|do_?(get|post|put)([_A-Z]|$)"
    r"|on_?[rR]equest|\w*_request$|\w*Request$"
)
"""Functions that somebody waits for."""
_TAKES = compile_later(
    r"(take|pop|next|dequeue|receive|consume|poll|idle|wait_?for_?\w*(job|task|work|request|event))"
    r"|(get|fetch)_?(next|job|task|work)|\w*([lL]oop|[wW]orker|_pop|_next|_job|_task)$"
)
"""Functions that wait for something to do, also inside of one that serves requests for ever."""
_POSTGRES_LOCK = ("ProcSleep", "ProcWaitForSignal", "WaitForProcSignalBarrier")
_POSTGRES_STANDBY = "SyncRepWaitForLSN"
_LOOP_RUN = "uv_run"


class Judgement(NamedTuple):
    """A wait.

    Attributes:
        kind: "lock", "sock-read", "sleep"...
        is_work: the thread was doing something.
        is_called: own code waits that a library's code has called.
        own_depth: how many frames on the stack are the program's own.
    """

    kind: str
    is_work: bool
    is_called: bool
    own_depth: int


def judge(
    program: Program,
    kernel: Sequence[str],
    user: Sequence[FrameLike],
    *,
    state: str = "S",
    side: Side = Side.UNKNOWN,
    is_connection: bool = False,
    call: str = "",
) -> Judgement:
    """Judge a wait by its stacks, innermost frames first.

    Args:
        program: of the process.
        kernel: names of the kernel's functions.
        user: frames of the user stack.
        state: as of ps(1), or "gil", or "monitor" for one of a Java object.
        side: of the connection that it reads from.
        is_connection: a poll has one descriptor, which is a socket.
        call: the system call that it waits in.
    """
    kind = _BY_STATE.get(state) or _kind_by_kernel(kernel)
    if kind == "other" and (call or _call_of(kernel)) in _NO_WAITS:
        kind = "call"
    elif kind == "sock-write" and (call == "connect" or any(map(_CONNECT.match, kernel))):
        kind = "connect"  # a full queue of connections to accept
    if kind == "futex":
        kind = _kind_of_futex(user)
        if kind == "cond" and program.exe.endswith("/java") and _is_unread(user):
            kind = "java-park"
    elif kind == "poll" and is_connection:
        kind = "sock-read"
    if kind in _OF_SUBPROCESSES and any(map(_is_of_subprocesses, user)):
        kind = "child"
    kind = _kind_of_library(kind, user)
    if kind == "sleep" and _naps_in_library(user):
        kind = "nap"
    elif kind == "sleep" and _naps_for_lock(program, user):
        kind = "lock"
    if kind in ("cond", "semaphore"):
        kind = _kind_of_condition(kind, program, user)
    own_at = [at for at, frame in enumerate(user) if program.owns(frame)]
    is_called = bool(own_at) and any(map(program.is_library, user[own_at[-1] + 1 :]))
    has_own = bool(own_at) or any(map(program.is_script_top, user))
    has_own = has_own or _is_in_mutex(program, user)
    is_work = _is_work(kind, side, is_called=is_called, has_own=has_own)
    return Judgement(kind, is_work, is_called, len(own_at))


def _is_work(kind: str, side: Side, *, is_called: bool, has_own: bool) -> bool:
    if kind in _ALWAYS_WORK:
        return True
    if kind in ("lock", "result"):
        return has_own
    if kind == "sock-read":
        return side is Side.CLIENT or (side is Side.UNKNOWN and is_called)
    return kind in _IDLE_UNLESS_CALLED and is_called


def handles_a_request(program: Program, user: Sequence[FrameLike]) -> bool:
    """Return True for native code that waits to be woken below a function that serves a request.

    One wait alone tells nothing of where its thread returns to; functions are named for what they
    do.
    """
    own = [
        short_name(frame.name).rpartition("::")[2]
        for frame in user
        if frame.kind in ("user", "inlined") and frame.module != "[jit]" and program.owns(frame)
    ]
    return (
        len(own) > 1 and not _TAKES.match(own[0]) and any(_HANDLES.match(name) for name in own[1:])
    )


def takes_jobs(function: str) -> bool:
    """Return True for a native function that is named for waiting for something to do."""
    return bool(_TAKES.match(short_name(function).rpartition("::")[2]))


def are_deeper_than_home(
    waits: Sequence[tuple[Judgement, float, int, Side]], least_s: float
) -> list[bool]:
    """Return for each wait of one thread whether it lies below the place it returns to.

    The home of a thread is the wait with the fewest own frames: its loop. Only waits of `least_s`
    or of ten times can be one.

    Args:
        waits: of the thread: judgement, seconds, times, side of the connection.
        least_s: the shortest duration of a home.
    """
    depths = [
        judgement.own_depth
        for judgement, seconds, times, _ in waits
        if judgement.kind not in ("gil", "lock") and (seconds > least_s or times > 10)  # noqa: PLR2004
    ]
    home = max(1, min(depths, default=0))
    return [
        judgement.kind in HAVE_HOMES
        and judgement.own_depth > home
        and not (judgement.kind == "sock-read" and side is Side.SERVER)
        for judgement, _, _, side in waits
    ]


def is_in_fsync(kernel: Sequence[str]) -> bool:
    """Return True for the kernel's functions of a thread in fsync(2), which may run, too: it starts
    the writes.
    """
    return any(map(_FSYNC.match, kernel))


def _kind_by_kernel(kernel: Sequence[str]) -> str:
    for name in kernel[:_DEPTH]:
        for kind, pattern in _BY_KERNEL:
            if pattern.match(name):
                return kind
    return "other"


def _kind_of_library(kind: str, user: Sequence[FrameLike]) -> str:
    """A wait inside of a loop's handler blocks the loop; PostgreSQL's latches are epolls."""
    if kind == "cond" and any(frame.name == _LOOP_RUN for frame in user):
        return "nested-loop"
    if kind not in ("epoll", "poll"):
        return kind
    names = [frame.name for frame in user]
    if names.count(_LOOP_RUN) > 1:
        return "nested-loop"
    if _POSTGRES_STANDBY in names:
        return "standby"
    return "database-lock" if any(name in _POSTGRES_LOCK for name in names) else kind


def _is_of_subprocesses(frame: FrameLike) -> bool:
    return frame.kind == "python" and frame.module.endswith("/subprocess.py")


def _naps_in_library(user: Sequence[FrameLike]) -> bool:
    """Return True for a library that its caller has asked for something, and that polls for it."""
    inside = 0
    for frame in user:
        if _LIBRARY_FILES.match(frame.module) and not _RUNTIME_FILES.match(frame.module):
            inside += not _NAPS.match(frame.name)
        elif inside and not _NAPS.match(frame.name) and "lib/" not in frame.module:
            return inside >= _NAP_FRAMES
    return False


def _is_in_mutex(program: Program, user: Sequence[FrameLike]) -> bool:
    """Return True for a native program in a mutex of the C library: nobody idles in one.

    The functions outside of it may be unknown: the program is stripped, or its stack was cut.
    """
    is_native = bool(program.exe) and not is_interpreter(program.exe)
    return is_native and any(_MUTEXES.match(frame.name) for frame in user[:2])


def _naps_for_lock(program: Program, user: Sequence[FrameLike]) -> bool:
    """Return True for native code that sleeps in a function of its own that takes a lock."""
    own = next((frame for frame in user if program.owns(frame)), None)
    is_native = own is not None and own.kind in ("user", "inlined") and own.module != "[jit]"
    return own is not None and is_native and bool(_NAP_LOCKS.match(short_name(own.name)))


def _call_of(kernel: Sequence[str]) -> str:
    """The system call of a thread, by the kernel's functions; "" if they do not show it."""
    return next((match[1] for name in kernel if (match := _CALL.match(name))), "")


def _kind_of_condition(kind: str, program: Program, user: Sequence[FrameLike]) -> str:
    """The purpose of a wait, by the library's call or by the own function that waits.

    Takers of jobs wait likewise, but their functions are named otherwise.
    """
    for frame in user[:_NEAR]:
        is_own = program.owns(frame)
        for purpose, pattern in _FUNCTIONS_THAT_WAIT if is_own else _LIBRARIES_THAT_WAIT:
            if pattern.match(frame.name):
                return purpose
        if is_own:
            break
    return kind


def _kind_of_futex(user: Sequence[FrameLike]) -> str:
    names = [frame.name for frame in user]
    head = " ".join(names[:6])
    if _GO_PARKS.search(head):
        return "go-park"
    if _JAVA_MONITOR.search(" ".join(names[:16])):
        return "jvm-monitor"
    if any(name.startswith(("JVM_Sleep", "java.lang.Thread.sleep")) for name in names[:16]):
        return "sleep"
    if _JAVA_PARKS.search(" ".join(names[:14])):
        return _kind_of_park(names)
    first = next((at for at, frame in enumerate(user) if frame.kind == "python"), None)
    if first is not None:
        return _kind_of_python_futex(user, first)
    if "join" in head:
        return "join"
    if _returns_to_ruby(names):
        return "ruby-gvl"
    inside = names[: names.index(_RUBY_CODE)] if _RUBY_CODE in names else names
    if _sleeps_in_ruby(user):
        return "sleep"
    mutex = next((name for name in inside if name.startswith(_RUBY_MUTEX)), "")
    if mutex:
        return "cond" if mutex == _RUBY_CONDITION else "ruby-mutex"
    if _NATIVE_LOCKS.search(head) and ("cond" not in head or "mutex_cond_lock" in head):
        return "lock"
    return "cond"


def _sleeps_in_ruby(user: Sequence[FrameLike]) -> bool:
    """Return True for Kernel#sleep, which waits for a condition; False for a Mutex's, in `wait`."""
    for frame, caller in pairwise(user):
        if frame.name == "sleep" and frame.module == _RUBY_BUILT_IN:
            return caller.name != "wait"
    return False


def _is_unread(user: Sequence[FrameLike]) -> bool:
    """Return True for a stack without a frame of the JVM or of Java, which all its waits have."""
    return not any("libjvm" in frame.module or is_java(frame) for frame in user)


def _kind_of_park(names: Sequence[str]) -> str:
    for name in names:
        for kind, pattern in _JAVA_WAITS:
            if pattern.match(name):
                return kind
    return "java-park"


def _returns_to_ruby(names: Sequence[str]) -> bool:
    at = next((at for at, name in enumerate(names) if name in _RUBY_BLOCKING), 0)
    return at > 0 and all(_RUBY_WAITING.match(name) for name in names[:at])


def _kind_of_python_futex(user: Sequence[FrameLike], first: int) -> str:
    """`first` is where the innermost Python frame is."""
    frame, native = user[first], " ".join(entry.name for entry in user[:first])
    modules = " ".join(entry.module for entry in user[:first])
    if "join" in native:
        return "join"
    if "_queue.cpython" in modules or "SimpleQueue" in native:
        return "cond"
    if _PYTHON_QUEUES.match(frame.name) or _PYTHON_LIBRARY.search(frame.module):
        return "cond"
    return "lock"
