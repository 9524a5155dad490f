"""The kernel's slab caches by the structs that they are for."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["structs_in"]

_STRUCTS = {
    "filp": "file",
    "bfilp": "backing_file",
    "files_cache": "files_struct",
    "signal_cache": "signal_struct",
    "sighand_cache": "sighand_struct",
    "mnt_cache": "mount",
    "sock_inode_cache": "socket_alloc",
    "proc_inode_cache": "proc_inode",
    "bdev_cache": "bdev_inode",
    "tracefs_inode_cache": "tracefs_inode",
    "net_namespace": "net",
    "skbuff_head_cache": "sk_buff",
    "TCP": "tcp_sock",
    "TCPv6": "tcp6_sock",
    "UDP": "udp_sock",
    "UDPv6": "udp6_sock",
    "RAW": "raw_sock",
    "RAWv6": "raw6_sock",
    "UNIX": "unix_sock",
    "UNIX-STREAM": "unix_sock",
    "AF_VSOCK": "vsock_sock",
}
"""Slab caches with names that are not those of the structs in them."""
_SUFFIX = "_cache"


def structs_in(cache: str) -> Iterator[str]:
    """Yield the names of structs that a cache may be for; most do not exist."""
    if cache in _STRUCTS:
        yield _STRUCTS[cache]
    yield cache
    if cache.endswith(_SUFFIX):
        stem = cache.removesuffix(_SUFFIX)
        yield from (stem, f"{stem}_info", f"{stem}_struct")
