"""Arguments that point to structs with special members, as text. Pure.

Each function takes the call, the number of the argument, and its kind.
"""

from __future__ import annotations

import struct

from purebpf.tools.trace import siginfo as siginfos
from purebpf.tools.trace import structs
from purebpf.tools.trace.constants import flag_names, name_of, signal_name
from purebpf.tools.trace.kinds import THREAD_AREA_PART, Kind
from purebpf.tools.trace.special import CREATES, open_flags, pointer
from purebpf.tools.trace.view import View

__all__ = [
    "capability_header",
    "capability_sets",
    "clone_arguments",
    "how",
    "priority",
    "siginfo",
    "signal_frame",
    "status",
    "thread_area",
    "wait_status",
]


def how(view: View, index: int, _: Kind) -> str:
    """Struct open_how of openat2(2)."""
    data = view.piece(index)
    if not data or len(data) < 24:  # noqa: PLR2004 - OPEN_HOW_SIZE_VER0
        return pointer(view.arguments[index])
    flags, mode, resolve = struct.unpack_from("<QQQ", data)
    fields = [f"flags={open_flags(flags)}"]
    if flags & CREATES or mode:
        fields.append(f"mode={structs.file_mode(mode)}")
    fields.append(f"resolve={flag_names('resolve', resolve)}")
    return f"{{{', '.join(fields)}}}"


def clone_arguments(view: View, index: int, _: Kind) -> str:
    """Struct clone_args of clone3(2)."""
    data = view.piece(index)
    if not data or len(data) < 64:  # noqa: PLR2004 - CLONE_ARGS_SIZE_VER0
        return pointer(view.arguments[index])
    flags, pidfd, child, parent, signal, stack, size, tls = struct.unpack_from("<8Q", data)
    fields = [f"flags={flag_names('clone', flags)}"]
    fields += [f"pidfd={pointer(pidfd)}"] if flags & 0x1000 else []
    fields += [f"child_tid={pointer(child)}"] if flags & 0x01200000 else []
    fields += [f"parent_tid={pointer(parent)}"] if flags & 0x00100000 else []
    fields += [f"exit_signal={signal_name(signal) if signal else 0}", f"stack={pointer(stack)}"]
    fields.append(f"stack_size={size:#x}" if size else "stack_size=0")
    if flags & 0x00080000:
        area = view.piece(index, THREAD_AREA_PART)
        fields.append(f"tls={structs.segment(area) if area else pointer(tls)}")
    text = f"{{{', '.join(fields)}}}"
    if flags & 0x00100000 and view.result and not view.failed:
        text += f" => {{parent_tid=[{view.result}]}}"  # which the kernel writes before it returns
    return text


def siginfo(view: View, index: int, _: Kind) -> str:
    """A siginfo_t."""
    data = view.piece(index, end=True)
    if data is None or view.failed or not int.from_bytes(data[:4], "little"):
        return pointer(view.arguments[index])
    return siginfos.siginfo(data)


def signal_frame(view: View, index: int, _: Kind) -> str | None:
    """Return the signal mask that rt_sigreturn(2) restores from the frame of a signal:
    `{mask=[USR2]}`.
    """
    mask, more = view.piece(index), view.piece(index, 1)
    return f"{{mask={structs.signal_set(mask + (more or b''))}}}" if mask else None


def thread_area(view: View, index: int, _: Kind) -> str:
    """Struct user_desc of set_thread_area(2)."""
    data = view.piece(index)
    return pointer(view.arguments[index]) if data is None else structs.segment(data)


_PTRACE_EVENTS = {
    number: f"PTRACE_EVENT_{name}"
    for number, name in {
        1: "FORK",
        2: "VFORK",
        3: "CLONE",
        4: "EXEC",
        5: "VFORK_DONE",
        6: "EXIT",
        7: "SECCOMP",
        128: "STOP",
    }.items()
}


def status(view: View, index: int, _: Kind) -> str:
    """Return the status of wait4(2): `[{WIFEXITED(s) && WEXITSTATUS(s) == 0}]`."""
    data = view.piece(index, end=True)
    if data is None or not view.result or view.failed:
        return pointer(view.arguments[index])
    number = int.from_bytes(data[:4], "little")
    event = number >> 16  # PTRACE_EVENT_*: why a traced child has stopped
    why = f"|{_PTRACE_EVENTS.get(event, f'{event:#x} /* PTRACE_EVENT_??? */')}<<16" if event else ""
    return f"[{wait_status(number & 0xFFFF)}{why}]"


def wait_status(status: int) -> str:
    """Return the status of a child in wait(2): `{WIFEXITED(s) && WEXITSTATUS(s) == 0}`."""
    signal, rest = status & 0x7F, status >> 8 & 0xFF
    if status == 0xFFFF:  # noqa: PLR2004 - __W_CONTINUED
        return "{WIFCONTINUED(s)}"
    if status & 0xFF == 0x7F:  # noqa: PLR2004 - stopped
        in_call = " | 0x80" if rest & 0x80 else ""  # PTRACE_O_TRACESYSGOOD
        return f"{{WIFSTOPPED(s) && WSTOPSIG(s) == {signal_name(rest & 0x7F)}{in_call}}}"
    if signal:
        dumped = " && WCOREDUMP(s)" if status & 0x80 else ""
        return f"{{WIFSIGNALED(s) && WTERMSIG(s) == {signal_name(signal)}{dumped}}}"
    return f"{{WIFEXITED(s) && WEXITSTATUS(s) == {rest}}}"


_CAP_VERSIONS = {0x19980330: 1, 0x20071026: 2, 0x20080522: 3}


def capability_header(view: View, index: int, _: Kind) -> str:
    """Struct __user_cap_header_struct: `{version=_LINUX_CAPABILITY_VERSION_3, pid=0}`."""
    data = view.piece(index)
    if data is None:
        return pointer(view.arguments[index])
    version, pid = struct.unpack_from("<Ii", data)
    data_size = _CAP_VERSIONS.get(version)
    name = f"_LINUX_CAPABILITY_VERSION_{data_size}" if data_size else f"{version:#x}"
    return f"{{version={name}, pid={pid}}}"


def capability_sets(view: View, index: int, kind: Kind) -> str:
    """Struct __user_cap_data_struct; versions 2 and 3 have two."""
    at_end = kind.where == ">"
    data, header = view.piece(index, end=at_end), view.piece(0)
    version = _CAP_VERSIONS.get(int.from_bytes((header or b"")[:4], "little"))
    if data is None or version is None or (at_end and view.failed):
        return pointer(view.arguments[index])
    low, high = struct.unpack_from("<3I", data), struct.unpack_from("<3I", data, 12)
    fields = []
    for name, first, last in zip(("effective", "permitted", "inheritable"), low, high, strict=True):
        value = first | (last << 32 if version > 1 else 0)
        bits = [bit for bit in range(64) if value >> bit & 1]
        names = [f"1<<{name_of('capability', bit) or bit}" for bit in bits]
        fields.append(f"{name}={'|'.join(names) or '0'}")
    return f"{{{', '.join(fields)}}}"


def priority(view: View, index: int, kind: Kind) -> str:
    """Struct sched_param: `[1]`."""
    data = view.piece(index, end=">" in kind.where)
    if data is None or (">" in kind.where and view.failed):
        return pointer(view.arguments[index])
    return f"[{int.from_bytes(data[:4], 'little', signed=True)}]"
