"""The data of 32-bit programs of x86, in the layout of 64-bit ones. Pure.

So structs have one way to become text. Only the printed members have their values.
Source: include/linux/compat.h, arch/x86/include/asm/compat.h, arch/x86/include/uapi/asm.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from purebpf.tools.trace.capture import END, MESSAGE_PARTS
from purebpf.tools.trace.kinds import Kind, Signature

__all__ = ["layout_of", "size_of", "widen"]

Widen = Callable[[bytes], bytes]


def _as(narrow: str, wide: str) -> Widen:
    """Members in their order, of other sizes."""

    def widen(data: bytes) -> bytes:
        values = list(struct.iter_unpack(narrow, data[: len(data) // size * size]))
        return b"".join(struct.pack(wide, *row) for row in values)

    size = struct.calcsize(narrow)
    return widen


def _stat(data: bytes) -> bytes:
    device, inode, mode, links, uid, gid, rdev, size, block, blocks = struct.unpack_from(
        "<IIHHHHIIII", data
    )
    fields = (device, inode, links, mode, uid, gid, 0, rdev, size, block, blocks)
    return struct.pack("<QQQIIIIQqqQ", *fields).ljust(144, b"\0")


def _stat64(data: bytes) -> bytes:
    device, mode, links, uid, gid, rdev = struct.unpack_from("<Q4x4xIIIIQ", data)
    size, block, blocks, *_ = struct.unpack_from("<qIQ", data, 44)
    fields = (device, 0, links, mode, uid, gid, 0, rdev, size, block, blocks)
    return struct.pack("<QQQIIIIQqqQ", *fields).ljust(144, b"\0")


def _statfs(data: bytes) -> bytes:
    return struct.pack("<7Qii3Q", *struct.unpack_from("<7Iii3I", data)).ljust(120, b"\0")


def _statfs64(data: bytes) -> bytes:
    return struct.pack("<7Qii3Q", *struct.unpack_from("<2I5Qii3I", data)).ljust(120, b"\0")


def _rusage(data: bytes) -> bytes:
    return struct.pack("<18q", *struct.unpack_from("<18i", data))


def _sysinfo(data: bytes) -> bytes:
    return struct.pack("<10QHHIQQI", *struct.unpack_from("<10IHHII", data)[:12], 0, *(
        struct.unpack_from("<III", data, 44)
    ))  # fmt: skip


def _sigaction(data: bytes) -> bytes:
    return struct.pack("<QQQ", *struct.unpack_from("<III", data)) + data[12:20]


def _siginfo(data: bytes) -> bytes:
    """Convert the siginfo of a child; others have no printed member behind the third."""
    head, (pid, uid, status, user, system) = data[:12], struct.unpack_from("<iiiii", data, 12)
    return head + struct.pack("<4xiii4xqq", pid, uid, status, user, system)


_SIZES_AND_LAYOUTS: Mapping[str, tuple[int, Widen]] = {
    "itimerspec": (16, _as("<4i", "<4q")),
    "itimerval": (16, _as("<4i", "<4q")),
    "rlimit": (8, lambda data: struct.pack("<QQ", *map(_limit, struct.unpack_from("<II", data)))),
    "rusage": (72, _rusage),
    "sigaction": (20, _sigaction),
    "stack": (12, _as("<IiI", "<Qi4xQ")),
    "stat": (64, _stat),
    "stat64": (96, _stat64),
    "statfs": (64, _statfs),
    "statfs64": (84, _statfs64),
    "sysinfo": (64, _sysinfo),
    "timespec": (8, _as("<ii", "<qq")),
    "timeval": (8, _as("<ii", "<qq")),
    "tms": (16, _as("<4i", "<4q")),
    "utimbuf": (8, _as("<ii", "<qq")),
}
"""Structs that are not as in 64-bit programs."""

_WIDE_IN_64 = frozenset({"itimerspec", "rlimit", "timespec"})
"""Those that calls of which the name ends in 64 take as 64-bit programs do."""

_INFINITY = 0xFFFFFFFF


def _limit(value: int) -> int:
    return (1 << 64) - 1 if value == _INFINITY else value


def layout_of(call: str, table: str) -> tuple[int, Widen] | None:
    """The size of a struct that a call of i386 takes, and how to widen it; None: as native."""
    if call.endswith("64") or call == "epoll_pwait2":
        if table in _WIDE_IN_64:
            return None
        return _SIZES_AND_LAYOUTS.get(f"{table}64") or _SIZES_AND_LAYOUTS.get(table)
    return _SIZES_AND_LAYOUTS.get(table)


_IOVEC = _as("<II", "<QQ")
_HEADERS = {28: _as("<IiIIIII", "<Qi4xQQQQI4x"), 32: _as("<IiIIIIII", "<Qi4xQQQQI4xI4x")}
"""struct msghdr, and struct mmsghdr."""
_FLOCK, _FLOCK64 = _as("<hhiii4x4x", "<hh4xqqi4x"), _as("<hhqqi", "<hh4xqqi4x")
_LOCKS64 = (12, 13, 14, 36, 37, 38)  # F_GETLK64, and F_OFD_GETLK

_KINDS: Mapping[str, tuple[int, Widen]] = {
    "pages": (4, _as("<I", "<Q")),
    "selectmask": (8, _as("<II", "<QQ")),
    "siginfo": (32, _siginfo),
    "timespecs": (16, _as("<ii", "<qq")),
    "timevals": (16, _as("<ii", "<qq")),
}


def size_of(call: str, kind: Kind) -> int | None:
    """Return the bytes behind an argument of a constant size; None: as many as in 64-bit."""
    if kind.name in {"S", "remaining"}:
        layout = layout_of(call, kind.table)
        return layout and layout[0]
    if kind.name == "long1" or (kind.name == "offset" and call == "sendfile"):
        return 4
    if kind.name in {"timespecs", "timevals"} and call.endswith("64"):
        return None
    return _KINDS[kind.name][0] if kind.name in _KINDS else None


def widen(
    call: str, call_signature: Signature, words: tuple[int, ...], pieces: Mapping[int, bytes]
) -> dict[int, bytes]:
    """The pieces as a 64-bit program's.

    Args:
        call: its name on i386.
        call_signature: its signature.
        words: its arguments.
        pieces: the copied memory.
    """
    wide = {}
    for identity, data in pieces.items():
        argument, part = identity >> 8, identity & (END - 1)
        if argument >= len(call_signature.kinds):
            wide[identity] = data
            continue
        kind = call_signature.kinds[argument]
        one = _struct_of(call, kind, words) if part == 0 else None
        if kind.name in {"message", "sent", "received"}:
            one = _of_message(kind.name, part % MESSAGE_PARTS)
        wide[identity] = one(data) if one else data
    return wide


def _of_message(kind: str, part: int) -> Widen | None:
    if part == 0:
        return _HEADERS[28 if kind == "message" else 32]
    return _IOVEC if part == 3 else None  # noqa: PLR2004 - the array, before its buffers


def _struct_of(call: str, kind: Kind, words: tuple[int, ...]) -> Widen | None:
    if kind.name == "iov":
        return _IOVEC
    if kind.name == "special":
        if call == "futex":
            return _as("<ii", "<qq")
        if call.startswith("fcntl"):
            return _FLOCK64 if words[1] in _LOCKS64 else _FLOCK
        return None
    if size_of(call, kind) is None:
        return None
    if kind.name in {"S", "remaining"}:
        layout = layout_of(call, kind.table)
        return layout and layout[1]
    return _as("<i", "<q") if kind.name in {"long1", "offset"} else _KINDS[kind.name][1]
