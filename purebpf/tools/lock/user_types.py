"""The purpose of a wait in futex(2), by the functions that led to it. Pure.

The kernel sees a word in memory. The names of the innermost functions show if it belongs to a
mutex, a condition variable, the GIL of Python or the monitor of a Java object: functions of glibc
and musl, of Rust's and Go's runtimes, of CPython, and of HotSpot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from purebpf.findings.ownership import is_java
from purebpf.symbols.frame import Frame, Unknown
from purebpf.symbols.script_names import spell_script
from purebpf.tuples import NamedTuple

__all__ = ["Wait", "describe"]

_INNERMOST = 12
"""Frames that may belong to the lock itself."""

_PYTHON = re.compile(r"(lib)?python3?[\d.]*(t|d)?(\.so.*)?$")
_GIL = re.compile(r"take_gil|PyEval_(RestoreThread|AcquireThread|AcquireLock)|PyGILState_Ensure")
_PYTHON_LOCK = re.compile(
    r"PyThread_acquire_lock|_?PyMutex_Lock|_PyParkingLot_Park|_?PySemaphore_|_PyRWMutex_"
)
_TYPES = (
    ("condition", re.compile(r"_*(pthread_)?cnd_wait|_*pthread_cond_|.*[Cc]ondvar.*::wait")),
    ("rwlock", re.compile(r"_*pthread_rwlock_|.*RwLock::|.*rwlock::futex")),
    (
        "semaphore",
        re.compile(
            r"_*(new_)?sem_(clock|timed)?wait|do_futex_wait|"
            r"std::(__atomic_semaphore|counting_semaphore)\b"
        ),
    ),
    ("barrier", re.compile(r"_*pthread_barrier_wait|std::(barrier|latch|__tree_barrier)\b")),
    ("join", re.compile(r"_*pthread_(timed|clock)?join|thrd_join")),
    ("once", re.compile(r"_*pthread_once|.*Once.*::call")),
    ("idle", re.compile(r"runtime\.(stopm|notesleep|notetsleep|mPark)|.*thread::park|.*Parker::")),
    (
        "mutex",
        re.compile(
            r"_*(GI_)*_*(pthread_mutex_|lll_lock_wait)|mtx_(timed)?lock|.*[Mm]utex.*lock|runtime\.lock"
        ),
    ),
)
_JAVA_MONITOR = re.compile(r"ObjectMonitor::(enter|Enter)")
_JAVA_LOCK = re.compile(
    r"java\.util\.concurrent\.locks\.(ReentrantLock|ReentrantReadWriteLock\$\w+Lock|StampedLock)"
    r"\.(lock|tryLock|readLock|writeLock|tryReadLock|tryWriteLock)"
)
_JAVA_CONDITION = re.compile(r"java\.util\.concurrent\.locks\.\w+\$ConditionObject\.await")
_JAVA_LOCKS = re.compile(r"(java\.util\.concurrent\.locks|jdk\.internal)\.")
_JAVA_DEPTH = 20
"""Frames of the JVM and of java.util.concurrent between the wait and its caller."""
_OF_PYTHON = ("GIL", "python lock", "condition", "join", "idle")
"""Types of waits in which frames of the interpreter lie between the lock and the caller."""
_QUEUE = re.compile(r"_queue_SimpleQueue_get")
_PYTHON_LIBRARY = re.compile(r"/(queue|threading|concurrent/futures/\w+)\.py$")
_PYTHON_DEPTH = 4
_HELD_UP = re.compile(r"(\w*Queue\.put|(Bounded)?Semaphore\.)")
_PYTHON_WAITS = (
    ("join", re.compile(r"Thread\.(join|_wait_for_tstate_lock)")),
    ("condition", re.compile(r"(Condition|Event|Barrier)\.")),
)
_LAMBDA = re.compile(r"[\w:~]+(\([^()<>]*\))?( const)?::\{lambda\([^()]*\)#\d+\}")
_LIBRARIES = re.compile(r"(libc|libpthread|ld-linux|ld-musl|libstdc\+\+|libc\+\+)[-.]")
_RUNTIME = re.compile(
    r"__gthread|__glibcxx_|parking_lot|lock_api|runtime\.(futex|lock|note|sema|stopm|mPark|mcall|park)"
)
_ARGUMENTS = re.compile(r"<[^<>]*>")


class Wait(NamedTuple):
    """The purpose of a wait, by its stack.

    Attributes:
        type: one of `purebpf.tools.lock.request.USER_TYPES`.
        caller: the first function that is not one of the lock's own, of Python with file and line;
            "" if none has a name.
    """

    type: str
    caller: str


def describe(stack: Sequence[Frame | Unknown]) -> Wait:
    """Describe the purpose of the wait of a thread with this stack; the innermost function comes
    first.
    """
    java = _java_lock([entry for entry in stack[:_JAVA_DEPTH] if isinstance(entry, Frame)])
    if java is not None:
        return java
    kind = _type_of(stack[:_INNERMOST])
    if kind == "python lock":
        kind = _python_purpose(stack)
    inside = True
    for entry in stack:
        if isinstance(entry, Unknown) or entry.kind not in ("user", "inlined", "python"):
            continue
        inside = inside and _belongs(entry, kind)
        if not inside:
            return Wait(kind, _spell(entry))
    return Wait(kind, _inlined_lambda(stack))


def _java_lock(frames: Sequence[Frame]) -> Wait | None:
    """Return a wait for a monitor or lock of Java, with the method that wants it."""
    methods = [frame for frame in frames if is_java(frame)]
    callers = [frame.name for frame in methods if not _JAVA_LOCKS.match(frame.name)]
    caller = callers[0] if callers else ""
    if any(_JAVA_MONITOR.match(frame.name) for frame in frames):
        return Wait("monitor", caller)
    names = [frame.name for frame in methods]
    if any(map(_JAVA_LOCK.match, names)) and not any(map(_JAVA_CONDITION.match, names)):
        return Wait("java lock", caller)
    return None


def _spell(frame: Frame) -> str:
    """Return the function; of Python with its file and line."""
    if frame.kind != "python" or not frame.line:
        return frame.name
    return f"{frame.name} ({spell_script(frame.module)}:{frame.line})"


def _python_purpose(stack: Sequence[Frame | Unknown]) -> str:
    """Return the type of a wait for a lock of Python, of which its queues and conditions are made.

    A worker of a pool waits for a job so. A full queue and a semaphore hold up their callers: they
    are locks.
    """
    frames = [entry for entry in stack if isinstance(entry, Frame)]
    if any(_QUEUE.match(frame.name) for frame in frames[:_INNERMOST] if frame.kind == "user"):
        return "idle"
    threading = [frame for frame in frames if frame.kind == "python"][:_PYTHON_DEPTH]
    names = [frame.name for frame in threading if _PYTHON_LIBRARY.search(frame.module)]
    if any(_HELD_UP.match(name) for name in names):
        return "python lock"
    return next(
        (kind for name in names for kind, by in _PYTHON_WAITS if by.match(name)), "python lock"
    )


def _inlined_lambda(stack: Sequence[Frame | Unknown]) -> str:
    """Return the lambda that a thread of C++ runs, where the compiler put it into std::thread."""
    for entry in stack:
        if isinstance(entry, Frame) and (name := _LAMBDA.search(entry.name)):
            return name[0]
    return ""


def _type_of(stack: Sequence[Frame | Unknown]) -> str:
    frames = [entry for entry in stack if isinstance(entry, Frame) and entry.kind == "user"]
    for name, pattern in (("GIL", _GIL), ("python lock", _PYTHON_LOCK)):
        if any(pattern.match(frame.name) for frame in frames):
            return name
    for at, frame in enumerate(frames):
        for name, pattern in _TYPES:
            if not pattern.match(frame.name):
                continue
            # take_gil() has no symbol in a stripped interpreter, which waits so for nothing else
            if name == "condition" and frames[at + 1 : at + 2] and _is_python(frames[at + 1]):
                return "GIL"
            return name
    return "futex"


def _is_python(frame: Frame) -> bool:
    return _PYTHON.match(frame.module.rpartition("/")[2]) is not None


def _belongs(frame: Frame, kind: str) -> bool:
    """Return True if a frame belongs to a lock, or to the libraries that bring locks."""
    if frame.kind == "python":
        return False
    if kind in _OF_PYTHON and (_is_python(frame) or "/lib-dynload/" in frame.module):
        return True
    if _LIBRARIES.match(frame.module.rpartition("/")[2]) or _RUNTIME.match(frame.name):
        return True
    if "std::" in frame.name and _is_of_std(frame.name):
        return True
    patterns = (_GIL, _PYTHON_LOCK, *(pattern for _, pattern in _TYPES))
    return any(pattern.match(frame.name) for pattern in patterns)


def _is_of_std(name: str) -> bool:
    """Return True for a function of the standard library of C++ or Rust.

    A template of C++ has the type of its result before its name, which may be one of std.
    """
    before = ""
    while before != name:
        before, name = name, _ARGUMENTS.sub("", name)
    return name.partition("(")[0].rpartition(" ")[2].startswith("std::")
