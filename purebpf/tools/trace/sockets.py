"""Addresses, types and options of sockets as text. Pure."""

from __future__ import annotations

import struct

from purebpf.tools.trace.constants import enum_name, flag_names, name_of
from purebpf.tools.trace.quoting import hexadecimal, quote

__all__ = ["address", "option_name", "protocol", "socket_type"]

_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_TYPE_MASK = 0xF
_OPTIONS = {1: "sock_option", 6: "tcp_option", 0: "ip_option", 41: "ipv6_option"}
"""Tables by level: SOL_SOCKET, and protocols."""


def address(data: bytes, length: int) -> str:
    """`{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}`."""
    if len(data) < 2:  # noqa: PLR2004 - sa_family_t
        return hexadecimal(data)
    from ipaddress import IPv4Address, IPv6Address  # which few calls need

    (family,) = struct.unpack_from("<H", data)
    text = f"sa_family={enum_name('address_family', family)}"
    if family == _UNIX:
        if length <= 2:  # noqa: PLR2004 - unnamed: unix(7)
            return f"{{{text}}}"
        path = data[2:length]
        if path.startswith(b"\0"):
            return f"{{{text}, sun_path=@{quote(path[1:])}}}"
        path = path.partition(b"\0")[0]
        return f"{{{text}, sun_path={quote(path)}}}"
    if family == _INET and len(data) >= 8:  # noqa: PLR2004 - struct sockaddr_in
        (port,) = struct.unpack_from(">H", data, 2)
        host = IPv4Address(data[4:8])
        return f'{{{text}, sin_port=htons({port}), sin_addr=inet_addr("{host}")}}'
    if family == _INET6 and len(data) >= 24:  # noqa: PLR2004 - struct sockaddr_in6
        port, flow = struct.unpack_from(">HI", data, 2)
        (scope,) = struct.unpack_from("<I", data, 24) if len(data) >= 28 else (0,)  # noqa: PLR2004
        host6 = IPv6Address(data[8:24])
        return (
            f"{{{text}, sin6_port=htons({port}), sin6_flowinfo=htonl({flow}), "
            f'inet_pton(AF_INET6, "{host6}", &sin6_addr), sin6_scope_id={scope}}}'
        )
    if family == _NETLINK and len(data) >= 12:  # noqa: PLR2004 - struct sockaddr_nl
        pid, groups = struct.unpack_from("<II", data, 4)
        return f"{{{text}, nl_pid={pid}, nl_groups={groups:08x}}}"
    return f"{{{text}, sa_data={quote(data[2:length])}}}"


def socket_type(value: int) -> str:
    """`SOCK_STREAM|SOCK_CLOEXEC`."""
    kind = enum_name("sock_type", value & _TYPE_MASK)
    flags = value & ~_TYPE_MASK
    return f"{kind}|{flag_names('sock_flags', flags)}" if flags else kind


def protocol(family: int, value: int) -> str:
    """By the family: `IPPROTO_TCP`, or a number."""
    if family in (_INET, _INET6):
        return enum_name("ip_protocol", value)
    if family == _NETLINK:
        return name_of("netlink", value) or str(value)
    return str(value)


def option_name(level: int, value: int) -> str:
    """`SO_REUSEADDR`, `TCP_NODELAY`."""
    table = _OPTIONS.get(level)
    return enum_name(table, value) if table else f"{value:#x}"
