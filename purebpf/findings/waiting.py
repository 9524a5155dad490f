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

from purebpf.findings.kernel_reasons import (
    call_of,
    is_call_without_wait,
    is_in_connect,
    kind_by_kernel,
)
from purebpf.findings.ownership import FrameLike, Program, is_interpreter, is_java, short_name
from purebpf.findings.wait_purposes import purpose_of_condition
from purebpf.late_pattern import compile_later
from purebpf.tuples import NamedTuple

__all__ = [
    "HAVE_HOMES",
    "Judgement",
    "Side",
    "are_deeper_than_home",
    "handles_a_request",
    "judge",
    "takes_jobs",
]


class Side(Enum):
    """The side of a connection that a thread is on."""

    CLIENT = "client"
    SERVER = "server"
    UNKNOWN = "unknown"


_BY_STATE = {"gil": "gil", "monitor": "jvm-monitor"}
_ALWAYS_WORK = frozenset(
    {
        *("fsync", "disk", "pipe-write", "sock-write", "connect", "memory-limit", "dirty-pages"),
        *("kernel-lock", "jvm-monitor", "file-lock", "gil", "nested-loop", "database-lock"),
        "standby",
        *("ruby-mutex", "ruby-gvl", "queue-full", "permit", "nap", "barrier"),
        *("call", "reclaim", "remote-file"),
    }
)
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
    kind = _BY_STATE.get(state) or kind_by_kernel(kernel)
    if kind == "other" and is_call_without_wait(call or call_of(kernel)):
        kind = "call"
    elif kind == "sock-write" and (call == "connect" or is_in_connect(kernel)):
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
        kind = purpose_of_condition(kind, program, user)
    own_at = [at for at, frame in enumerate(user) if program.owns(frame)]
    is_called = bool(own_at) and (
        program.runs_requests or any(map(program.is_library, user[own_at[-1] + 1 :]))
    )
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
