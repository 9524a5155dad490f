"""Struct msghdr and struct mmsghdr, with their buffers, as text. Pure.

Each function takes the call, the number of the argument, and its kind.
"""

from __future__ import annotations

import struct

from purebpf.tools.trace import arrays, sockets
from purebpf.tools.trace.capture import MESSAGE_PARTS, MESSAGE_SIZE, MESSAGES
from purebpf.tools.trace.constants import enum_name, flag_names
from purebpf.tools.trace.kinds import Kind
from purebpf.tools.trace.special import pointer
from purebpf.tools.trace.view import View
from purebpf.tuples import NamedTuple

__all__ = ["message", "messages"]


class _Place(NamedTuple):
    """The places of the pieces of a message."""

    argument: int
    part: int
    at_end: bool


def message(view: View, index: int, kind: Kind) -> str:
    """A struct msghdr."""
    at_end = kind.where.endswith(">")
    before, data = view.piece(index), view.piece(index, end=at_end)
    if data is None:
        return pointer(view.arguments[index])
    if at_end and view.failed:
        return f"{{msg_namelen={int.from_bytes(data[8:12], 'little')}}}"
    return _header(view, _Place(index, 0, at_end), data, before)


def messages(view: View, index: int, kind: Kind) -> str:
    """An array of struct mmsghdr: those that were passed, or those that were filled."""
    received = kind.name == "received"
    first, after = view.piece(index), view.piece(index, end=True) or b""
    count = view.result if received else view.length(kind.extent)
    if first is None or count is None or count < 0:
        return pointer(view.arguments[index])
    done, texts = max(view.result or 0, 0), []
    for number in range(min(count, MESSAGES)):
        place = _Place(index, number * MESSAGE_PARTS, received)
        at = number * MESSAGE_SIZE
        data = view.piece(index, place.part, end=received)
        if data is None:
            break
        text = f"msg_hdr={_header(view, place, data, first[at:] if received else None)}"
        filled = data if received else after[at : at + MESSAGE_SIZE]
        if number < done and len(filled) >= MESSAGE_SIZE:
            text += f", msg_len={int.from_bytes(filled[56:60], 'little')}"
        texts.append(f"{{{text}}}")
    more = ["..."] if count > len(texts) else []
    return f"[{', '.join(texts + more)}]"


def _header(view: View, place: _Place, data: bytes, before: bytes | None) -> str:
    """Return a struct msghdr; `before`: the argument before the call, if the call wrote to its
    buffers.

    A struct mmsghdr has the number of bytes behind it.
    """
    index, part, at_end = place
    name, name_size, array, count, control, control_size, flags = struct.unpack_from(
        "<QI4xQQQQI", data
    )
    address = view.piece(index, part + 1, end=at_end)
    shown_name = sockets.address(address, name_size) if name and address else pointer(name)
    room = int.from_bytes(before[8:12], "little") if before and name else name_size
    shown_size = f"{room} => {name_size}" if room != name_size else str(name_size)
    left = int.from_bytes(data[56:60], "little") if len(data) >= MESSAGE_SIZE and at_end else None
    kind = Kind("iov", where=">" if at_end else "<")
    parts = "NULL"
    if array:
        parts = arrays.vector(view, index, kind, part=part + 3, first=part + 4, left=left)
    texts = [
        f"msg_name={shown_name}", f"msg_namelen={shown_size}", f"msg_iov={parts}",
        f"msg_iovlen={count}",
    ]  # fmt: skip
    if control_size:
        written = view.piece(index, part + 2, end=at_end) if control else None
        texts.append(
            f"msg_control={_control(written, control_size, view.word) or pointer(control)}"
        )
    texts += [f"msg_controllen={control_size}", f"msg_flags={flag_names('msg', flags)}"]
    return f"{{{', '.join(texts)}}}"


_HEADERS = {8: struct.Struct("<Qii"), 4: struct.Struct("<Iii")}
"""struct cmsghdr of include/linux/socket.h, by the size of a long."""
_RIGHTS, _CREDENTIALS = 1, 2
_SCM = {_RIGHTS: "SCM_RIGHTS", _CREDENTIALS: "SCM_CREDENTIALS", 29: "SO_TIMESTAMP_OLD",
        35: "SO_TIMESTAMPNS_OLD"}  # fmt: skip


def _control(data: bytes | None, size: int, word: int) -> str:
    """Messages beside the data: descriptors and credentials; "" where there are none."""
    data = (data or b"")[:size]  # of a long one, what there was room for
    texts, at, header = [], 0, _HEADERS[word]
    while at + header.size <= len(data):
        length, level, kind = header.unpack_from(data, at)
        if length < header.size:
            break
        body = data[at + header.size : at + length]
        texts.append(_control_message(length, level, kind, body, length - header.size))
        at += -(-length // word) * word
    more = ["..."] if texts and len(data) < size else []
    return f"[{', '.join(texts + more)}]" if texts else ""


def _control_message(length: int, level: int, kind: int, data: bytes, size: int) -> str:
    is_of_socket = level == 1  # SOL_SOCKET
    name = _SCM.get(kind, f"{kind:#x}") if is_of_socket else f"{kind:#x}"
    texts = f"cmsg_len={length}, cmsg_level={enum_name('sol', level)}, cmsg_type={name}"
    if len(data) < size or not is_of_socket:
        return f"{{{texts}}}"
    if kind == _RIGHTS:
        fds = ", ".join(str(fd) for (fd,) in struct.iter_unpack("<i", data[: len(data) // 4 * 4]))
        texts += f", cmsg_data=[{fds}]"
    elif kind == _CREDENTIALS and len(data) >= 12:  # noqa: PLR2004 - struct ucred
        pid, uid, gid = struct.unpack_from("<iII", data)
        texts += f", cmsg_data={{pid={pid}, uid={uid}, gid={gid}}}"
    return f"{{{texts}}}"
