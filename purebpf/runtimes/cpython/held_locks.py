"""The holders of a `threading.Lock`: `with lock:` keeps `lock.__exit__` in its frame.

The bound method stays there until the block ends (Python/bytecodes.c, BEFORE_WITH), so the frames
of a thread show which locks it has, or is about to take. An `RLock` names its owner itself. A
direct call of acquire() leaves no trace. Words behind the frame's own are not read: they are left
from calls that returned. For 3.11 and 3.12; later frames do not have the method in this form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from purebpf.runtimes.cpython.layout import Layout
from purebpf.runtimes.cpython.threads import ThreadState
from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.tuples import NamedTuple

__all__ = ["HeldLock", "held_locks"]

_VALUES = {(3, 11): 72, (3, 12): 72}
"""offsetof(_PyInterpreterFrame, localsplus) of Include/internal/pycore_frame.h."""
_STACK_TOP = 64
"""offsetof(_PyInterpreterFrame, stacktop): the number of used words; -1 while the frame runs."""
_STACK_SIZE, _LOCALS = -4, 4
"""co_stacksize and co_nlocalsplus of PyCodeObject, by their distance from co_firstlineno."""
_SLOTS = 256
"""Variables and values of a frame that are looked at."""
_MOST_FRAMES = 200
_TYPE, _METHOD, _SELF = 8, 16, 24
"""In a PyCFunctionObject: ob_type, m_ml, m_self."""
_LOCK, _OWNER, _IS_LOCKED = 16, 24, 32
"""In a lockobject: lock_lock and `locked`; in an rlockobject: rlock_lock and rlock_owner
(Modules/_threadmodule.c)."""
_EXIT = b"__exit__\0"


class HeldLock(NamedTuple):
    """A lock that a thread has, or waits for.

    Attributes:
        futex: where its semaphore is, the address that waiters sleep on.
        thread: the thread whose frame it is in: as `ThreadState.thread_id`.
        owner: of an RLock: the thread that has it, in the same numbers; 0 for a Lock.
    """

    futex: int
    thread: int
    owner: int


def held_locks(
    version: tuple[int, int], layout: Layout, memory: Memory, threads: Iterable[ThreadState]
) -> Iterator[HeldLock]:
    """Yield the locked locks in the frames of threads, without the ones that cannot be read."""
    values = _VALUES.get(version)
    if values is None:
        return
    for thread in threads:
        for frame in _frames(layout, memory, thread.address):
            for value in _words(memory, frame + values, _used(layout, memory, frame)):
                lock = _lock_of(layout, memory, value)
                if lock is not None:
                    yield HeldLock(lock[0], thread.pthread, lock[1])


def _frames(layout: Layout, memory: Memory, thread: int) -> Iterator[int]:
    try:
        at = memory.number(thread + layout.frame)
        if at and layout.current >= 0:
            at = memory.number(at + layout.current)
        for _ in range(_MOST_FRAMES):
            if not at:
                return
            yield at
            at = memory.number(at + layout.frame_previous)
    except UnreadableError:
        return


def _used(layout: Layout, memory: Memory, frame: int) -> int:
    """The number of words of a frame that may be in use; 0 if it cannot be read."""
    try:
        code = memory.number(frame + layout.frame_code)
        first_line = code + layout.code_first_line
        most = _integer(memory, first_line + _STACK_SIZE) + _integer(memory, first_line + _LOCALS)
        used = _integer(memory, frame + _STACK_TOP)
    except UnreadableError:
        return 0
    return min(_SLOTS, used if 0 <= used <= most else max(0, most))


def _integer(memory: Memory, at: int) -> int:
    return int.from_bytes(memory.bytes(at, 4), "little", signed=True)


def _words(memory: Memory, at: int, number: int) -> Iterator[int]:
    """Values that may be pointers to objects."""
    try:
        raw = memory.bytes(at, 8 * number)
    except UnreadableError:
        return
    for offset in range(0, len(raw), 8):
        value = int.from_bytes(raw[offset : offset + 8], "little")
        if value > 4096 and not value & 7 and not value >> 47:  # noqa: PLR2004 - user space
            yield value


def _lock_of(layout: Layout, memory: Memory, value: int) -> tuple[int, int] | None:
    """The futex and the owner of the lock whose `__exit__` an object is; None: of no held lock."""
    try:
        if _type_name(layout, memory, value) != b"builtin_function_or_method":
            return None
        name = memory.bytes(memory.number(memory.number(value + _METHOD)), len(_EXIT))
        if name != _EXIT:
            return None
        lock = memory.number(value + _SELF)
        kind = _type_name(layout, memory, lock)
        if kind == b"_thread.lock" and memory.bytes(lock + _IS_LOCKED, 1) == b"\1":
            return memory.number(lock + _LOCK), 0
        if kind == b"_thread.RLock" and (owner := memory.number(lock + _OWNER)):
            return memory.number(lock + _LOCK), owner
    except UnreadableError:
        pass
    return None


def _type_name(layout: Layout, memory: Memory, value: int) -> bytes:
    name = memory.number(memory.number(value + _TYPE) + layout.type_name)
    return memory.bytes(name, 40).partition(b"\0")[0]
