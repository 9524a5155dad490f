"""Structs of the x86-64 and arm64 ABI as text, as strace writes them. Pure."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from purebpf.tools.trace.constants import flag_names, signal_name
from purebpf.tools.trace.quoting import quote

__all__ = [
    "HANDLERS",
    "SIZES",
    "device",
    "file_mode",
    "segment",
    "show",
    "signal_set",
    "timespec",
]

_TYPES = {0o140000: "S_IFSOCK", 0o120000: "S_IFLNK", 0o100000: "S_IFREG", 0o060000: "S_IFBLK",
          0o040000: "S_IFDIR", 0o020000: "S_IFCHR", 0o010000: "S_IFIFO"}  # fmt: skip
_SET_BITS = {0o4000: "S_ISUID", 0o2000: "S_ISGID", 0o1000: "S_ISVTX"}
_FORMAT = 0o170000
_UTIME_NOW = 0x3FFFFFFF
_UTIME_OMIT = 0x3FFFFFFE
_INFINITY = (1 << 64) - 1
_KIB = 1024
_HALF = 32
"""Signals of a set, from which on strace shows those that it lacks."""


def file_mode(mode: int) -> str:
    """`S_IFREG|0644`."""
    names = [_TYPES[mode & _FORMAT]] if mode & _FORMAT in _TYPES else []
    if mode & _FORMAT and not names:
        names = [f"{mode & _FORMAT:#o}".replace("0o", "0")]
    names += [name for bit, name in _SET_BITS.items() if mode & bit]
    names.append(f"0{mode & 0o777:o}" if mode & 0o777 else "000")
    return "|".join(names)


def device(number: int) -> str:
    """`makedev(0x8, 0x1)`, as <sys/sysmacros.h> takes a number apart."""
    major = (number >> 8 & 0xFFF) | (number >> 32 & ~0xFFF)
    minor = (number & 0xFF) | (number >> 12 & ~0xFF & 0xFFFFFFFF)
    return f"makedev({major:#x}, {minor:#x})"


def signal_set(data: bytes) -> str:
    """`[INT CHLD]`; `~[]` for one that has more signals than it lacks."""
    bits = int.from_bytes(data, "little")
    size = 8 * len(data)
    numbers = [number for number in range(1, size + 1) if bits >> (number - 1) & 1]
    sign = ""
    if len(numbers) >= size * 2 // 3:
        sign = "~"
        numbers = [number for number in range(1, size + 1) if not bits >> (number - 1) & 1]
    return f"{sign}[{' '.join(signal_name(number).removeprefix('SIG') for number in numbers)}]"


def timespec(seconds: int, rest: int, unit: str = "nsec", *, special: bool = False) -> str:
    """`{tv_sec=1, tv_nsec=0}`; `special`: UTIME_NOW and UTIME_OMIT by name."""
    if special and rest in (_UTIME_NOW, _UTIME_OMIT):
        return "UTIME_NOW" if rest == _UTIME_NOW else "UTIME_OMIT"
    return f"{{tv_sec={seconds}, tv_{unit}={rest}}}"


def _stat(data: bytes) -> str:
    fields = struct.unpack_from("<QQQIIIIQqqq", data)
    _, _, _, mode, _, _, _, rdev, size, _, _ = fields
    is_device = mode & _FORMAT in (0o020000, 0o060000)
    size_field = f"st_rdev={device(rdev)}" if is_device else f"st_size={size}"
    return f"{{st_mode={file_mode(mode)}, {size_field}, ...}}"


def _statx(data: bytes) -> str:
    mask, _, attributes, _, _, _, mode = struct.unpack_from("<IIQIIIH", data)
    (size,) = struct.unpack_from("<Q", data, 40)
    return (
        f"{{stx_mask={flag_names('statx_mask', mask)}, stx_attributes={_hex(attributes)}, "
        f"stx_mode={file_mode(mode)}, stx_size={size}, ...}}"
    )


def _hex(value: int) -> str:
    return f"{value:#x}" if value else "0"


def _times(unit: str, *names: str) -> Callable[[bytes], str]:
    def text(data: bytes) -> str:
        values = struct.unpack_from(f"<{2 * len(names)}q", data)
        shown_fields = [
            timespec(values[2 * index], values[2 * index + 1], unit) for index in range(len(names))
        ]
        if names == ("",):
            return shown_fields[0]
        return (
            f"{{{', '.join(f'{name}={at}' for name, at in zip(names, shown_fields, strict=True))}}}"
        )

    return text


def _rlimit(data: bytes) -> str:
    current, highest = struct.unpack_from("<QQ", data)
    return f"{{rlim_cur={_limit(current)}, rlim_max={_limit(highest)}}}"


def _limit(value: int) -> str:
    if value == _INFINITY:
        return "RLIM64_INFINITY"
    return f"{value // _KIB}*1024" if value > _KIB and value % _KIB == 0 else str(value)


def _rusage(data: bytes) -> str:
    user, user_rest, system, system_rest = struct.unpack_from("<4q", data)
    return (
        f"{{ru_utime={timespec(user, user_rest, 'usec')}, "
        f"ru_stime={timespec(system, system_rest, 'usec')}, ...}}"
    )


def _utsname(data: bytes) -> str:
    texts = [data[at : at + 65].partition(b"\0")[0] for at in range(0, 130, 65)]
    return f"{{sysname={quote(texts[0])}, nodename={quote(texts[1])}, ...}}"


_FILE_SYSTEMS = {0xEF53: "EXT2_SUPER_MAGIC", 0x01021994: "TMPFS_MAGIC", 0x9FA0: "PROC_SUPER_MAGIC",
                 0x62656572: "SYSFS_MAGIC", 0x794C7630: "OVERLAYFS_SUPER_MAGIC",
                 0x58465342: "XFS_SUPER_MAGIC", 0x9123683E: "BTRFS_SUPER_MAGIC"}  # fmt: skip
"""include/uapi/linux/magic.h."""


def _statfs(data: bytes) -> str:
    kind, bsize, blocks, free, available, files, ffree = struct.unpack_from("<7q", data)
    first, second, length, fragment, flags = struct.unpack_from("<iiqqq", data, 56)
    kind_name = _FILE_SYSTEMS.get(kind, f"{kind:#x}")
    return (
        f"{{f_type={kind_name}, f_bsize={bsize}, f_blocks={blocks}, f_bfree={free}, "
        f"f_bavail={available}, f_files={files}, f_ffree={ffree}, "
        f"f_fsid={{val=[{_hex(first & 0xFFFFFFFF)}, {_hex(second & 0xFFFFFFFF)}]}}, "
        f"f_namelen={length}, f_frsize={fragment}, f_flags={_mount_flags(flags)}}}"
    )


_ST_FLAGS = {1: "ST_RDONLY", 2: "ST_NOSUID", 4: "ST_NODEV", 8: "ST_NOEXEC", 16: "ST_SYNCHRONOUS",
             32: "ST_VALID", 64: "ST_MANDLOCK", 1024: "ST_NOATIME", 2048: "ST_NODIRATIME",
             4096: "ST_RELATIME"}  # fmt: skip
"""include/linux/statfs.h."""


def _mount_flags(flags: int) -> str:
    return "|".join(name for bit, name in _ST_FLAGS.items() if flags & bit) or "0"


def _sysinfo(data: bytes) -> str:
    fields = struct.unpack_from("<10QHHIQQI", data)
    names = ("uptime", "totalram", "freeram", "sharedram", "bufferram", "totalswap", "freeswap")
    uptime, *loads = fields[:4]
    values = [uptime, *fields[4:10]]
    shown_fields = [f"{name}={value}" for name, value in zip(names, values, strict=True)]
    shown_fields.insert(1, f"loads=[{', '.join(map(str, loads))}]")
    shown_fields += [f"procs={fields[10]}", f"totalhigh={fields[13]}", f"freehigh={fields[14]}"]
    return f"{{{', '.join(shown_fields)}, mem_unit={fields[15]}}}"


def _tms(data: bytes) -> str:
    names = ("tms_utime", "tms_stime", "tms_cutime", "tms_cstime")
    values = struct.unpack_from("<4q", data)
    return f"{{{', '.join(f'{name}={at}' for name, at in zip(names, values, strict=True))}}}"


def _epoll_event(data: bytes) -> str:
    events, value = struct.unpack_from("<IQ", data)
    return (
        f"{{events={flag_names('epoll_events', events)}, "
        f"data={{u32={value & 0xFFFFFFFF}, u64={value}}}}}"
    )


_SEGMENT_FLAGS = ("seg_32bit", "contents", "read_exec_only", "limit_in_pages", "seg_not_present",
                  "useable")  # fmt: skip


def segment(data: bytes) -> str:
    """Struct user_desc: arch/x86/include/uapi/asm/ldt.h."""
    number, base, limit, flags = struct.unpack_from("<iIII", data)
    values = [flags & 1, flags >> 1 & 3, *(flags >> bit & 1 for bit in range(3, 7))]
    shown_fields = [f"entry_number={number}", f"base_addr={base:#08x}", f"limit={limit:#08x}"]
    shown_fields += [f"{name}={value}" for name, value in zip(_SEGMENT_FLAGS, values, strict=True)]
    return f"{{{', '.join(shown_fields)}}}"


HANDLERS = {0: "SIG_DFL", 1: "SIG_IGN"}


def _sigaction(data: bytes) -> str:
    handler, flags, restorer = struct.unpack_from("<QQQ", data)
    shown_fields = [
        f"sa_handler={HANDLERS.get(handler, hex(handler))}",
        f"sa_mask={signal_set(data[24:32])}",
    ]
    shown_fields.append(f"sa_flags={flag_names('sa', flags)}")
    if flags & 0x4000000:  # SA_RESTORER
        shown_fields.append(f"sa_restorer={restorer:#x}")
    return f"{{{', '.join(shown_fields)}}}"


def _stack(data: bytes) -> str:
    address, flags, size = struct.unpack_from("<Qi4xQ", data)
    where = f"{address:#x}" if address else "NULL"
    return f"{{ss_sp={where}, ss_flags={flag_names('stack_flags', flags)}, ss_size={size}}}"


def _timezone(data: bytes) -> str:
    west, summer = struct.unpack_from("<ii", data)
    return f"{{tz_minuteswest={west}, tz_dsttime={summer}}}"


def _utimbuf(data: bytes) -> str:
    used, changed = struct.unpack_from("<qq", data)
    return f"{{actime={used}, modtime={changed}}}"


_KINDS: dict[str, tuple[int, Callable[[bytes], Any]]] = {
    "epoll_event": (12, _epoll_event),
    "itimerspec": (32, _times("nsec", "it_interval", "it_value")),
    "itimerval": (32, _times("usec", "it_interval", "it_value")),
    "rlimit": (16, _rlimit),
    "rusage": (144, _rusage),
    "sigaction": (32, _sigaction),
    "stack": (24, _stack),
    "stat": (144, _stat),
    "statfs": (120, _statfs),
    "statx": (256, _statx),
    "sysinfo": (112, _sysinfo),
    "timespec": (16, _times("nsec", "")),
    "timeval": (16, _times("usec", "")),
    "timezone": (8, _timezone),
    "tms": (32, _tms),
    "utimbuf": (16, _utimbuf),
    "utsname": (390, _utsname),
}

SIZES = {name: size for name, (size, _) in _KINDS.items()}
"""Of each struct, in bytes."""


def show(name: str, data: bytes) -> str:
    """A struct as text."""
    return str(_KINDS[name][1](data))
