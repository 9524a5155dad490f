"""The third argument of ioctl(2), by its second. Pure."""

from __future__ import annotations

import struct

from purebpf.tools.trace import sockets
from purebpf.tools.trace.constants import enum_name, flag_names, name_of, numbers
from purebpf.tools.trace.kinds import INTERFACES_PART, IOCTL_PART
from purebpf.tools.trace.quoting import quote
from purebpf.tools.trace.special import pointer
from purebpf.tools.trace.view import View

__all__ = ["argument", "operation"]


def operation(request: int) -> str:
    """`FIONREAD`; without a name `_IOC(_IOC_READ, 0x12, 0x34, 0x8)`."""
    if (name := name_of("ioctl", request)) is not None:
        return name
    way = ("_IOC_NONE", "_IOC_WRITE", "_IOC_READ", "_IOC_READ|_IOC_WRITE")[request >> 30]
    kind, number, size = request >> 8 & 0xFF, request & 0xFF, request >> 16 & 0x3FFF
    return f"_IOC({way}, {kind:#x}, {number:#x}, {f'{size:#x}' if size else '0'})"


_NONE = {"FIOCLEX", "FIONCLEX", "TIOCNOTTY", "TIOCEXCL", "TIOCNXCL", "TIOCVHANGUP", "TIOCSBRK",
         "TIOCCBRK", "TIOCCONS"}  # fmt: skip
_READ_INT = {"FIONREAD", "TIOCOUTQ", "TIOCGPGRP", "TIOCGSID", "TIOCGETD", "TIOCGPTN", "TIOCGPTLCK",
             "TIOCGEXCL", "TIOCGPKT", "RNDGETENTCNT", "BLKSSZGET", "BLKROGET", "BLKPBSZGET",
             "FIGETBSZ", "FS_IOC_GETVERSION"}  # fmt: skip
_READ_LONG = {"BLKGETSIZE", "BLKGETSIZE64", "PERF_EVENT_IOC_ID"}
_WRITE_INT = {"FIONBIO", "FIOASYNC", "TIOCSPGRP", "TIOCSPTLCK", "TIOCSETD", "TIOCPKT",
              "RNDADDTOENTCNT"}  # fmt: skip
_VALUE = {"TCSBRK", "TCSBRKP", "TIOCSCTTY", "FICLONE", "LOOP_SET_FD", "LOOP_CHANGE_FD",
          "LOOP_SET_DIRECT_IO", "LOOP_SET_BLOCK_SIZE", "PERF_EVENT_IOC_ENABLE",
          "PERF_EVENT_IOC_DISABLE", "PERF_EVENT_IOC_RESET", "PERF_EVENT_IOC_REFRESH",
          "PERF_EVENT_IOC_SET_OUTPUT", "PERF_EVENT_IOC_SET_BPF",
          "PERF_EVENT_IOC_PAUSE_OUTPUT"}  # fmt: skip
_NAMED = {
    "TCFLSH": ("TCIFLUSH", "TCOFLUSH", "TCIOFLUSH"),
    "TCXONC": ("TCOOFF", "TCOON", "TCIOFF", "TCION"),
}
_TERMIOS = {"TCGETS", "TCSETS", "TCSETSW", "TCSETSF", "TCGETS2", "TCSETS2", "TCSETSW2", "TCSETSF2",
            "TIOCGLCKTRMIOS", "TIOCSLCKTRMIOS"}  # fmt: skip


def argument(view: View) -> str | None:
    """The argument; None: the operation takes none."""
    name, value = name_of("ioctl", view.uint32(1)) or "", view.arguments[2]
    signed = view.int32(2)
    if name in _NONE:
        return None
    if name in _VALUE:
        return str(signed)
    if name in _NAMED:
        names = _NAMED[name]
        return names[signed] if 0 <= signed < len(names) else f"{value:#x}"
    return _pointed(view, name) or (pointer(value) if name else _hex(value))


def _pointed(view: View, name: str) -> str | None:
    """Return the data behind the pointer as text; None: unknown, or not there."""
    entries = view.result == 0
    first, last = view.piece(2), view.piece(2, end=True) if entries else None
    if name in _WRITE_INT and first:
        return f"[{int.from_bytes(first[:4], 'little', signed=True)}]"
    if name in _READ_INT and last:
        return f"[{int.from_bytes(last[:4], 'little', signed=True)}]"
    if name in _READ_LONG and last:
        return f"[{int.from_bytes(last[:8], 'little')}]"
    if name in {"FS_IOC_GETFLAGS", "FS_IOC_SETFLAGS"}:
        flags = last if name == "FS_IOC_GETFLAGS" else first
        return f"[{flag_names('fs_flags', int.from_bytes(flags[:4], 'little'))}]" if flags else None
    if name in {"TIOCGWINSZ", "TIOCSWINSZ"}:
        return _window(last if name == "TIOCGWINSZ" else first)
    # what may be longer than 8 bytes, and was read whole
    before = view.piece(2, IOCTL_PART)
    after = view.piece(2, IOCTL_PART, end=True) if entries else None
    if name in _TERMIOS:
        is_read = name.startswith(("TCGET", "TIOCG"))
        return _termios(after if is_read else before)
    if name.startswith("SIOC"):
        if name == "SIOCGIFCONF" and before:
            return _interfaces(before, after, view.piece(2, INTERFACES_PART, end=True))
        return _interface(name, before, after)
    return _of_file(name, before, after)


def _window(data: bytes | None) -> str | None:
    if not data:
        return None
    rows, columns, x, y = struct.unpack_from("<4H", data)
    return f"{{ws_row={rows}, ws_col={columns}, ws_xpixel={x}, ws_ypixel={y}}}"


_DELAYS = (("NL", 8, 1), ("CR", 9, 3), ("TAB", 11, 3), ("BS", 13, 1), ("VT", 14, 1), ("FF", 15, 1))
"""Of c_oflag: names, shifts and masks. Source: include/uapi/asm-generic/termbits.h."""
_BAUD, _SIZE, _TERMIOS_SIZE = 0o010017, 0o60, 36


def _termios(data: bytes | None) -> str | None:
    if not data or len(data) < _TERMIOS_SIZE:
        return None
    iflag, oflag, cflag, lflag = struct.unpack_from("<4I", data)
    delays = [f"{name}{oflag >> shift & mask}" for name, shift, mask in _DELAYS]
    output = "|".join(delays + _bits("tc_oflag", oflag & 0xFF))
    baud = dict(numbers("tc_baud")).get(cflag & _BAUD, f"{cflag & _BAUD:#x}")
    control = "|".join(
        [baud, f"CS{5 + (cflag >> 4 & 3)}", *_bits("tc_cflag", cflag & ~_BAUD & ~_SIZE)]
    )
    return (
        f"{{c_iflag={flag_names('tc_iflag', iflag)}, c_oflag={output}, c_cflag={control}, "
        f"c_lflag={flag_names('tc_lflag', lflag)}, ...}}"
    )


def _bits(table: str, value: int) -> list[str]:
    return [flag_names(table, value)] if value else []


_NAME = 16  # IFNAMSIZ
_ADDRESSES = {"SIOCGIFADDR": "ifr_addr", "SIOCSIFADDR": "ifr_addr", "SIOCGIFDSTADDR": "ifr_dstaddr",
              "SIOCSIFDSTADDR": "ifr_dstaddr", "SIOCGIFBRDADDR": "ifr_broadaddr",
              "SIOCSIFBRDADDR": "ifr_broadaddr", "SIOCGIFNETMASK": "ifr_netmask",
              "SIOCSIFNETMASK": "ifr_netmask"}  # fmt: skip
_INTEGERS = {"SIOCGIFINDEX": "ifr_ifindex", "SIOCGIFMETRIC": "ifr_metric",
             "SIOCSIFMETRIC": "ifr_metric", "SIOCGIFMTU": "ifr_mtu", "SIOCSIFMTU": "ifr_mtu",
             "SIOCGIFTXQLEN": "ifr_qlen", "SIOCSIFTXQLEN": "ifr_qlen"}  # fmt: skip
_OTHERS = {"SIOCGIFFLAGS", "SIOCSIFFLAGS", "SIOCGIFHWADDR", "SIOCSIFHWADDR", "SIOCGIFMAP"}


def _interface(name: str, before: bytes | None, after: bytes | None) -> str | None:
    """Struct ifreq: netdevice(7)."""
    if not before:
        return None
    if name == "SIOCGIFNAME":
        index = int.from_bytes(before[_NAME : _NAME + 4], "little", signed=True)
        text = f", ifr_name={_text(after)}" if after else ""
        return f"{{ifr_ifindex={index}{text}}}"
    if name == "SIOCSIFNAME":
        return f"{{ifr_name={_text(before)}, ifr_newname={_text(before[_NAME:])}}}"
    if name not in _ADDRESSES and name not in _INTEGERS and name not in _OTHERS:
        return None
    data = before if name.startswith("SIOCS") else after
    value = f", {_interface_value(name, data[_NAME:])}" if data else ""
    return f"{{ifr_name={_text(before)}{value}}}"


_REQUEST = 40  # struct ifreq


def _interfaces(before: bytes, after: bytes | None, array: bytes | None) -> str:
    """Struct ifconf, with the addresses of interfaces that it gave."""
    size, address = struct.unpack_from("<i4xQ", before)
    last = int.from_bytes((after or before)[:4], "little", signed=True)
    shown_text = str(last if not address else size)
    if last != size and address:
        shown_text += f" => {last}"
    if last >= _REQUEST:
        shown_text += f" /* {last // _REQUEST} * sizeof(struct ifreq) */"
    requests = pointer(address)
    if after and address and array is not None:
        entries = min(last, len(array)) // _REQUEST
        texts = [
            f"{{ifr_name={_text(one)}, ifr_addr={sockets.address(one[_NAME:][:16], 16)}}}"
            for one in (array[at * _REQUEST : (at + 1) * _REQUEST] for at in range(entries))
        ]
        more = ["..."] if last // _REQUEST > entries else []
        requests = f"[{', '.join(texts + more)}]"
    return f"{{ifc_len={shown_text}, ifc_buf={requests}}}"


def _text(data: bytes) -> str:
    return quote(data[:_NAME].partition(b"\0")[0])


def _interface_value(name: str, data: bytes) -> str:
    if member := _ADDRESSES.get(name):
        return f"{member}={sockets.address(data[:16], 16)}"
    if member := _INTEGERS.get(name):
        return f"{member}={int.from_bytes(data[:4], 'little', signed=True)}"
    if name.endswith("FLAGS"):
        return f"ifr_flags={flag_names('iff', int.from_bytes(data[:2], 'little'))}"
    if name == "SIOCGIFMAP":
        start, end, base, irq, dma, port = struct.unpack_from("<QQHBBB", data)
        return (
            f"ifr_map={{mem_start={_hex(start)}, mem_end={_hex(end)}, base_addr={_hex(base)}, "
            f"irq={irq}, dma={dma}, port={port}}}"
        )
    family = enum_name("arphrd", int.from_bytes(data[:2], "little"))
    return f"ifr_hwaddr={{sa_family={family}, sa_data={data[2:8].hex(':')}}}"


def _hex(value: int) -> str:
    return f"{value:#x}" if value else "0"


def _of_file(name: str, before: bytes | None, after: bytes | None) -> str | None:
    """Return the argument of ioctl_fideduperange(2), ioctl_ficlonerange(2) and other requests."""
    if name == "FICLONERANGE" and before:
        fd, start, size, to = struct.unpack_from("<qQQQ", before)
        return f"{{src_fd={fd}, src_offset={start}, src_length={size}, dest_offset={to}}}"
    if name == "FITRIM" and before:
        start, size, least = struct.unpack_from("<QQQ", before)
        return f"{{start={_hex(start)}, len={_hex(size)}, minlen={least}}}"
    if name == "FS_IOC_FIEMAP" and before:
        start, size, flags, _, count = struct.unpack_from("<QQIII", before)
        asked = f"{{fm_start={start}, fm_length={size}, fm_flags={_hex(flags)}"
        asked += f", fm_extent_count={count}}}"
        if not after:
            return asked
        flags, mapped = struct.unpack_from("<II", after, 16)
        return f"{asked} => {{fm_flags={_hex(flags)}, fm_mapped_extents={mapped}, ...}}"
    data = after if name == "FS_IOC_FSGETXATTR" else before
    if name in {"FS_IOC_FSGETXATTR", "FS_IOC_FSSETXATTR"} and data:
        names = ("xflags", "extsize", "nextents", "projid", "cowextsize")
        pairs = zip(names, struct.unpack_from("<5I", data), strict=True)
        return f"{{{', '.join(f'fsx_{member}={value}' for member, value in pairs)}}}"
    return None
