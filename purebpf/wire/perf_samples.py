"""PERF_RECORD_SAMPLE: the event's `sample_type` decides its layout, compiled once.

The order is perf_output_sample's in kernel/events/core.c: a fixed prefix, then parts of variable
length, each present when its bit is set.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from purebpf.abi.perf import perf_event_read_format as read_bits
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.errors import FormatError, NotSupportedError
from purebpf.wire.perf_records import Sample
from purebpf.wire.perf_ring import Buffer

_BRANCH_WORDS = 3
"""struct perf_branch_entry: from, to, and flags."""
_HW_INDEX, _COUNTERS = 1 << 17, 1 << 19
"""PERF_SAMPLE_BRANCH_*: enum perf_branch_sample_type in include/uapi/linux/perf_event.h."""
_U64 = struct.Struct("=Q")
_U32 = struct.Struct("=I")

PREFIX = (
    (bit.PERF_SAMPLE_IDENTIFIER, "Q", ("id",)),
    (bit.PERF_SAMPLE_IP, "Q", ("ip",)),
    (bit.PERF_SAMPLE_TID, "II", ("pid", "tid")),
    (bit.PERF_SAMPLE_TIME, "Q", ("time",)),
    (bit.PERF_SAMPLE_ADDR, "Q", ("addr",)),
    (bit.PERF_SAMPLE_ID, "Q", ("id",)),
    (bit.PERF_SAMPLE_STREAM_ID, "Q", ("stream_id",)),
    (bit.PERF_SAMPLE_CPU, "I4x", ("cpu",)),
    (bit.PERF_SAMPLE_PERIOD, "Q", ("period",)),
)

Part = Callable[[Buffer, int, int], tuple[Any, int]]
"""(data, offset, end of the record) -> (value, offset behind it)."""


def _room(offset: int, wanted: int, end: int) -> None:
    if wanted > end - offset:
        raise FormatError(
            "sample", f"offset {offset}", f"needs {wanted} bytes, but {end - offset} are left"
        )


def _words(data: Buffer, offset: int, end: int, count: int) -> tuple[tuple[int, ...], int]:
    _room(offset, 8 * count, end)
    return struct.unpack_from(f"={count}Q", data, offset), offset + 8 * count


def _word(data: Buffer, offset: int, end: int) -> tuple[int, int]:
    _room(offset, 8, end)
    return _U64.unpack_from(data, offset)[0], offset + 8


def _callchain(data: Buffer, offset: int, end: int) -> tuple[tuple[int, ...], int]:
    count, offset = _word(data, offset, end)
    return _words(data, offset, end, count)


def _raw(data: Buffer, offset: int, end: int) -> tuple[bytes, int]:
    _room(offset, 4, end)
    (size,) = _U32.unpack_from(data, offset)
    _room(offset + 4, size, end)
    following = offset + 4 + size
    return bytes(data[offset + 4 : following]), following


def _stack(data: Buffer, offset: int, end: int) -> tuple[bytes, int]:
    """Return the `dynamic` bytes that the kernel filled of a dump of `size`; drop the rest."""
    size, offset = _word(data, offset, end)
    if size == 0:
        return b"", offset
    _room(offset, size, end)
    dynamic, following = _word(data, offset + size, end)
    if dynamic > size:
        raise FormatError("sample", f"offset {offset}", f"{dynamic} bytes of a {size}-byte stack")
    return bytes(data[offset : offset + dynamic]), following


def _branches(branch_sample_type: int) -> Part:
    """A branch stack: its number of entries; the entries are skipped."""
    words = _BRANCH_WORDS + bool(branch_sample_type & _COUNTERS)
    has_index = bool(branch_sample_type & _HW_INDEX)

    def part(data: Buffer, offset: int, end: int) -> tuple[int, int]:
        count, offset = _word(data, offset, end)
        size = 8 * (count * words + has_index)
        _room(offset, size, end)
        return count, offset + size

    return part


def _aux(data: Buffer, offset: int, end: int) -> tuple[int, int]:
    size, offset = _word(data, offset, end)
    _room(offset, size, end)
    return size, offset + size


def _registers(mask: int) -> Part:
    count = mask.bit_count()

    def part(data: Buffer, offset: int, end: int) -> tuple[tuple[int, ...], int]:
        abi, offset = _word(data, offset, end)
        return _words(data, offset, end, count) if abi else ((), offset)

    return part


def _read(read_format: int) -> Part:
    times = read_bits.PERF_FORMAT_TOTAL_TIME_ENABLED | read_bits.PERF_FORMAT_TOTAL_TIME_RUNNING
    extra = read_bits.PERF_FORMAT_ID | read_bits.PERF_FORMAT_LOST
    head = 1 + (read_format & times).bit_count()
    member_words = 1 + (read_format & extra).bit_count()

    def single(data: Buffer, offset: int, end: int) -> tuple[tuple[int, ...], int]:
        return _words(data, offset, end, head + member_words - 1)

    def group(data: Buffer, offset: int, end: int) -> tuple[tuple[int, ...], int]:
        members, _ = _word(data, offset, end)
        return _words(data, offset, end, head + members * member_words)

    return group if read_format & read_bits.PERF_FORMAT_GROUP else single


class SampleLayout:
    """Decodes the samples of one event.

    Args:
        sample_type: `attr.sample_type`, bits of enum perf_event_sample_format.
        read_format: `attr.read_format`, for PERF_SAMPLE_READ.
        regs_user: `attr.sample_regs_user`, for PERF_SAMPLE_REGS_USER.
        regs_intr: `attr.sample_regs_intr`, for PERF_SAMPLE_REGS_INTR.
        branches: `attr.branch_sample_type`, for PERF_SAMPLE_BRANCH_STACK.

    Raises:
        NotSupportedError: for bits purebpf does not know.
    """

    def __init__(
        self,
        sample_type: int,
        *,
        read_format: int = 0,
        regs_user: int = 0,
        regs_intr: int = 0,
        branches: int = 0,
    ) -> None:
        unknown = sample_type & -bit.PERF_SAMPLE_MAX
        if unknown:
            problem = f"its samples have parts that only a newer Linux knows ({unknown:#x})"
            raise NotSupportedError("decoding samples", problem)
        weight = bit.PERF_SAMPLE_WEIGHT | bit.PERF_SAMPLE_WEIGHT_STRUCT
        variable: tuple[tuple[int, str, Part], ...] = (
            (bit.PERF_SAMPLE_READ, "values", _read(read_format)),
            (bit.PERF_SAMPLE_CALLCHAIN, "callchain", _callchain),
            (bit.PERF_SAMPLE_RAW, "raw", _raw),
            (bit.PERF_SAMPLE_BRANCH_STACK, "branches", _branches(branches)),
            (bit.PERF_SAMPLE_REGS_USER, "regs_user", _registers(regs_user)),
            (bit.PERF_SAMPLE_STACK_USER, "stack_user", _stack),
            (weight, "weight", _word),
            (bit.PERF_SAMPLE_DATA_SRC, "data_src", _word),
            (bit.PERF_SAMPLE_TRANSACTION, "transaction", _word),
            (bit.PERF_SAMPLE_REGS_INTR, "regs_intr", _registers(regs_intr)),
            (bit.PERF_SAMPLE_PHYS_ADDR, "phys_addr", _word),
            (bit.PERF_SAMPLE_CGROUP, "cgroup", _word),
            (bit.PERF_SAMPLE_DATA_PAGE_SIZE, "data_page_size", _word),
            (bit.PERF_SAMPLE_CODE_PAGE_SIZE, "code_page_size", _word),
            (bit.PERF_SAMPLE_AUX, "aux_size", _aux),
        )
        prefix = [(code, names) for mask, code, names in PREFIX if sample_type & mask]
        present = [(name, part) for mask, name, part in variable if sample_type & mask]
        self._prefix = struct.Struct("=" + "".join(code for code, _ in prefix))
        self._parts = tuple(part for _, part in present)
        self._defaults = tuple(Sample._field_defaults.values())
        column_names = ["misc", *(name for _, names in prefix for name in names)]
        column_names += [name for name, _ in present]
        # A row is (misc, prefix, parts, defaults); the getter puts it in the order of Sample.
        places = {name: len(column_names) + n for n, name in enumerate(Sample._field_defaults)}
        places |= {name: place for place, name in enumerate(column_names)}
        self._in_order = itemgetter(*(places[name] for name in Sample._fields))

    def decode(self, misc: int, data: Buffer, start: int, end: int) -> Sample:
        """The sample with body `data[start:end]`.

        Raises FormatError when the body is too short or too long for the layout.
        """
        _room(start, self._prefix.size, end)
        offset = start + self._prefix.size
        row = [misc, *self._prefix.unpack_from(data, start)]
        for part in self._parts:
            value, offset = part(data, offset, end)
            row.append(value)
        if offset != end:
            raise FormatError("sample", f"offset {offset}", f"{end - offset} bytes too many")
        row += self._defaults
        return Sample._make(self._in_order(row))
