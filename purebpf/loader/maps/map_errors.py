"""Why the kernel refused something about a map, in words."""

from __future__ import annotations

import errno

from purebpf.abi.bpf import bpf_map_type as t
from purebpf.errors import ENOTSUPP, KernelError
from purebpf.loader.host import cgroups, privilege
from purebpf.loader.maps import map_traits
from purebpf.loader.maps.map_info import MapInfo
from purebpf.spec import MapSpec

__all__ = ["creation", "operation"]

_NET_ADMIN = frozenset(
    {
        t.BPF_MAP_TYPE_SOCKMAP,
        t.BPF_MAP_TYPE_SOCKHASH,
        t.BPF_MAP_TYPE_DEVMAP,
        t.BPF_MAP_TYPE_DEVMAP_HASH,
        t.BPF_MAP_TYPE_XSKMAP,
    }
)
"""Types that want CAP_NET_ADMIN (map_create in kernel/bpf/syscall.c)."""

_CONNECTED = "it takes sockets of TCP (connected or listening), UDP, Unix or vsock"
_SOCKETS: dict[int, str] = {
    t.BPF_MAP_TYPE_SOCKMAP: _CONNECTED,
    t.BPF_MAP_TYPE_SOCKHASH: _CONNECTED,
    t.BPF_MAP_TYPE_XSKMAP: "it takes AF_XDP sockets",
}
_DEVICES = "it takes interfaces of this network namespace and programs of section xdp/devmap"
_RULES: dict[int, str] = {
    t.BPF_MAP_TYPE_PROG_ARRAY: "it takes programs of one type: that of the first one, or of the "
    "one that uses it",
    t.BPF_MAP_TYPE_DEVMAP: _DEVICES,
    t.BPF_MAP_TYPE_DEVMAP_HASH: _DEVICES,
    t.BPF_MAP_TYPE_CPUMAP: "it takes programs of section xdp/cpumap",
    t.BPF_MAP_TYPE_REUSEPORT_SOCKARRAY: "it takes bound sockets, with SO_REUSEPORT set before",
}
"""What elements must be like, by type of map."""

_WRITES = ("updating", "deleting from")


def creation(error: KernelError, spec: MapSpec) -> KernelError:
    """Return a refused BPF_MAP_CREATE with the requested values."""
    description = (
        f"map {spec.name!r} ({map_traits.type_name(spec.type)}, key {spec.key_size} B, "
        f"value {spec.value_size} B, {spec.max_entries} entries, flags {spec.flags:#x})"
    )
    number = error.errno or 0
    if number == errno.EPERM:
        extra = ("CAP_NET_ADMIN",) if spec.type in _NET_ADMIN else ()
        return privilege.explain_eperm(error, description, "CAP_BPF", *extra)
    why = fix = ""
    if number in (errno.ENOMEM, errno.E2BIG):
        size = _bytes(spec)
        why = f"its elements alone take {size} bytes" + (
            _no_memory()
            if number == errno.ENOMEM
            else ", or one is larger than the kernel's largest allocation"
        )
        if resize := _resize(spec, "fewer_entries"):
            fix = f"make it smaller: {resize}"
        elif number == errno.ENOMEM and cgroups.memory_limit() is not None:
            fix = "Raise that limit"
    elif number == errno.EINVAL:
        why, fix = _invalid(spec)
    if spec.program_hash and number in (errno.EINVAL, errno.E2BIG) and not _exclusive_maps():
        why = "this kernel does not support maps exclusive to a program (Linux 6.18)"
        fix = ""
    return KernelError(error.call, number, description, why=why, fix=fix)


def _no_memory() -> str:
    """Why the kernel had no memory for a map, with the limit of the cgroup if there is one."""
    limit = cgroups.memory_limit()
    if limit is None:
        return ", which the kernel could not allocate"
    return f", and this process's cgroup may have {limit[1]} in all ({limit[0]})"


def _exclusive_maps() -> bool:
    from purebpf.loader.features import features

    return bool(features.have_exclusive_maps())


def _resize(spec: MapSpec, entries: str) -> str:
    """The call that changes how many entries a map has; a data section or inner map has none."""
    return f"spec.resize({spec.name}={entries})" if spec.name.isidentifier() else ""


def _bytes(spec: MapSpec) -> int:
    if spec.type in map_traits.RINGS:
        return spec.max_entries
    return (spec.key_size + spec.value_size) * spec.max_entries


def _invalid(spec: MapSpec) -> tuple[str, str]:
    """The rule a spec breaks, if it is one of those people break."""
    if spec.type in map_traits.RINGS:
        if not spec.max_entries:
            return "the max_entries of a ring buffer is its size in bytes, and it is 0", ""
    elif spec.type in map_traits.KEYLESS:
        if spec.key_size:
            return f"a {map_traits.type_name(spec.type)} does not have a key", "leave the key out"
    elif spec.type in map_traits.INDEXED and spec.key_size != map_traits.FD_SIZE:
        return "its key must be a 4-byte index", "use __u32 as its key"
    elif spec.type == t.BPF_MAP_TYPE_LPM_TRIE and not spec.flags & 1:
        return "an LPM trie cannot be preallocated", "set BPF_F_NO_PREALLOC (1) in map_flags"
    elif not spec.max_entries and spec.type not in map_traits.ENDLESS:
        return "max_entries is 0", _resize(spec, "entries")
    kind = map_traits.type_name(spec.type)
    return f"a size or flag does not suit {kind}, or this kernel does not support such maps", ""


def operation(error: int, verb: str, call: str, info: MapInfo, detail: str = "") -> KernelError:
    """A refused lookup, update or delete. `error` is an errno, `detail` the key or so."""
    description = f"{verb} map {info.name!r} ({info})" + (f" at {detail}" if detail else "")
    if error == errno.EPERM:
        why = "the map is frozen, read-only for user space, or opened without this access"
        return KernelError(call, error, description, why=why)
    why = fix = ""
    if error == errno.E2BIG:
        why, fix = _too_big(info)
    elif error == errno.EINVAL and verb in _WRITES and (rule := _element_rule(info)):
        why = f"{rule}, or it does not take these flags"
    elif error in (errno.EBADF, errno.ENOTSOCK):
        why = "the value is not an open descriptor of what the map holds"
    elif error == errno.EOPNOTSUPP and verb in _WRITES and info.type in _SOCKETS:
        why = _SOCKETS[info.type]
    elif error == errno.ENOSPC and info.type in map_traits.SOCKETS:
        why, fix = "the kernel reads a socket as its cookie, of 8 bytes", "use __u64 as its value"
    elif info.type == t.BPF_MAP_TYPE_RINGBUF:
        why, fix = "a ring buffer has records, not elements", "read them with read()"
    elif error in (errno.EINVAL, errno.EOPNOTSUPP, ENOTSUPP):
        why = f"a {map_traits.type_name(info.type)} does not support this, or not with these flags"
    elif error == errno.EEXIST:
        why = "the key exists, and BPF_NOEXIST is set"
    elif error == errno.ENOENT:
        why = "the key does not exist"
    elif error == errno.ENOMEM:
        why = "the kernel could not allocate the element"
    elif error == errno.EBUSY:
        why = "the element's bucket, or the map, is in use by a program or by another write"
    return KernelError(call, error, description, why=why, fix=fix)


def _element_rule(info: MapInfo) -> str:
    """Return the requirement on a key or value beyond its size, or ""."""
    if info.type in map_traits.MAP_VALUES:
        inner = (
            "with keys and values of one size, and the same flags (arrays: the same max_entries)"
        )
        return f"it takes maps of one type, {inner}: this one differs"
    if info.type == t.BPF_MAP_TYPE_LPM_TRIE:
        return f"its prefix lengths are 0 to {8 * (info.key_size - map_traits.FD_SIZE)}"
    return _RULES.get(info.type, "")


def _too_big(info: MapInfo) -> tuple[str, str]:
    if info.type in map_traits.INDEXED:
        return f"its indexes are 0 to {info.max_entries - 1}", ""
    return (
        f"the map is full: all {info.max_entries} entries are in use",
        "raise it: spec.resize(name=entries)",
    )
