"""The kernel's description of a bpf_link: struct bpf_link_info, and the part of it that applies.

The struct is a head and a union. `LinkInfo.details` is the member that belongs to the link's
type, under the kernel's names; a type without a member here has None.
"""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.abi.bpf import bpf_attach_type, bpf_link_type, bpf_perf_event_type
from purebpf.abi.layouts import BPF_LINK_INFO
from purebpf.abi.names import member
from purebpf.syscall import bpf
from purebpf.syscall.command import address_of
from purebpf.tuples import NamedTuple

__all__ = [
    "UPDATED",
    "CgroupLink",
    "DeviceLink",
    "IterLink",
    "KprobeMultiLink",
    "LinkDetails",
    "LinkInfo",
    "MapLink",
    "NetfilterLink",
    "NetnsLink",
    "PerfEventLink",
    "RawTracepointLink",
    "TracingLink",
    "UprobeMultiLink",
    "read_info",
]

_TEXT_ROOM = 4096
UPDATED = frozenset(
    {
        bpf_link_type.BPF_LINK_TYPE_CGROUP,
        bpf_link_type.BPF_LINK_TYPE_ITER,
        bpf_link_type.BPF_LINK_TYPE_NETNS,
        bpf_link_type.BPF_LINK_TYPE_XDP,
        bpf_link_type.BPF_LINK_TYPE_STRUCT_OPS,
        bpf_link_type.BPF_LINK_TYPE_TCX,
        bpf_link_type.BPF_LINK_TYPE_NETKIT,
        bpf_link_type.BPF_LINK_TYPE_SOCKMAP,
    }
)
"""The kinds that can be made to run another program, or map, while attached."""


class RawTracepointLink(NamedTuple):
    """A raw tracepoint's name, and the cookie of the attachment (0 before Linux 6.17).

    Commit 2fe1c5934736, "bpf: Add cookie to raw_tp bpf_link_info".
    """

    name: str
    cookie: int


class TracingLink(NamedTuple):
    """The target of a tracing program, or of one that replaces another's function.

    `target_object_id` is the id of the BTF that `target_btf_id` is in, or of the program with the
    function it is (Linux 5.13, commit 441e8c66b23e).
    """

    attach_type: int
    target_object_id: int
    target_btf_id: int
    cookie: int


class CgroupLink(NamedTuple):
    """A cgroup's id (its inode number; 0 when it was removed) and the hook there."""

    cgroup_id: int
    attach_type: int


class IterLink(NamedTuple):
    """The objects that an iterator runs over: `"bpf_map_elem"`; the rest is 0 where it does not
    apply.
    """

    target: str
    map_id: int
    cgroup_id: int
    order: int
    tid: int
    pid: int


class NetnsLink(NamedTuple):
    """A network namespace, by inode number; 0 when it is gone."""

    netns_inode: int
    attach_type: int


class DeviceLink(NamedTuple):
    """A network interface, by index (0 when it is gone): XDP, tcx and netkit."""

    ifindex: int
    attach_type: int


class MapLink(NamedTuple):
    """A map of sockets and the hook there, or a map of struct_ops."""

    map_id: int
    attach_type: int


class NetfilterLink(NamedTuple):
    """A netfilter hook: family (NFPROTO_*), hook number, priority and flags."""

    family: int
    hook: int
    priority: int
    flags: int


class PerfEventLink(NamedTuple):
    """A perf event: enum bpf_perf_event_type and its target (Linux 6.6).

    Commit 1b715e1b0ec5, "bpf: Support ->fill_link_info for perf_event".

    `name` is the function of a kprobe, the file of a uprobe, the name of a tracepoint; `offset`
    and `address` are a probe's; `config` is a plain event's number.
    """

    kind: int
    name: str
    offset: int
    address: int
    config: int
    missed: int
    cookie: int


class KprobeMultiLink(NamedTuple):
    """The functions of a kprobe.multi link; the addresses are 0 if they are secret.

    Linux 6.6 (commit 7ac8d0d26192, "bpf: Support ->fill_link_info for kprobe_multi").
    """

    addresses: tuple[int, ...]
    cookies: tuple[int, ...]
    flags: int
    missed: int


class UprobeMultiLink(NamedTuple):
    """The places of a uprobe.multi link, as offsets in a file.

    Linux 6.8 (commit e56fdbfb06e2, "bpf: Add link_info support for uprobe multi link").
    """

    path: str
    offsets: tuple[int, ...]
    cookies: tuple[int, ...]
    flags: int
    pid: int


LinkDetails = (
    RawTracepointLink
    | TracingLink
    | CgroupLink
    | IterLink
    | NetnsLink
    | DeviceLink
    | MapLink
    | NetfilterLink
    | PerfEventLink
    | KprobeMultiLink
    | UprobeMultiLink
    | None
)


class LinkInfo(NamedTuple):
    """The kernel's description of a bpf_link.

    Attributes:
        id: its number, as in `bpftool link`.
        type: enum bpf_link_type; a plain int when it is newer than our tables.
        program_id: the number of its program, or 0 (struct_ops).
        details: its target, by its type; zeros where an older kernel has no details.
    """

    id: int
    type: int
    program_id: int
    details: LinkDetails = None


Fields = Mapping[str, int]


def read_info(fd: int) -> LinkInfo:
    """The info of an open link (BPF_OBJ_GET_INFO_BY_FD, Linux 5.8, commit f2e10bff16a0).

    Raises:
        KernelError: EINVAL, `fd` is not a link.
    """
    fields = _ask(fd)
    kind = fields["type"]
    number, program = fields["id"], fields["prog_id"]
    return LinkInfo(number, member(bpf_link_type, kind), program, _details(fd, fields))


def _ask(fd: int, **request: int) -> Fields:
    """Return the numbers of the info; `request` may hold addresses and sizes of memory for it."""
    data = bytearray(BPF_LINK_INFO.pack(**request))
    bpf.obj_get_info_by_fd(fd, data)
    unpacked = BPF_LINK_INFO.unpack(data)
    return {name: value for name, value in unpacked.items() if isinstance(value, int)}


def _details(fd: int, info: Fields) -> LinkDetails:
    t = bpf_link_type
    match info["type"]:
        case t.BPF_LINK_TYPE_RAW_TRACEPOINT:
            name = _text(fd, "raw_tracepoint_tp_name", "raw_tracepoint_tp_name_len")
            return RawTracepointLink(name, info["raw_tracepoint_cookie"])
        case t.BPF_LINK_TYPE_TRACING:
            return TracingLink(
                _attach_type(info["tracing_attach_type"]),
                info["tracing_target_obj_id"],
                info["tracing_target_btf_id"],
                info["tracing_cookie"],
            )
        case t.BPF_LINK_TYPE_CGROUP:
            attach_type = _attach_type(info["cgroup_attach_type"])
            return CgroupLink(info["cgroup_cgroup_id"], attach_type)
        case t.BPF_LINK_TYPE_ITER:
            return _iterator(fd, info)
        case t.BPF_LINK_TYPE_NETNS:
            attach_type = _attach_type(info["netns_attach_type"])
            return NetnsLink(info["netns_netns_ino"], attach_type)
        case t.BPF_LINK_TYPE_XDP:
            return DeviceLink(info["xdp_ifindex"], bpf_attach_type.BPF_XDP)
        case t.BPF_LINK_TYPE_TCX:
            return DeviceLink(info["tcx_ifindex"], _attach_type(info["tcx_attach_type"]))
        case t.BPF_LINK_TYPE_NETKIT:
            return DeviceLink(info["netkit_ifindex"], _attach_type(info["netkit_attach_type"]))
        case t.BPF_LINK_TYPE_SOCKMAP:
            return MapLink(info["sockmap_map_id"], _attach_type(info["sockmap_attach_type"]))
        case t.BPF_LINK_TYPE_STRUCT_OPS:
            return MapLink(info["struct_ops_map_id"], bpf_attach_type.BPF_STRUCT_OPS)
        case t.BPF_LINK_TYPE_NETFILTER:
            names = ("pf", "hooknum", "priority", "flags")
            return NetfilterLink(*(info[f"netfilter_{name}"] for name in names))
        case t.BPF_LINK_TYPE_PERF_EVENT:
            return _perf_event(fd, info)
        case t.BPF_LINK_TYPE_KPROBE_MULTI:
            return _kprobes(fd, info)
        case t.BPF_LINK_TYPE_UPROBE_MULTI:
            return _uprobes(fd, info)
    return None


def _attach_type(number: int) -> int:
    return member(bpf_attach_type, number)


def _text(fd: int, field: str, size_field: str) -> str:
    """Return a string of the info; the kernel wants memory for it."""
    room = bytearray(_TEXT_ROOM)
    _ask(fd, **{field: address_of(room), size_field: len(room)})
    return room.partition(b"\0")[0].decode(errors="replace")


_OF_MAPS = ("bpf_map_elem", "bpf_sk_storage_map", "sockmap")


def _iterator(fd: int, info: Fields) -> IterLink:
    target = _text(fd, "iter_target_name", "iter_target_name_len")
    # One union holds the map and, behind it, either the cgroup or the task.
    iter_link = IterLink(target, 0, 0, 0, 0, 0)
    if target in _OF_MAPS:
        return iter_link._replace(map_id=info["iter_map_map_id"])
    if target == "cgroup":
        return iter_link._replace(
            cgroup_id=info["iter_cgroup_cgroup_id"], order=info["iter_cgroup_order"]
        )
    return iter_link._replace(tid=info["iter_task_tid"], pid=info["iter_task_pid"])


_UPROBES = (
    bpf_perf_event_type.BPF_PERF_EVENT_UPROBE,
    bpf_perf_event_type.BPF_PERF_EVENT_URETPROBE,
)
_KPROBES = (
    bpf_perf_event_type.BPF_PERF_EVENT_KPROBE,
    bpf_perf_event_type.BPF_PERF_EVENT_KRETPROBE,
)


def _perf_event(fd: int, info: Fields) -> PerfEventLink:
    kind = member(bpf_perf_event_type, info["perf_event_type"])
    perf_link = PerfEventLink(kind, "", 0, 0, 0, 0, 0)
    if kind in _UPROBES:
        return perf_link._replace(
            name=_text(fd, "perf_event_uprobe_file_name", "perf_event_uprobe_name_len"),
            offset=info["perf_event_uprobe_offset"],
            cookie=info["perf_event_uprobe_cookie"],
        )
    if kind in _KPROBES:
        return perf_link._replace(
            name=_text(fd, "perf_event_kprobe_func_name", "perf_event_kprobe_name_len"),
            offset=info["perf_event_kprobe_offset"],
            address=info["perf_event_kprobe_addr"],
            missed=info["perf_event_kprobe_missed"],
            cookie=info["perf_event_kprobe_cookie"],
        )
    if kind == bpf_perf_event_type.BPF_PERF_EVENT_TRACEPOINT:
        return perf_link._replace(
            name=_text(fd, "perf_event_tracepoint_tp_name", "perf_event_tracepoint_name_len"),
            cookie=info["perf_event_tracepoint_cookie"],
        )
    if kind == bpf_perf_event_type.BPF_PERF_EVENT_EVENT:
        return perf_link._replace(
            config=info["perf_event_event_config"], cookie=info["perf_event_event_cookie"]
        )
    return perf_link


def _kprobes(fd: int, info: Fields) -> KprobeMultiLink:
    count = info["kprobe_multi_count"]
    addresses, cookies = bytearray(8 * count), bytearray(8 * count)
    if count:
        _ask(
            fd,
            kprobe_multi_count=count,
            kprobe_multi_addrs=address_of(addresses),
            kprobe_multi_cookies=address_of(cookies),
        )
    return KprobeMultiLink(
        _words(addresses), _words(cookies), info["kprobe_multi_flags"], info["kprobe_multi_missed"]
    )


def _uprobes(fd: int, info: Fields) -> UprobeMultiLink:
    count = info["uprobe_multi_count"]
    path, offsets, cookies = bytearray(_TEXT_ROOM), bytearray(8 * count), bytearray(8 * count)
    if count:
        _ask(
            fd,
            uprobe_multi_count=count,
            uprobe_multi_path=address_of(path),
            uprobe_multi_path_size=len(path),
            uprobe_multi_offsets=address_of(offsets),
            uprobe_multi_cookies=address_of(cookies),
        )
    name = path.partition(b"\0")[0].decode(errors="replace")
    return UprobeMultiLink(
        name,
        _words(offsets),
        _words(cookies),
        info["uprobe_multi_flags"],
        info["uprobe_multi_pid"],
    )


def _words(data: bytearray) -> tuple[int, ...]:
    return tuple(memoryview(data).cast("Q"))
