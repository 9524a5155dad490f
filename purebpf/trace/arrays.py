"""Arguments that point to arrays, as text. Pure.

Each function takes the call, the number of the argument, and what it is.
"""

from __future__ import annotations

import struct

from purebpf.trace import sockets, structs
from purebpf.trace.constants import enum_name, flag_names
from purebpf.trace.kinds import Kind
from purebpf.trace.quoting import quote
from purebpf.trace.special import pointer
from purebpf.trace.view import View

__all__ = [
    "descriptor_set",
    "descriptors",
    "descriptors_of",
    "entries",
    "environment",
    "events",
    "identities",
    "message",
    "polled",
    "processors",
    "signals",
    "strings",
    "times",
    "vector",
]

_ABBREVIATED = 32
"""Strings of argv that are shown."""


def descriptors(view: View, index: int, _: Kind) -> str:
    """The two of pipe(2): `[3, 4]`."""
    data = view.piece(index, end=True)
    if data is None or view.failed:
        return pointer(view.arguments[index])
    first, second = struct.unpack_from("<ii", data)
    return f"[{first}, {second}]"


def identities(view: View, index: int, kind: Kind) -> str:
    """Groups: `[0, 100]`."""
    data = view.piece(index, end=">" in kind.where)
    if data is None or (">" in kind.where and (view.failed or not view.arguments[0])):
        return pointer(view.arguments[index])
    count = view.length(kind.extent) or 0
    numbers = [str(number) for (number,) in struct.iter_unpack("<I", data[: len(data) // 4 * 4])]
    return f"[{', '.join(numbers + (['...'] if count > len(numbers) else []))}]"


def signals(view: View, index: int, kind: Kind) -> str:
    """A sigset_t: `[INT CHLD]`."""
    at_end = ">" in kind.where
    data = view.piece(index, end=at_end)
    if not data or (at_end and (view.failed or view.result is None)):
        return pointer(view.arguments[index])
    return structs.signal_set(data)


def polled(view: View, index: int, kind: Kind) -> str:
    """What poll(2) asks for: `[{fd=3, events=POLLIN}]`."""
    data = view.piece(index)
    if data is None:
        return pointer(view.arguments[index])
    shown = [
        f"{{fd={fd}, events={flag_names('poll', events)}}}" if fd >= 0 else f"{{fd={fd}}}"
        for fd, events, _ in struct.iter_unpack("<ihH", data[: len(data) // 8 * 8])
    ]
    more = ["..."] if (view.length(kind.extent) or 0) > len(shown) else []
    return f"[{', '.join(shown + more)}]"


def descriptor_set(view: View, index: int, _: Kind) -> str:
    """A fd_set: `[3 5]`."""
    data = view.piece(index)
    if data is None:
        return pointer(view.arguments[index])
    return f"[{' '.join(map(str, descriptors_of(data, view.int32(0))))}]"


def descriptors_of(data: bytes, limit: int) -> list[int]:
    """The members of a fd_set."""
    bits = int.from_bytes(data, "little")
    return [fd for fd in range(min(limit, 8 * len(data))) if bits >> fd & 1]


def events(view: View, index: int, _: Kind) -> str:
    """What epoll_wait(2) gives."""
    data = view.piece(index, end=True)
    if data is None or view.failed:
        return pointer(view.arguments[index])
    size = structs.SIZES["epoll_event"]
    events = [structs.show("epoll_event", data[at : at + size]) for at in range(0, len(data), size)]
    more = ["..."] if (view.result or 0) > len(events) else []
    return f"[{', '.join(events + more)}]"


def vector(view: View, index: int, kind: Kind, part: int = 0, *, first: int = 1) -> str:
    """Buffers: `[{iov_base="text", iov_len=4}]`; `part` and `first` say which pieces they are."""
    at_end = ">" in kind.where
    data = view.piece(index, part, end=at_end)
    if data is None:
        return pointer(view.arguments[index])
    left = None
    if at_end:
        left = max(view.result or 0, 0)
    entries = []
    for place, (base, size) in enumerate(struct.iter_unpack("<QQ", data[: len(data) // 16 * 16])):
        entries.append(_entry(view, view.piece(index, first + place, end=at_end), base, size, left))
        if left is not None:
            left = max(0, left - size)
    return f"[{', '.join(entries)}]"


def _entry(view: View, data: bytes | None, base: int, size: int, left: int | None) -> str:
    shown = size if left is None else min(size, left)
    if data is None or (left is not None and view.failed):
        text = pointer(base)
    else:
        text = quote(data[: min(shown, view.string_size)], more=shown > view.string_size)
    return f"{{iov_base={text}, iov_len={size}}}"


def message(view: View, index: int, kind: Kind) -> str:
    """A struct msghdr."""
    at_end = ">" in kind.where
    data = view.piece(index, end=at_end)
    if data is None:
        return pointer(view.arguments[index])
    if at_end and view.failed:
        return f"{{msg_namelen={int.from_bytes(data[8:12], 'little')}}}"
    name, name_size, array, count, control, control_size, flags = struct.unpack_from(
        "<QI4xQQQQI", data
    )
    address = view.piece(index, 1, end=at_end)
    shown_name = pointer(name)
    if name and address:
        shown_name = sockets.address(address, name_size)
    parts = vector(view, index, kind, 3, first=4) if array else "NULL"
    shown = [
        f"msg_name={shown_name}", f"msg_namelen={name_size}", f"msg_iov={parts}",
        f"msg_iovlen={count}",
    ]  # fmt: skip
    if control_size:
        written = view.piece(index, 2, end=at_end) if control else None
        shown.append(f"msg_control={_control(written, control_size) or pointer(control)}")
    shown += [f"msg_controllen={control_size}", f"msg_flags={flag_names('msg', flags)}"]
    return f"{{{', '.join(shown)}}}"


_HEADER = struct.Struct("<Qii")
"""struct cmsghdr of include/linux/socket.h."""
_RIGHTS, _CREDENTIALS = 1, 2
_SCM = {_RIGHTS: "SCM_RIGHTS", _CREDENTIALS: "SCM_CREDENTIALS", 29: "SO_TIMESTAMP_OLD",
        35: "SO_TIMESTAMPNS_OLD"}  # fmt: skip


def _control(data: bytes | None, size: int) -> str:
    """Messages beside the data: descriptors and credentials; "" where there are none."""
    data = (data or b"")[:size]  # of a long one, what there was room for
    shown, at = [], 0
    while at + _HEADER.size <= len(data):
        length, level, kind = _HEADER.unpack_from(data, at)
        if length < _HEADER.size:
            break
        shown.append(_control_message(length, level, kind, data[at + _HEADER.size : at + length]))
        at += -(-length // 8) * 8
    more = ["..."] if shown and len(data) < size else []
    return f"[{', '.join(shown + more)}]" if shown else ""


def _control_message(length: int, level: int, kind: int, data: bytes) -> str:
    is_of_socket = level == 1  # SOL_SOCKET
    name = _SCM.get(kind, f"{kind:#x}") if is_of_socket else f"{kind:#x}"
    shown = f"cmsg_len={length}, cmsg_level={enum_name('sol', level)}, cmsg_type={name}"
    if len(data) < length - _HEADER.size or not is_of_socket:
        return f"{{{shown}}}"
    if kind == _RIGHTS:
        fds = ", ".join(str(fd) for (fd,) in struct.iter_unpack("<i", data[: len(data) // 4 * 4]))
        shown += f", cmsg_data=[{fds}]"
    elif kind == _CREDENTIALS and len(data) >= 12:  # noqa: PLR2004 - struct ucred
        pid, uid, gid = struct.unpack_from("<iII", data)
        shown += f", cmsg_data={{pid={pid}, uid={uid}, gid={gid}}}"
    return f"{{{shown}}}"


def strings(view: View, index: int, _: Kind) -> str:
    """argv: `["ls", "-l"]`."""
    texts = []
    for part in range(_ABBREVIATED + 1):
        data = view.piece(index, part)
        if data is None:
            break
        text = data.rstrip(b"\0") if data.endswith(b"\0") else data
        texts.append(quote(text[: view.string_size], more=len(text) > view.string_size))
    if not texts:
        return pointer(view.arguments[index])
    if len(texts) > _ABBREVIATED:
        texts[_ABBREVIATED:] = ["..."]
    return f"[{', '.join(texts)}]"


def environment(view: View, index: int, _: Kind) -> str:
    """How many variables there are: `0x7fff5 /* 20 vars */`."""
    address = view.arguments[index]
    count, part = 0, 0
    while (data := view.piece(index, part)) is not None:
        for (word,) in struct.iter_unpack("<Q", data):
            if not word:
                plural = "" if count == 1 else "s"
                return f"{address:#x} /* {count} var{plural} */"
            count += 1
        part += 1
    return f"{address:#x} /* {count} or more vars */" if count else pointer(address)


def entries(view: View, index: int, _: Kind) -> str:
    """How many entries getdents(2) gives: `0x5555 /* 5 entries */`."""
    data = view.piece(index, end=True)
    if data is None or view.failed:
        return pointer(view.arguments[index])
    count, at = 0, 0
    while at + 18 <= len(data):
        at += int.from_bytes(data[at + 16 : at + 18], "little") or len(data)
        count += 1
    more = " or more" if (view.result or 0) > len(data) else ""
    word = "entry" if count == 1 and not more else "entries"
    return f"{pointer(view.arguments[index])} /* {count}{more} {word} */"


def processors(view: View, index: int, kind: Kind) -> str:
    """A cpu_set_t: `[0 1]`."""
    data = view.piece(index, end=">" in kind.where)
    if not data or (">" in kind.where and view.failed):
        return pointer(view.arguments[index])
    return f"[{' '.join(map(str, descriptors_of(data, 8 * len(data))))}]"


def times(view: View, index: int, kind: Kind) -> str:
    """Two times: `[{tv_sec=1, tv_nsec=0}, UTIME_NOW]`."""
    data = view.piece(index)
    if data is None:
        return pointer(view.arguments[index])
    unit = "nsec" if kind.name == "timespecs" else "usec"
    pairs = struct.iter_unpack("<qq", data)
    shown = [structs.timespec(at, rest, unit, special=unit == "nsec") for at, rest in pairs]
    return f"[{', '.join(shown)}]"
