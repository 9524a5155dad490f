"""The arguments of a call as text. Pure."""

from __future__ import annotations

from collections.abc import Callable

from purebpf.tools.trace import (
    arrays,
    bpf_attributes,
    ioctls,
    messages,
    perf_attributes,
    records,
    sockets,
    special,
    structs,
)
from purebpf.tools.trace.constants import enum_name, flag_names, signal_name
from purebpf.tools.trace.kinds import HIDDEN, PATH_ROOM, Kind, Signature
from purebpf.tools.trace.quoting import hexadecimal, quote, quote_path
from purebpf.tools.trace.special import open_flags, pointer
from purebpf.tools.trace.view import LONG, View

__all__ = ["show_arguments"]

_AT_FDCWD = -100
_POLICY_FLAGS = 0xE000  # MPOL_MODE_FLAGS
_MREMAP_TO = 0x6  # MREMAP_FIXED, MREMAP_DONTUNMAP

_RESTART = 516  # ERESTART_RESTARTBLOCK of include/linux/errno.h

Show = Callable[[View, int, Kind], "str | list[str] | None"]


def show_arguments(view: View, call_signature: Signature | None) -> list[str]:
    """Each argument; a call that is not known has six numbers."""
    if call_signature is None:
        return [f"{value:#x}" for value in view.arguments]
    if call_signature.kinds and call_signature.kinds[0].name == "special":
        return special.CALLS[call_signature.name](view)
    texts: list[str] = []
    for index, kind in enumerate(call_signature.kinds):
        text = _SHOW[kind.name](view, index, kind)
        if isinstance(text, list):  # the rest
            return texts + text
        if text is not None:
            texts.append(text)
    return texts


def _hidden(view: View, index: int, kind: Kind) -> None:
    del view, index, kind


def _int(view: View, index: int, _: Kind) -> str:
    return str(view.int32(index))


def _uint(view: View, index: int, _: Kind) -> str:
    return str(view.uint32(index))


def _long(view: View, index: int, _: Kind) -> str:
    return str(view.int64(index))


def _low_first(view: View, index: int, _: Kind) -> str:
    return _halves(view.arguments[index + 1], view.arguments[index])


def _high_first(view: View, index: int, _: Kind) -> str:
    return _halves(view.arguments[index], view.arguments[index + 1])


def _halves(high: int, low: int) -> str:
    value = (high & 0xFFFFFFFF) << 32 | low & 0xFFFFFFFF
    return str(value - (1 << 64) if value >> 63 else value)


def _size(view: View, index: int, _: Kind) -> str:
    return str(view.arguments[index])


def _hex(view: View, index: int, _: Kind) -> str:
    value = view.arguments[index]
    return f"{value:#x}" if value else "0"


def _pointer(view: View, index: int, _: Kind) -> str:
    return pointer(view.arguments[index])


def _moved(view: View, index: int, _: Kind) -> str | None:
    """The new address of mremap(2), where it is one of the arguments."""
    return pointer(view.arguments[index]) if view.arguments[index - 1] & _MREMAP_TO else None


def _directory(view: View, index: int, _: Kind) -> str:
    value = view.int32(index)
    if value != _AT_FDCWD:
        return view.descriptor(value)
    path = view.path_of(value) if view.path_of else None
    return "AT_FDCWD" if path is None else f"AT_FDCWD<{quote_path(path)}>"


def _descriptor(view: View, index: int, _: Kind) -> str:
    return view.descriptor(view.int32(index))


def _identity(view: View, index: int, _: Kind) -> str:
    value = view.int32(index)
    return "-1" if value == -1 else str(view.uint32(index))


def _old_identity(view: View, index: int, _: Kind) -> str:
    value = view.arguments[index] & 0xFFFF
    return "-1" if value == 0xFFFF else str(value)  # noqa: PLR2004 - 16 bits


def _handler(view: View, index: int, _: Kind) -> str:
    value = view.arguments[index]
    return structs.HANDLERS.get(value, f"{value:#x}")


def _mode(view: View, index: int, _: Kind) -> str:
    return f"0{view.arguments[index] & 0xFFFF:02o}"


def _open_mode(view: View, index: int, kind: Kind) -> str | None:
    return _mode(view, index, kind) if view.arguments[index - 1] & special.CREATES else None


def _node_mode(view: View, index: int, _: Kind) -> str:
    return structs.file_mode(view.arguments[index] & 0xFFFF)


def _device(view: View, index: int, _: Kind) -> str | None:
    mode = view.arguments[index - 1] & 0o170000
    return structs.device(view.arguments[index]) if mode in (0o020000, 0o060000) else None


def _flags(view: View, index: int, kind: Kind) -> str:
    return flag_names(kind.table, view.uint32(index))


def _enum(view: View, index: int, kind: Kind) -> str:
    table, value = kind.table, view.int32(index)
    if table in ("fadvise", "bpf_cmd", "arch_prctl", "prctl"):
        value = view.uint32(index)
    if table == "sched" and value == 0:
        return "SCHED_OTHER"
    return enum_name(table, value)


def _policy(view: View, index: int, _: Kind) -> str:
    """A mode of NUMA, and its flags: `MPOL_BIND|MPOL_F_STATIC_NODES`."""
    return _policy_name(view.uint32(index))


def _policy_at(view: View, index: int, _: Kind) -> str:
    data = view.piece(index, end=True)
    if data is None or view.failed:
        return pointer(view.arguments[index])
    return f"[{_policy_name(int.from_bytes(data[:4], 'little'))}]"


def _policy_name(value: int) -> str:
    flags = value & _POLICY_FLAGS
    mode = enum_name("mempolicy", value & ~_POLICY_FLAGS)
    return f"{mode}|{flag_names('mempolicy_flags', flags)}" if flags else mode


def _prot(view: View, index: int, _: Kind) -> str:
    return flag_names("prot", view.uint32(index), "PROT_NONE")


def _open(view: View, index: int, _: Kind) -> str:
    return open_flags(view.arguments[index])


def _statx_flags(view: View, index: int, _: Kind) -> str:
    flags = view.uint32(index)
    sync = {0: "AT_STATX_SYNC_AS_STAT", 0x2000: "AT_STATX_FORCE_SYNC",
            0x4000: "AT_STATX_DONT_SYNC"}.get(flags & 0x6000, f"{flags & 0x6000:#x}")  # fmt: skip
    rest = flags & ~0x6000
    return f"{sync}|{flag_names('at', rest)}" if rest else sync


def _signal(view: View, index: int, _: Kind) -> str:
    return signal_name(view.int32(index))


def _path(view: View, index: int, _: Kind) -> str:
    data = view.piece(index)
    if data is None:
        return pointer(view.arguments[index])
    return quote(data[:-1], more=len(data) >= PATH_ROOM)


def _buffer(view: View, index: int, kind: Kind, write: Callable[..., str] = quote) -> str:
    at_end = ">" in kind.where
    data = view.piece(index, end=at_end)
    length = view.length(kind.extent)
    if data is None or length is None or (at_end and view.failed):
        return pointer(view.arguments[index])
    return write(data[: view.string_size], more=length > view.string_size)


def _random(view: View, index: int, kind: Kind) -> str:
    return _buffer(view, index, kind, hexadecimal)


def _working_directory(view: View, index: int, _: Kind) -> str:
    data = view.piece(index, end=True)
    if data is None or view.failed:
        return pointer(view.arguments[index])
    return quote(data.partition(b"\0")[0])


def _struct(view: View, index: int, kind: Kind) -> str:
    if kind.where == "<>":
        data = view.piece(index)
    elif kind.where == ">" and (view.failed or view.result is None):
        data = None
    else:
        data = view.piece(index, end=kind.where == ">")
    if data is None:
        return pointer(view.arguments[index])
    text = structs.show(kind.table, data)
    if kind.table == "rlimit" and view.word != LONG and view.name != "prlimit64":
        return text.replace("RLIM64_", "RLIM_")
    return text


def _remaining(view: View, index: int, kind: Kind) -> str:
    """The rest of a sleep, which the kernel writes where a signal ends it."""
    data = view.piece(index, end=True)
    if data is None or view.result != -_RESTART:
        return pointer(view.arguments[index])
    return structs.show(kind.table, data)


def _address(view: View, index: int, kind: Kind) -> str:
    at_end = kind.where == ">"
    data = view.piece(index, end=at_end)
    length = view.length(kind.extent, end=at_end)
    if not data or length is None or (at_end and view.failed):
        return pointer(view.arguments[index])
    return sockets.address(data, length)


def _number_at(view: View, index: int, size: int, *, signed: bool = False) -> str:
    data = view.piece(index, end=True)
    if data is None or view.failed or view.result is None:
        return pointer(view.arguments[index])
    return f"[{int.from_bytes(data[:size], 'little', signed=signed)}]"


def _int_at(view: View, index: int, _: Kind) -> str:
    return _number_at(view, index, 4, signed=True)


def _long_at(view: View, index: int, kind: Kind) -> str:
    return _number_at(view, index, 8 if kind.name in ("long1", "offset1") else 4)


def _changed(view: View, index: int, size: int) -> str:
    before, after = view.piece(index), view.piece(index, end=True)
    if before is None:
        return pointer(view.arguments[index])
    first = int.from_bytes(before[:size], "little", signed=True)
    last = first if after is None else int.from_bytes(after[:size], "little", signed=True)
    if view.failed or view.result is None or first == last:
        return f"[{first}]"
    return f"[{first} => {last}]"


def _length(view: View, index: int, _: Kind) -> str:
    return _changed(view, index, 4)


def _offset(view: View, index: int, _: Kind) -> str:
    before, after = view.piece(index), view.piece(index, end=True)
    if before is None or after is None or view.failed or view.name != "sendfile":
        return _changed(view, index, 8) if before is not None else pointer(view.arguments[index])
    first, last = (int.from_bytes(data[:8], "little", signed=True) for data in (before, after))
    return f"[{first}] => [{last}]"


def _option(view: View, index: int, _: Kind) -> str:
    return sockets.option_name(view.int32(1), view.uint32(index))


def _option_value(view: View, index: int, kind: Kind) -> str:
    at_end = ">" in kind.where
    data = view.piece(index, end=at_end)
    if data is None or (at_end and view.failed):
        return pointer(view.arguments[index])
    if len(data) == 4:  # noqa: PLR2004 - an int
        return f"[{int.from_bytes(data, 'little', signed=True)}]"
    return quote(data)


def _socket_type(view: View, index: int, _: Kind) -> str:
    return sockets.socket_type(view.uint32(index))


def _protocol(view: View, index: int, _: Kind) -> str:
    return sockets.protocol(view.uint32(0), view.uint32(index))


def _ioctl(view: View, index: int, _: Kind) -> str | None:
    del index
    return ioctls.argument(view)


def _request(view: View, index: int, _: Kind) -> str:
    return ioctls.operation(view.uint32(index))


def _prctl(view: View, index: int, _: Kind) -> list[str]:
    del index
    return special.prctl_arguments(view)


_SHOW: dict[str, Show] = {
    HIDDEN: _hidden, "E": _enum, "F": _flags, "S": _struct, "buf": _buffer,
    "cwd": _working_directory, "device": _device, "dirfd": _directory, "fd": _descriptor,
    "hex": _hex,
    "id": _identity, "int": _int, "int1": _int_at, "ioctl": _ioctl, "keyring": _int,
    "length": _length, "long": _long, "long1": _long_at, "mode": _mode, "moved": _moved,
    "nodemode": _node_mode, "offset": _offset, "open": _open, "openmode": _open_mode,
    "perfattr": perf_attributes.attributes,
    "path": _path, "prctl": _prctl, "prot": _prot, "protocol": _protocol, "ptr": _pointer,
    "random": _random, "received": messages.messages, "request": _request, "sa": _address,
    "sent": messages.messages, "signal": _signal, "size": _size,
    "socktype": _socket_type, "sockopt": _option, "statxflags": _statx_flags, "uint": _uint,
    "uint1": _long_at,
    "remaining": _remaining, "selectmask": arrays.select_mask,
    "ulong": _size, "value": _option_value,
    "argv": arrays.strings, "errors": arrays.errors, "ints": arrays.integers,
    "nodes": arrays.nodes, "pages": arrays.pages, "policy": _policy, "policy1": _policy_at,
    "sigframe": records.signal_frame, "ll": _low_first, "hl": _high_first, "oldid": _old_identity,
    "handler": _handler, "offset1": _long_at, "userdesc": records.thread_area, "socketcall": _int,
    "bpfattr": bpf_attributes.attributes, "cpuset": arrays.processors,
    "dirents": arrays.entries,
    "envp": arrays.environment, "events": arrays.events, "fds": arrays.descriptors,
    "fdset": arrays.descriptor_set, "ids": arrays.identities, "iov": arrays.vector,
    "message": messages.message, "pollfd": arrays.polled, "sigset": arrays.signals,
    "timespecs": arrays.times, "timevals": arrays.times,
    "capdata": records.capability_sets, "capheader": records.capability_header,
    "cloneargs": records.clone_arguments, "how": records.how, "sched_param": records.priority,
    "siginfo": records.siginfo, "status": records.status,
}  # fmt: skip
