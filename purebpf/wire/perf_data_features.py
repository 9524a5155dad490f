"""The features of perf.data as values: strings, the command line, CPUs, build ids, events.

Each `pack_` has its `unpack_`; for strings these are `packed_string` and `string`. A string is its
size with the NUL and the padding, and then the bytes (NAME_ALIGN in tools/perf/util/header.h).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from purebpf.errors import FormatError
from purebpf.tuples import NamedTuple
from purebpf.wire import formats
from purebpf.wire.perf_data import RecordedEvent, UserRecord
from purebpf.wire.perf_encode import MISC_KERNEL, MISC_USER
from purebpf.wire.perf_ring import HEADER, Buffer

__all__ = [
    "BuildId",
    "pack_btf",
    "pack_build_ids",
    "pack_cpus",
    "pack_events",
    "pack_numbers",
    "pack_pmus",
    "pack_string",
    "pack_strings",
    "string",
    "unpack_btf",
    "unpack_build_ids",
    "unpack_cpus",
    "unpack_events",
    "unpack_strings",
]

_NAME_ALIGN = 64
_U32 = struct.Struct("=I")
_CPUS = struct.Struct("=" + formats.PERF_NRCPUS)
_EVENTS = struct.Struct("=" + formats.PERF_EVENT_DESC)
_BUILD_ID = struct.Struct("=" + formats.PERF_BUILD_ID)
_HAS_SIZE = 1 << 15
_MODE = 7
_SHA1 = 20


class BuildId(NamedTuple):
    """The build id (bytes) of a file, or of the kernel: "[kernel.kallsyms]"."""

    filename: str
    build_id: bytes
    is_kernel: bool = False


def pack_string(text: str) -> bytes:
    """One string: HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC and CPUID are just that."""
    data = text.encode("utf-8", "surrogateescape")
    padded = data + bytes(_NAME_ALIGN - len(data) % _NAME_ALIGN)
    return _U32.pack(len(padded)) + padded


def string(data: Buffer, offset: int = 0) -> str:
    """The string at an offset. Raises FormatError when it passes the end."""
    return _string(data, offset)[0]


def pack_strings(texts: Sequence[str]) -> bytes:
    """CMDLINE: the arguments."""
    return _U32.pack(len(texts)) + b"".join(map(pack_string, texts))


def unpack_strings(data: Buffer) -> tuple[str, ...]:
    """Read CMDLINE. Raises FormatError for anything beyond the end."""
    count, offset = _number(data, 0)
    texts = []
    for _ in range(count):
        text, offset = _string(data, offset)
        texts.append(text)
    return tuple(texts)


def pack_cpus(available: int, online: int) -> bytes:
    """NRCPUS."""
    return _CPUS.pack(available, online)


def unpack_cpus(data: Buffer) -> tuple[int, int]:
    """NRCPUS: available, online."""
    packed, _ = _bytes(data, 0, _CPUS.size)
    available, online = _CPUS.unpack(packed)
    return available, online


def pack_numbers(*numbers: int) -> bytes:
    """u64 one after the other: TOTAL_MEM (KiB), SAMPLE_TIME (first, last), CLOCKID (ns)."""
    return struct.pack(f"={len(numbers)}Q", *numbers)


def pack_btf(blobs: Sequence[tuple[int, bytes]]) -> bytes:
    """BPF_BTF: types of programs, by their numbers in the kernel (write_bpf_btf() of perf)."""
    parts = [_U32.pack(len(blobs))]
    for number, blob in blobs:
        parts += (_U32.pack(number), _U32.pack(len(blob)), blob)
    return b"".join(parts)


def unpack_btf(data: Buffer) -> tuple[tuple[int, bytes], ...]:
    """Read BPF_BTF. Raises FormatError for anything beyond the end."""
    count, offset = _number(data, 0)
    blobs = []
    for _ in range(count):
        number, offset = _number(data, offset)
        size, offset = _number(data, offset)
        blob, offset = _bytes(data, offset, size)
        blobs.append((number, blob))
    return tuple(blobs)


def pack_pmus(types: Iterable[tuple[int, str]]) -> bytes:
    """PMU_MAPPINGS: the performance units by their type numbers."""
    rows = [_U32.pack(number) + pack_string(name) for number, name in types]
    return _U32.pack(len(rows)) + b"".join(rows)


def pack_events(events: Sequence[RecordedEvent], attr_size: int) -> bytes:
    """EVENT_DESC: the names of the events, with their attributes and ids once more."""
    parts = [_EVENTS.pack(len(events), attr_size)]
    for event in events:
        parts.append(event.attr[:attr_size].ljust(attr_size, b"\0"))
        parts.append(_U32.pack(len(event.ids)))
        parts.append(pack_string(event.name))
        parts.append(pack_numbers(*event.ids))
    return b"".join(parts)


def unpack_events(data: Buffer) -> tuple[RecordedEvent, ...]:
    """Read EVENT_DESC. Raises FormatError for anything beyond the end."""
    packed, offset = _bytes(data, 0, _EVENTS.size)
    count, attr_size = _EVENTS.unpack(packed)
    events = []
    for _ in range(count):
        attr, offset = _bytes(data, offset, attr_size)
        ids, offset = _number(data, offset)
        name, offset = _string(data, offset)
        packed, offset = _bytes(data, offset, 8 * ids)
        events.append(RecordedEvent(name, attr, struct.unpack(f"={ids}Q", packed)))
    return tuple(events)


def pack_build_ids(build_ids: Iterable[BuildId]) -> bytes:
    """BUILD_ID: a record for each file."""
    rows = []
    for filename, build_id, is_kernel in build_ids:
        name = filename.encode("utf-8", "surrogateescape")
        name += bytes(_NAME_ALIGN - len(name) % _NAME_ALIGN)
        body = _BUILD_ID.pack(-1, build_id, len(build_id)) + name
        misc = (MISC_KERNEL if is_kernel else MISC_USER) | _HAS_SIZE
        rows.append(HEADER.pack(UserRecord.HEADER_BUILD_ID, misc, HEADER.size + len(body)) + body)
    return b"".join(rows)


def unpack_build_ids(data: Buffer) -> tuple[BuildId, ...]:
    """BUILD_ID. A record without a size (perf before Linux 5.9) has 20 bytes.

    Raises FormatError for anything beyond the end.
    """
    build_ids, start = [], 0
    while start < len(data):
        header, start = _bytes(data, start, HEADER.size)
        _, misc, size = HEADER.unpack(header)
        body, start = _bytes(data, start, max(size - HEADER.size, _BUILD_ID.size))
        _, build_id, length = _BUILD_ID.unpack_from(body)
        build_id = build_id[: length if misc & _HAS_SIZE else _SHA1]
        name = body[_BUILD_ID.size :].partition(b"\0")[0].decode("utf-8", "surrogateescape")
        build_ids.append(BuildId(name, build_id, misc & _MODE == MISC_KERNEL))
    return tuple(build_ids)


def _bytes(data: Buffer, offset: int, size: int) -> tuple[bytes, int]:
    following = offset + size
    if following > len(data):
        raise FormatError("perf.data", f"feature, byte {offset}", f"{size} bytes run past its end")
    return bytes(data[offset:following]), following


def _number(data: Buffer, offset: int) -> tuple[int, int]:
    packed, offset = _bytes(data, offset, 4)
    return _U32.unpack(packed)[0], offset


def _string(data: Buffer, offset: int) -> tuple[str, int]:
    size, offset = _number(data, offset)
    packed, offset = _bytes(data, offset, size)
    return packed.partition(b"\0")[0].decode("utf-8", "surrogateescape"), offset
