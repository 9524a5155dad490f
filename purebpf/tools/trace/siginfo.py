"""A siginfo_t as text, as strace writes it. Pure."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable

from purebpf.abi import syscalls
from purebpf.tools.trace.constants import name_of, signal_name

__all__ = ["show_siginfo", "siginfo"]

_ILL, _TRAP, _BUS, _FPE, _SEGV, _CHILD, _IO, _SYS = 4, 5, 7, 8, 11, 17, 29, 31
_SI_USER, _SI_TKILL, _SI_TIMER, _SI_KERNEL = 0, -6, -2, 0x80
_EXITED = 1
_FIRST_REAL_TIME = 32
_CODES = {
    _CHILD: "cld_code",
    _SEGV: "segv_code",
    _BUS: "bus_code",
    _FPE: "fpe_code",
    _ILL: "ill_code",
    _IO: "poll_code",
    _SYS: "sigsys_code",
    _TRAP: "trap_code",
}
"""Tables of the codes above 0 that a signal has."""

_ARCHITECTURES = {
    0xC000003E: "AUDIT_ARCH_X86_64",
    0x40000003: "AUDIT_ARCH_I386",
    0xC00000B7: "AUDIT_ARCH_AARCH64",
    0x40000028: "AUDIT_ARCH_ARM",
}
"""From include/uapi/linux/audit.h: the ELF machine, and bits for 64 bits and little-endian."""

_Words = tuple[int, ...]


def siginfo(data: bytes) -> str:
    """A siginfo_t: `{si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=7, si_uid=0, ...}`."""
    number, error, code = struct.unpack_from("<iii", data)
    fields = struct.unpack_from("<6i", data, 16)
    return show_siginfo(number, code, error, fields)


def show_siginfo(number: int, code: int, error: int, fields: _Words) -> str:
    """The same of its members.

    Args:
        number: of the signal.
        code: who sent it, or why: si_code.
        error: si_errno.
        fields: the first 24 bytes of the union as signed 32-bit words.
    """
    shown_fields = [f"si_signo={signal_name(number)}", f"si_code={_code(number, code)}"]
    if error:
        shown_fields.append(f"si_errno={error}")
    if code <= 0:
        shown_fields += _sent(code, fields)
    else:
        shown_fields += _raised(number, code, fields)
    return f"{{{', '.join(shown_fields)}}}"


def _sent(code: int, fields: _Words) -> list[str]:
    """A signal that a process sent, or a timer."""
    if code == _SI_TIMER:
        timer = fields[0] & 0xFFFFFFFF
        return [f"si_timerid={_hex(timer)}", f"si_overrun={fields[1]}", *_value(fields)]
    if code in (_SI_USER, _SI_TKILL):
        return _sender(fields)
    return [*_sender(fields), *(_value(fields) if any(fields[2:4]) else ())]


def _raised(number: int, code: int, fields: _Words) -> list[str]:
    """A signal that the kernel raised."""
    if code == _SI_KERNEL and number not in _ADDRESSED:
        return []
    if number >= _FIRST_REAL_TIME:  # F_SETSIG of fcntl(2)
        return _band(fields)
    return _BY_SIGNAL[number](code, fields) if number in _BY_SIGNAL else []


def _child(code: int, fields: _Words) -> list[str]:
    status = str(fields[2]) if code == _EXITED else signal_name(fields[2])
    user_time = _long(fields, 4)
    times = [f"si_utime={user_time}", "si_stime=0"]
    return [*_sender(fields), f"si_status={status}", *times]


def _fault(_: int, fields: _Words) -> list[str]:
    return [f"si_addr={_pointer(_long(fields, 0))}"]


def _band(fields: _Words) -> list[str]:
    return [f"si_band={_hex(_long(fields, 0))}", f"si_fd={fields[2]}"]


def _refused_call(_: int, fields: _Words) -> list[str]:
    """Seccomp, or the dispatch of calls to user space, refused a call."""
    machine = syscalls.machine(os.uname().machine)
    arch = fields[3] & 0xFFFFFFFF
    named = _ARCHITECTURES.get(arch, f"{arch:#x}")
    is_compat = named in ("AUDIT_ARCH_I386", "AUDIT_ARCH_ARM")
    name = syscalls.name(machine.compat if is_compat else machine.native, fields[2])
    call = f"__NR_{name}" if ":" not in name else _hex(fields[2] & 0xFFFFFFFF)
    return [
        f"si_call_addr={_pointer(_long(fields, 0))}",
        f"si_syscall={call}",
        f"si_arch={named}",
    ]


_ADDRESSED = (_ILL, _TRAP, _BUS, _FPE, _SEGV)
_BY_SIGNAL: dict[int, Callable[[int, _Words], list[str]]] = {
    **dict.fromkeys(_ADDRESSED, _fault),
    _CHILD: _child,
    _IO: lambda _, fields: _band(fields),
    _SYS: _refused_call,
}


def _sender(fields: _Words) -> list[str]:
    return [f"si_pid={fields[0]}", f"si_uid={fields[1]}"]


def _value(fields: _Words) -> list[str]:
    """The value of sigqueue(3) or of a timer, read as a number and as an address."""
    return [f"si_int={fields[2]}", f"si_ptr={_pointer(_long(fields, 2))}"]


def _long(fields: _Words, at: int) -> int:
    return (fields[at + 1] & 0xFFFFFFFF) << 32 | fields[at] & 0xFFFFFFFF


def _hex(value: int) -> str:
    return f"{value:#x}" if value else "0"


def _pointer(value: int) -> str:
    return f"{value:#x}" if value else "NULL"


def _code(number: int, code: int) -> str:
    if number >= _FIRST_REAL_TIME:
        number = _IO
    table = _CODES.get(number, "")
    named = name_of("si_code", code) or (name_of(table, code) if table and code > 0 else None)
    return named or (f"{code:#x}" if code > 0 else str(code))
