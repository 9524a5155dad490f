"""bpf(2): one plain function per command, with no retry, fallback or advice.

Fields have the kernel's names and meanings (include/uapi/linux/bpf.h, bpf(2)). Missing fields are
zero, as is the rest of the attr: an older kernel then accepts a longer one. A bytes or bytearray
argument is passed by its address and stays alive until the call is over; the kernel writes only to
bytearrays.

Every function raises `KernelError` with the call's name and errno, and `ValueError` for a value
that does not fit in its field, or a name with a NUL. The batch commands instead return how far they
got, since the kernel fails with valid results in hand.
"""

from __future__ import annotations

import struct

from purebpf.abi.bpf import bpf_cmd
from purebpf.abi.layouts import ATTR
from purebpf.syscall import token
from purebpf.syscall.command import (
    BatchResult,
    Field,
    Log,
    TestRunResult,
    command,
    explain_refusal,
    issue,
    number,
)
from purebpf.syscall.descriptor import Descriptor
from purebpf.syscall.map_sizes import Sizes, require_sizes

_LENGTH_AT, _code = ATTR["info"].fields["info_len"]
_LENGTH = struct.Struct("=" + _code)

# Maps


def map_create(
    map_type: int,
    key_size: int,
    value_size: int,
    max_entries: int,
    **fields: Field,
) -> Descriptor:
    """BPF_MAP_CREATE. Sizes in bytes; of `map_name`, the kernel gets 15 bytes.

    `map_name` needs Linux 4.15 (commit ad5b177bd73f). `excl_prog_hash` is bytes, the SHA-256 of the
    only program that may use the map (Linux 6.18, commit baefdbdf6812); its size is a field.
    """
    flags = fields.get("map_flags", 0)
    assert isinstance(flags, int)
    if token.current.get() >= 0:
        fields |= token.fields("map", flags)
    return Descriptor(
        command(
            bpf_cmd.BPF_MAP_CREATE,
            "map_create",
            map_type=map_type,
            key_size=key_size,
            value_size=value_size,
            max_entries=max_entries,
            **fields,
        )
    )


def map_lookup_elem(map_fd: int, key: bytes, value: bytearray, flags: int = 0) -> None:
    """BPF_MAP_LOOKUP_ELEM: fill `value`, which must be as long as the kernel writes."""
    require_sizes(map_fd, "LOOKUP_ELEM", len(key), len(value))
    cmd = bpf_cmd.BPF_MAP_LOOKUP_ELEM
    command(cmd, "map_elem", map_fd=map_fd, key=key, value=value, flags=flags)


def map_update_elem(
    map_fd: int,
    key: bytes,
    value: bytes | bytearray,
    flags: int = 0,
    *,
    known: Sizes | None = None,
) -> None:
    """BPF_MAP_UPDATE_ELEM; queues, stacks and bloom filters have an empty `key`.

    `known` are the map's sizes, when they were read from it before.
    """
    if known is None or (len(key), len(value)) != known[1:]:
        require_sizes(map_fd, "UPDATE_ELEM", len(key), len(value))
    cmd = bpf_cmd.BPF_MAP_UPDATE_ELEM
    command(cmd, "map_elem", map_fd=map_fd, key=key, value=value, flags=flags)


def map_delete_elem(map_fd: int, key: bytes, *, known: Sizes | None = None) -> None:
    """BPF_MAP_DELETE_ELEM; `known` as in `map_update_elem`."""
    if known is None or len(key) != known.key:
        require_sizes(map_fd, "DELETE_ELEM", len(key), None)
    command(bpf_cmd.BPF_MAP_DELETE_ELEM, "map_elem", map_fd=map_fd, key=key)


def map_freeze(map_fd: int) -> None:
    """BPF_MAP_FREEZE (Linux 5.2, commit 87df15de441b): no more writes from user space."""
    command(bpf_cmd.BPF_MAP_FREEZE, "map_elem", map_fd=map_fd)


def _batch(cmd: bpf_cmd, **fields: Field) -> BatchResult:
    result, attr = issue(cmd, "batch", fields)
    return BatchResult(number("batch", attr, "count"), -min(result, 0))


def map_lookup_batch(
    map_fd: int,
    *,
    in_batch: bytes | bytearray | None,
    out_batch: bytearray,
    keys: bytearray,
    values: bytearray,
    count: int,
) -> BatchResult:
    """BPF_MAP_LOOKUP_BATCH: up to `count` elements from `in_batch` on (None: start).

    Linux 5.6 (commit cb4d03ab499d).

    The batch cursors are `max(4, key_size)` bytes. ENOSPC: a hash bucket has more elements.
    """
    cursors = [len(cursor) for cursor in (in_batch, out_batch) if cursor is not None]
    require_sizes(map_fd, "LOOKUP_BATCH", len(keys), len(values), count=count, cursors=cursors)
    return _batch(
        bpf_cmd.BPF_MAP_LOOKUP_BATCH,
        map_fd=map_fd,
        in_batch=in_batch,
        out_batch=out_batch,
        keys=keys,
        values=values,
        count=count,
    )


def map_lookup_and_delete_batch(
    map_fd: int,
    *,
    in_batch: bytes | bytearray | None,
    out_batch: bytearray,
    keys: bytearray,
    values: bytearray,
    count: int,
) -> BatchResult:
    """BPF_MAP_LOOKUP_AND_DELETE_BATCH (Linux 5.6, commit 057996380a42), as `map_lookup_batch`."""
    cursors = [len(cursor) for cursor in (in_batch, out_batch) if cursor is not None]
    require_sizes(
        map_fd, "LOOKUP_AND_DELETE_BATCH", len(keys), len(values), count=count, cursors=cursors
    )
    return _batch(
        bpf_cmd.BPF_MAP_LOOKUP_AND_DELETE_BATCH,
        map_fd=map_fd,
        in_batch=in_batch,
        out_batch=out_batch,
        keys=keys,
        values=values,
        count=count,
    )


def map_update_batch(map_fd: int, keys: bytes, values: bytes, count: int) -> BatchResult:
    """BPF_MAP_UPDATE_BATCH (Linux 5.6, commit aa2e93b8e58e): create or replace `count` elements."""
    require_sizes(map_fd, "UPDATE_BATCH", len(keys), len(values), count=count)
    cmd = bpf_cmd.BPF_MAP_UPDATE_BATCH
    return _batch(cmd, map_fd=map_fd, keys=keys, values=values, count=count)


def map_delete_batch(map_fd: int, keys: bytes, count: int) -> BatchResult:
    """BPF_MAP_DELETE_BATCH: stops at the first key that is not there.

    Linux 5.6 (commit aa2e93b8e58e).
    """
    require_sizes(map_fd, "DELETE_BATCH", len(keys), None, count=count)
    return _batch(bpf_cmd.BPF_MAP_DELETE_BATCH, map_fd=map_fd, keys=keys, count=count)


# Programs and BTF


def prog_load(
    prog_type: int,
    insns: bytes,
    license_text: str,
    *,
    prog_name: bytes = b"",
    log: Log | None = None,
    **fields: Field,
) -> Descriptor:
    """BPF_PROG_LOAD: `insns` in 8-byte slots. `log` is filled on failure too.

    `func_info`, `line_info` and `fd_array` are bytes; their counts and record sizes are fields.
    """
    flags = fields.get("prog_flags", 0)
    assert isinstance(flags, int)
    result, attr = issue(
        bpf_cmd.BPF_PROG_LOAD,
        "prog_load",
        {
            "prog_type": prog_type,
            "insn_cnt": len(insns) // 8,
            "insns": insns,
            "license": license_text.encode() + b"\0",
            "prog_name": prog_name,
            "log_level": log.level if log else 0,
            "log_size": len(log.buffer) if log else 0,
            "log_buf": log.buffer if log else None,
            **fields,
            **(token.fields("prog", flags) if token.current.get() >= 0 else {}),
        },
    )
    if log:
        log.true_size = number("prog_load", attr, "log_true_size")
    if result < 0:
        raise explain_refusal(bpf_cmd.BPF_PROG_LOAD, result)
    return Descriptor(result)


def btf_load(btf: bytes, *, log: Log | None = None, **fields: int) -> Descriptor:
    """BPF_BTF_LOAD (Linux 4.18, commit f56a653c1fd1)."""
    result, attr = issue(
        bpf_cmd.BPF_BTF_LOAD,
        "btf_load",
        {
            "btf": btf,
            "btf_size": len(btf),
            "btf_log_level": log.level if log else 0,
            "btf_log_size": len(log.buffer) if log else 0,
            "btf_log_buf": log.buffer if log else None,
            **fields,
            **(token.fields("btf", fields.get("btf_flags", 0)) if token.current.get() >= 0 else {}),
        },
    )
    if log:
        log.true_size = number("btf_load", attr, "btf_log_true_size")
    if result < 0:
        raise explain_refusal(bpf_cmd.BPF_BTF_LOAD, result)
    return Descriptor(result)


def prog_test_run(
    prog_fd: int,
    *,
    data_in: bytes | bytearray = b"",
    data_out: bytearray | None = None,
    ctx_in: bytes | bytearray = b"",
    ctx_out: bytearray | None = None,
    repeat: int = 0,
    **fields: int,
) -> TestRunResult:
    """BPF_PROG_TEST_RUN: run it once, or `repeat` times. skb and xdp want 14 bytes of data.

    ENOSPC: `data_out` or `ctx_out` is too small (it holds as much as fitted); EINTR: a signal.
    """
    result, attr = issue(
        bpf_cmd.BPF_PROG_TEST_RUN,
        "test",
        {
            "prog_fd": prog_fd,
            "data_in": data_in,
            "data_size_in": len(data_in),
            "data_out": data_out,
            "data_size_out": len(data_out or b""),
            "ctx_in": ctx_in,
            "ctx_size_in": len(ctx_in),
            "ctx_out": ctx_out,
            "ctx_size_out": len(ctx_out or b""),
            "repeat": repeat,
            **fields,
        },
    )
    if result < 0:
        raise explain_refusal(bpf_cmd.BPF_PROG_TEST_RUN, result)
    names = ("retval", "duration", "data_size_out", "ctx_size_out")
    return TestRunResult(*(number("test", attr, name) for name in names))


def prog_stream_read(prog_fd: int, stream_id: int, buffer: bytearray) -> int:
    """BPF_PROG_STREAM_READ_BY_FD: how many bytes of a program's text are in `buffer` now, or 0.

    Linux 6.17 (commit 5ab154f1463a, "bpf: Introduce BPF standard streams").
    """
    cmd = bpf_cmd.BPF_PROG_STREAM_READ_BY_FD
    return command(
        cmd,
        "prog_stream_read",
        prog_fd=prog_fd,
        stream_id=stream_id,
        stream_buf=buffer,
        stream_buf_len=len(buffer),
    )


def token_create(bpffs_fd: int, flags: int = 0) -> Descriptor:
    """BPF_TOKEN_CREATE: a token of the bpf file system with root `bpffs_fd`.

    Linux 6.9 (commit 35f96de04127, "bpf: Introduce BPF token object").
    """
    cmd = bpf_cmd.BPF_TOKEN_CREATE
    return Descriptor(command(cmd, "token_create", bpffs_fd=bpffs_fd, flags=flags))


def prog_bind_map(prog_fd: int, map_fd: int) -> None:
    """BPF_PROG_BIND_MAP: keep the map as long as the program lives.

    Linux 5.10 (commit ef15314aa5de).
    """
    command(bpf_cmd.BPF_PROG_BIND_MAP, "prog_bind_map", prog_fd=prog_fd, map_fd=map_fd)


# Pins, ids and info


def obj_pin(fd: int, path: str, **fields: int) -> None:
    """BPF_OBJ_PIN: give the object behind `fd` a name in a bpf file system."""
    command(bpf_cmd.BPF_OBJ_PIN, "obj", bpf_fd=fd, pathname=_c_string(path), **fields)


def obj_get(path: str, **fields: int) -> Descriptor:
    """BPF_OBJ_GET: open a pinned object; `file_flags` may be BPF_F_RDONLY or BPF_F_WRONLY."""
    return Descriptor(command(bpf_cmd.BPF_OBJ_GET, "obj", pathname=_c_string(path), **fields))


def _c_string(text: str) -> bytes:
    if "\0" in text:
        raise ValueError(f"{text!r} contains a NUL")
    return text.encode(errors="surrogateescape") + b"\0"


def _next_id(cmd: bpf_cmd, start_id: int) -> int:
    result, attr = issue(cmd, "get_id", {"start_id": start_id})
    if result < 0:
        raise explain_refusal(cmd, result)
    return number("get_id", attr, "next_id")


def prog_get_next_id(start_id: int) -> int:
    """BPF_PROG_GET_NEXT_ID: the smallest id above `start_id`; ENOENT after the last."""
    return _next_id(bpf_cmd.BPF_PROG_GET_NEXT_ID, start_id)


def map_get_next_id(start_id: int) -> int:
    """BPF_MAP_GET_NEXT_ID, as `prog_get_next_id`."""
    return _next_id(bpf_cmd.BPF_MAP_GET_NEXT_ID, start_id)


def btf_get_next_id(start_id: int) -> int:
    """BPF_BTF_GET_NEXT_ID (Linux 5.4, commit 1b9ed84ecf26), as `prog_get_next_id`."""
    return _next_id(bpf_cmd.BPF_BTF_GET_NEXT_ID, start_id)


def link_get_next_id(start_id: int) -> int:
    """BPF_LINK_GET_NEXT_ID (Linux 5.8, commit 2d602c8cf40d), as `prog_get_next_id`."""
    return _next_id(bpf_cmd.BPF_LINK_GET_NEXT_ID, start_id)


def prog_get_fd_by_id(prog_id: int) -> Descriptor:
    """BPF_PROG_GET_FD_BY_ID; needs CAP_SYS_ADMIN."""
    return Descriptor(command(bpf_cmd.BPF_PROG_GET_FD_BY_ID, "get_id", prog_id=prog_id))


def map_get_fd_by_id(map_id: int, open_flags: int = 0) -> Descriptor:
    """BPF_MAP_GET_FD_BY_ID; needs CAP_SYS_ADMIN. `open_flags`: BPF_F_RDONLY or BPF_F_WRONLY."""
    cmd = bpf_cmd.BPF_MAP_GET_FD_BY_ID
    return Descriptor(command(cmd, "get_id", map_id=map_id, open_flags=open_flags))


def btf_get_fd_by_id(btf_id: int) -> Descriptor:
    """BPF_BTF_GET_FD_BY_ID; needs CAP_SYS_ADMIN."""
    return Descriptor(command(bpf_cmd.BPF_BTF_GET_FD_BY_ID, "get_id", btf_id=btf_id))


def link_get_fd_by_id(link_id: int) -> Descriptor:
    """BPF_LINK_GET_FD_BY_ID (Linux 5.8); needs CAP_SYS_ADMIN."""
    return Descriptor(command(bpf_cmd.BPF_LINK_GET_FD_BY_ID, "get_id", link_id=link_id))


def obj_get_info_by_fd(fd: int, info: bytearray) -> int:
    """BPF_OBJ_GET_INFO_BY_FD: fill `info` (which may hold requests); the bytes the kernel knows."""
    cmd = bpf_cmd.BPF_OBJ_GET_INFO_BY_FD
    result, attr = issue(cmd, "info", {"bpf_fd": fd, "info": info, "info_len": len(info)})
    if result < 0:
        raise explain_refusal(cmd, result)
    known: int = _LENGTH.unpack_from(attr, _LENGTH_AT)[0]
    return known


# Attaching


def prog_attach(target_fd: int, attach_bpf_fd: int, attach_type: int, **fields: int) -> None:
    """BPF_PROG_ATTACH: cgroups, sockmaps, LIRC, flow dissector; without a link."""
    command(
        bpf_cmd.BPF_PROG_ATTACH,
        "prog_attach",
        target_fd=target_fd,
        attach_bpf_fd=attach_bpf_fd,
        attach_type=attach_type,
        **fields,
    )


def prog_detach(target_fd: int, attach_bpf_fd: int, attach_type: int, **fields: int) -> None:
    """BPF_PROG_DETACH: undo `prog_attach`."""
    command(
        bpf_cmd.BPF_PROG_DETACH,
        "prog_attach",
        target_fd=target_fd,
        attach_bpf_fd=attach_bpf_fd,
        attach_type=attach_type,
        **fields,
    )


def prog_query(target_fd: int, attach_type: int, **fields: Field) -> dict[str, int | bytes]:
    """BPF_PROG_QUERY: the attr after the call (`prog_cnt`, `attach_flags`, `revision`, ...)."""
    result, attr = issue(
        bpf_cmd.BPF_PROG_QUERY,
        "query",
        {"target_fd": target_fd, "attach_type": attach_type, **fields},
    )
    if result < 0:
        raise explain_refusal(bpf_cmd.BPF_PROG_QUERY, result)
    return ATTR["query"].unpack(attr)


def raw_tracepoint_open(prog_fd: int, name: str = "", cookie: int = 0) -> Descriptor:
    """BPF_RAW_TRACEPOINT_OPEN: a raw tracepoint by name, or a BTF program where it says."""
    return Descriptor(
        command(
            bpf_cmd.BPF_RAW_TRACEPOINT_OPEN,
            "raw_tracepoint",
            prog_fd=prog_fd,
            name=_c_string(name) if name else None,
            cookie=cookie,
        )
    )


def link_create(attach_type: int, **fields: Field) -> Descriptor:
    """BPF_LINK_CREATE (Linux 5.7, commit af6eea57437a).

    Fields of a member are joined: `perf_event_bpf_cookie=1`.
    """
    cmd = bpf_cmd.BPF_LINK_CREATE
    return Descriptor(command(cmd, "link_create", attach_type=attach_type, **fields))


def link_update(link_fd: int, **fields: int) -> None:
    """BPF_LINK_UPDATE: `new_prog_fd` or `new_map_fd`, and with F_REPLACE the old.

    Linux 5.7 (commit 0c991ebc8c69).
    """
    command(bpf_cmd.BPF_LINK_UPDATE, "link_update", link_fd=link_fd, **fields)


def link_detach(link_fd: int) -> None:
    """BPF_LINK_DETACH: detach though descriptors and pins remain.

    Linux 5.9 (commit 73b11c2ab072).
    """
    command(bpf_cmd.BPF_LINK_DETACH, "link_detach", link_fd=link_fd)


def iter_create(link_fd: int) -> Descriptor:
    """BPF_ITER_CREATE: return a readable file with the iterator program's output.

    Linux 5.8 (commit ac51d99bf81c).
    """
    return Descriptor(command(bpf_cmd.BPF_ITER_CREATE, "iter_create", link_fd=link_fd))


def enable_stats(stats_type: int) -> Descriptor:
    """BPF_ENABLE_STATS: run time and count of every program while it is open.

    Linux 5.8 (commit d46edd671a14).
    """
    return Descriptor(command(bpf_cmd.BPF_ENABLE_STATS, "enable_stats", type=stats_type))
