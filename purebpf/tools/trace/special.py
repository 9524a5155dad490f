"""Calls with an argument that decides about the others: fcntl, futex, clone, mmap. Pure."""

from __future__ import annotations

import struct
from collections.abc import Callable

from purebpf.tools.trace.constants import enum_name, flag_names, name_of, signal_name
from purebpf.tools.trace.quoting import quote
from purebpf.tools.trace.structs import segment, show
from purebpf.tools.trace.view import View

__all__ = ["CALLS", "CREATES", "open_flags", "pointer", "prctl_arguments"]

_ACCESS = ("O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE")
CREATES = 0o100 | 0o20000000
"""O_CREAT, and O_TMPFILE without O_DIRECTORY: what open(2) takes a mode for."""

_EXIT_SIGNAL = 0xFF  # of the flags of clone(2)
_PAGE = 4096
_BITSET_ANY = 0xFFFFFFFF


def pointer(value: int) -> str:
    """`NULL`, or an address."""
    return f"{value:#x}" if value else "NULL"


def open_flags(flags: int) -> str:
    """`O_WRONLY|O_CREAT`."""
    flags &= 0xFFFFFFFF
    access = _ACCESS[flags & 3]
    return f"{access}|{flag_names('open', flags & ~3)}" if flags & ~3 else access


def _mmap(view: View) -> list[str]:
    address, size, prot, flags, _, offset = view.arguments
    if view.name == "mmap2":
        offset *= _PAGE
    kind = enum_name("map_type", flags & 0xF)
    rest = flags & ~0xF
    shown_text = f"{kind}|{flag_names('map', rest)}" if rest else kind
    return [
        pointer(address), str(size), flag_names("prot", prot, "PROT_NONE"), shown_text,
        str(view.int32(4)), f"{offset:#x}" if offset else "0",
    ]  # fmt: skip


_PARENT_SETTID, _CHILD_TID, _SETTLS = 0x00100000, 0x01200000, 0x00080000


def _clone(view: View) -> list[str]:
    """The order of arguments is x86-64's, shown as strace names them."""
    flags, stack, parent, child, tls = view.arguments[:5]
    names = flag_names("clone", flags & ~_EXIT_SIGNAL) if flags & ~_EXIT_SIGNAL else ""
    signal = flags & _EXIT_SIGNAL
    parts = [part for part in (names, signal_name(signal) if signal else "") if part]
    shown_text = [f"child_stack={pointer(stack)}", f"flags={'|'.join(parts) or '0'}"]
    if flags & _PARENT_SETTID:
        written = view.piece(2, end=True)
        if written is not None and not view.failed and view.result is not None:
            shown_text.append(f"parent_tid=[{int.from_bytes(written[:4], 'little')}]")
        else:
            shown_text.append(f"parent_tid={pointer(parent)}")
    if flags & _SETTLS:
        shown_text.append(f"tls={pointer(tls)}")
    if flags & _CHILD_TID:
        shown_text.append(f"child_tidptr={pointer(child)}")
    return shown_text


def _clone_i386(view: View) -> list[str]:
    """The order of arguments follows CONFIG_CLONE_BACKWARDS; tls is a struct user_desc."""
    flags, stack, parent, tls, child = view.arguments[:5]
    area = view.piece(3)
    shown_text = _clone(view._replace(arguments=(flags, stack, parent, child, tls, 0)))
    if area is None:
        return shown_text
    tls_text = f"tls={pointer(tls)}"
    return [f"tls={segment(area)}" if text == tls_text else text for text in shown_text]


_DUPFD, _GETFD, _SETFD, _GETFL, _SETFL = 0, 1, 2, 3, 4
_LOCKS = (5, 6, 7, 12, 13, 14, 36, 37, 38)  # F_GETLK, F_SETLK, F_SETLKW; of i386; of open files
_GETLKS = (5, 12, 36)
_ADD_SEALS, _DUPFD_CLOEXEC, _SETPIPE = 1033, 1030, 1031
_BARE = (_GETFD, _GETFL, 9, 11, 1025, 1032, 1034)  # without a third argument
_SETOWN, _SETSIG = 8, 10


def _fcntl(view: View) -> list[str]:
    command, argument = view.uint32(1), view.arguments[2]
    shown_text = [str(view.int32(0)), enum_name("fcntl", command)]
    if command in _BARE:
        return shown_text
    if command == _SETFD:
        shown_text.append(flag_names("fd_flags", argument))
    elif command == _SETFL:
        shown_text.append(open_flags(argument))
    elif command in _LOCKS:
        is_read = command in _GETLKS and view.result == 0
        data = view.piece(2, end=is_read)
        shown_text.append(pointer(argument) if data is None else _flock(data, with_pid=is_read))
    elif command == _ADD_SEALS:
        shown_text.append(flag_names("seals", argument))
    elif command == _SETSIG:
        shown_text.append(signal_name(argument))
    elif command in (_DUPFD, _DUPFD_CLOEXEC, _SETPIPE, _SETOWN):
        shown_text.append(str(view.int32(2)))
    else:
        shown_text.append(f"{argument:#x}" if argument else "0")
    return shown_text


def _flock(data: bytes, *, with_pid: bool) -> str:
    kind, whence, start, length, pid = struct.unpack_from("<hh4xqqi", data)
    tail = f", l_pid={pid}" if with_pid else ""
    return (
        f"{{l_type={enum_name('flock_type', kind)}, l_whence={enum_name('whence', whence)}, "
        f"l_start={start}, l_len={length}{tail}}}"
    )


_WAIT, _WAKE, _REQUEUE, _CMP_REQUEUE, _WAKE_OP = 0, 1, 3, 4, 5
_LOCK_PI, _UNLOCK_PI, _TRYLOCK_PI, _WAIT_BITSET, _WAKE_BITSET = 6, 7, 8, 9, 10
_PRIVATE, _REALTIME = 128, 256


def _futex(view: View) -> list[str]:
    address, operation, value, timeout, second, third = view.arguments
    operation &= 0xFFFFFFFF
    command = operation & ~(_PRIVATE | _REALTIME)
    shown_operation = enum_name("futex", command)
    if operation & _PRIVATE:
        shown_operation += "_PRIVATE"
    if operation & _REALTIME:
        shown_operation += "|FUTEX_CLOCK_REALTIME"
    shown_text = [pointer(address), shown_operation]
    if command in (_UNLOCK_PI, _TRYLOCK_PI):
        return shown_text
    if command == _LOCK_PI:
        return [*shown_text, _timeout(view)]
    shown_text.append(str(value & 0xFFFFFFFF))
    if command in (_WAIT, _WAIT_BITSET):
        shown_text.append(_timeout(view))
    elif command in (_REQUEUE, _CMP_REQUEUE, _WAKE_OP):
        shown_text += [str(timeout & 0xFFFFFFFF), pointer(second)]
        if command != _REQUEUE:
            third &= 0xFFFFFFFF
            shown_text.append(str(third) if command == _CMP_REQUEUE else f"{third:#x}")
    if command in (_WAIT_BITSET, _WAKE_BITSET):
        third &= 0xFFFFFFFF
        shown_text.append("FUTEX_BITSET_MATCH_ANY" if third == _BITSET_ANY else f"{third:#x}")
    return shown_text


def _timeout(view: View) -> str:
    data = view.piece(3)
    if data is None:
        return pointer(view.arguments[3])
    return show("timespec", data)


CALLS: dict[str, Callable[[View], list[str]]] = {
    "clone": _clone,
    "clone_i386": _clone_i386,
    "fcntl": _fcntl,
    "futex": _futex,
    "mmap": _mmap,
    "mmap2": _mmap,
}
"""The arguments of calls with the kind `special`."""

_SET_NAME, _GET_NAME, _SET_PDEATHSIG = 15, 16, 1
_BOUNDING = (23, 24)  # PR_CAPBSET_READ, PR_CAPBSET_DROP
_OPERANDS = {3: 0, 4: 1, 7: 0, 8: 1, 13: 0, 15: 1, 16: 1, 21: 0, 27: 0, 30: 0,
             29: 1, 36: 1, 39: 0, 1: 1, 2: 1, 37: 1}  # fmt: skip
"""How many arguments an operation has behind it: prctl(2). Others are shown with four."""


def prctl_arguments(view: View) -> list[str]:
    """Return the arguments behind the operation."""
    operation = view.uint32(0)
    if operation in (_SET_NAME, _GET_NAME):
        data = view.piece(1, end=operation == _GET_NAME and view.result == 0)
        if data is not None and (operation == _SET_NAME or view.result == 0):
            return [quote(data.partition(b"\0")[0])]
        return [pointer(view.arguments[1])]
    if operation == _SET_PDEATHSIG:
        return [signal_name(view.uint32(1))]
    if operation in _BOUNDING:
        return [enum_name("capability", view.uint32(1))]
    count = _OPERANDS.get(operation, 4)
    if name_of("prctl", operation) in ("PR_SET_DUMPABLE", "PR_SET_KEEPCAPS"):
        return [str(view.arguments[1])]
    return [f"{value:#x}" if value else "0" for value in view.arguments[1 : 1 + count]]
