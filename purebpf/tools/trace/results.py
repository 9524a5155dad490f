"""The result of a call as text, as strace writes it. Pure."""

from __future__ import annotations

import os
import struct

from purebpf.errors import errno_name
from purebpf.tools.trace.arrays import descriptors_of
from purebpf.tools.trace.constants import enum_name, flag_names
from purebpf.tools.trace.special import open_flags
from purebpf.tools.trace.structs import show
from purebpf.tools.trace.view import View

__all__ = ["show_result"]

_RESTARTS = {
    512: "ERESTARTSYS (To be restarted if SA_RESTART is set)",
    513: "ERESTARTNOINTR (To be restarted)",
    514: "ERESTARTNOHAND (To be restarted if no handler)",
    516: "ERESTART_RESTARTBLOCK (Interrupted by signal)",
}
"""Errors that the kernel keeps to itself: include/linux/errno.h."""

_ADDRESSES = ("mmap", "mmap2", "brk", "mremap", "shmat")
_OCTAL = ("umask",)
_DESCRIPTORS = frozenset(
    {"accept", "accept4", "creat", "dup", "dup2", "dup3", "epoll_create", "epoll_create1"}
    | {"eventfd", "eventfd2", "inotify_init", "inotify_init1", "memfd_create", "open", "openat"}
    | {"openat2", "pidfd_open", "signalfd", "signalfd4", "socket", "timerfd_create"}
)
"""Calls that return a descriptor."""
_POLLS = ("poll", "ppoll")
_SELECTS = ("select", "pselect6")
_GETFD, _GETFL = 1, 3
_PERSONALITY = 0xFF  # PER_MASK
_CLASS_SHIFT = 13  # IOPRIO_CLASS_SHIFT


def show_result(view: View) -> str:
    """`3`, `-1 ENOENT (No such file or directory)`, `?`."""
    result = view.result
    if result is None:
        return "?"
    if view.failed:
        if -result in _RESTARTS:
            return f"? {_RESTARTS[-result]}"
        return f"-1 {errno_name(-result)} ({os.strerror(-result)})"
    if view.name in _ADDRESSES:
        return f"{result & 0xFFFFFFFFFFFFFFFF:#x}" if result else "0"
    if view.name in _OCTAL:
        return f"0{result:o}" if result else "000"
    if view.name == "fcntl":
        return _fcntl(view, result)
    if (named := _named(view, result)) is not None:
        return named
    if view.name in _DESCRIPTORS:
        return view.descriptor(result)
    if view.name in _POLLS:
        return _poll(view, result)
    if view.name in _SELECTS:
        return _select(view, result)
    if view.name == "recvmmsg" and (left := view.piece(4, end=True)) is not None:
        return f"{result} (left {show('timespec', left)})"
    return str(result)


def _named(view: View, result: int) -> str | None:
    """A result that has names; None: this one has none."""
    if view.name == "sched_getscheduler":
        return f"{result} ({enum_name('sched', result) if result else 'SCHED_OTHER'})"
    if view.name == "membarrier" and not view.arguments[0]:
        return f"{result:#x} ({flag_names('membarrier', result)})" if result else "0"
    if view.name == "personality":
        flags, base = result & ~_PERSONALITY, enum_name("personality", result & _PERSONALITY)
        text = f"{flag_names('personality_flags', flags)}|{base}" if flags else base
        return f"{result:#x} ({text})" if result else f"0 ({text})"
    if view.name == "set_thread_area" and (data := view.piece(0, end=True)):
        return f"{result} (entry_number={int.from_bytes(data[:4], 'little', signed=True)})"
    if view.name == "ioprio_get":
        kind = enum_name("ioprio_class", result >> _CLASS_SHIFT)
        level = result & ((1 << _CLASS_SHIFT) - 1)
        return f"{result:#x} (IOPRIO_PRIO_VALUE({kind}, {level}))".replace("0x0 ", "0 ")
    return None


def _fcntl(view: View, result: int) -> str:
    command = view.uint32(1)
    if command == _GETFL:
        return f"{f'{result:#x}' if result else '0'} (flags {open_flags(result)})"
    if command == _GETFD and result:
        return f"{result:#x} (flags {flag_names('fd_flags', result)})"
    return str(result)


def _poll(view: View, result: int) -> str:
    if not result:
        return "0 (Timeout)"
    data = view.piece(0, end=True)
    if data is None:
        return str(result)
    ready = [
        f"{{fd={fd}, revents={flag_names('poll', events)}}}"
        for fd, _, events in struct.iter_unpack("<ihH", data[: len(data) // 8 * 8])
        if events and fd >= 0
    ]
    left = view.piece(2, end=True) if view.name == "ppoll" else None
    if left is not None:
        ready.append("left " + show("timespec", left))
    return f"{result} ([{', '.join(ready)}])"


def _select(view: View, result: int) -> str:
    if not result:
        return "0 (Timeout)"
    limit, text = view.int32(0), []
    for index, name in ((1, "in"), (2, "out"), (3, "except")):
        data = view.piece(index, end=True)
        if data is not None and (members := descriptors_of(data, limit)):
            text.append(f"{name} [{' '.join(map(str, members))}]")
    left = view.piece(4, end=True)
    if left is not None:
        text.append("left " + show("timeval" if view.name == "select" else "timespec", left))
    return f"{result} ({', '.join(text)})"
