"""PERF_RECORD_SAMPLE: each bit of sample_type takes its part of the body, in the kernel's order."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.abi.perf import perf_event_read_format as read
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.errors import FormatError, NotSupportedError
from purebpf.wire.perf_records import Sample
from purebpf.wire.perf_samples import SampleLayout

# In the order of perf_output_sample: the bit, its bytes, the fields it sets.
PARTS = [
    (bit.PERF_SAMPLE_IDENTIFIER, struct.pack("=Q", 77), {"id": 77}),
    (bit.PERF_SAMPLE_IP, struct.pack("=Q", 0x401000), {"ip": 0x401000}),
    (bit.PERF_SAMPLE_TID, struct.pack("=II", 41, 42), {"pid": 41, "tid": 42}),
    (bit.PERF_SAMPLE_TIME, struct.pack("=Q", 7_000), {"time": 7_000}),
    (bit.PERF_SAMPLE_ADDR, struct.pack("=Q", 0xDEAD), {"addr": 0xDEAD}),
    (bit.PERF_SAMPLE_ID, struct.pack("=Q", 77), {"id": 77}),
    (bit.PERF_SAMPLE_STREAM_ID, struct.pack("=Q", 78), {"stream_id": 78}),
    (bit.PERF_SAMPLE_CPU, struct.pack("=II", 3, 0xFFFFFFFF), {"cpu": 3}),
    (bit.PERF_SAMPLE_PERIOD, struct.pack("=Q", 10_000), {"period": 10_000}),
    (bit.PERF_SAMPLE_READ, struct.pack("=QQ", 5, 77), {"values": (5, 77)}),
    (bit.PERF_SAMPLE_CALLCHAIN, struct.pack("=4Q", 3, 1, 2, 3), {"callchain": (1, 2, 3)}),
    (bit.PERF_SAMPLE_RAW, struct.pack("=I12s", 12, b"hello"), {"raw": b"hello" + bytes(7)}),
    (bit.PERF_SAMPLE_REGS_USER, struct.pack("=3Q", 2, 8, 9), {"regs_user": (8, 9)}),
    (bit.PERF_SAMPLE_STACK_USER, struct.pack("=Q16sQ", 16, b"top", 3), {"stack_user": b"top"}),
    (bit.PERF_SAMPLE_WEIGHT, struct.pack("=Q", 11), {"weight": 11}),
    (bit.PERF_SAMPLE_DATA_SRC, struct.pack("=Q", 12), {"data_src": 12}),
    (bit.PERF_SAMPLE_TRANSACTION, struct.pack("=Q", 13), {"transaction": 13}),
    (bit.PERF_SAMPLE_REGS_INTR, struct.pack("=QQ", 2, 14), {"regs_intr": (14,)}),
    (bit.PERF_SAMPLE_PHYS_ADDR, struct.pack("=Q", 15), {"phys_addr": 15}),
    (bit.PERF_SAMPLE_CGROUP, struct.pack("=Q", 16), {"cgroup": 16}),
    (bit.PERF_SAMPLE_DATA_PAGE_SIZE, struct.pack("=Q", 4096), {"data_page_size": 4096}),
    (bit.PERF_SAMPLE_CODE_PAGE_SIZE, struct.pack("=Q", 8192), {"code_page_size": 8192}),
]


def layout(sample_type: int) -> SampleLayout:
    return SampleLayout(
        sample_type, read_format=read.PERF_FORMAT_ID, regs_user=0b101, regs_intr=0b10
    )


@given(chosen=st.sets(st.sampled_from(range(len(PARTS)))))
def test_any_choice_of_parts(chosen: set[int]) -> None:
    parts = [PARTS[number] for number in sorted(chosen)]
    body = b"".join(data for _, data, _ in parts)
    expected: dict[str, object] = {}
    for _, _, fields in parts:
        expected |= fields
    found = layout(sum(mask for mask, _, _ in parts)).decode(2, b"head" + body, 4, 4 + len(body))
    assert found == Sample(2, **expected)


def test_a_cut_body_and_a_long_one_are_refused() -> None:
    body = b"".join(data for _, data, _ in PARTS)
    everything = layout(sum(mask for mask, _, _ in PARTS))
    for end in range(0, len(body), 8):
        with pytest.raises(FormatError):
            everything.decode(0, body, 0, end)
    with pytest.raises(FormatError, match="8 bytes too many"):
        everything.decode(0, body + bytes(8), 0, len(body) + 8)


def test_lengths_beyond_the_record_are_refused() -> None:
    for mask, body in [
        (bit.PERF_SAMPLE_CALLCHAIN, struct.pack("=QQ", 1 << 61, 1)),
        (bit.PERF_SAMPLE_RAW, struct.pack("=I4x", 5)),
        (bit.PERF_SAMPLE_STACK_USER, struct.pack("=QQ", 16, 1)),
        (bit.PERF_SAMPLE_STACK_USER, struct.pack("=QQQ", 8, 1, 9)),
    ]:
        with pytest.raises(FormatError):
            layout(mask).decode(0, body, 0, len(body))


def test_a_kernel_thread_has_no_registers_and_no_stack() -> None:
    mask = bit.PERF_SAMPLE_REGS_USER | bit.PERF_SAMPLE_STACK_USER
    found = layout(mask).decode(1, bytes(16), 0, 16)
    assert (found.regs_user, found.stack_user) == ((), b"")


def test_a_group_is_read_member_by_member() -> None:
    form = (
        read.PERF_FORMAT_GROUP
        | read.PERF_FORMAT_ID
        | read.PERF_FORMAT_LOST
        | read.PERF_FORMAT_TOTAL_TIME_ENABLED
        | read.PERF_FORMAT_TOTAL_TIME_RUNNING
    )
    words = (2, 100, 90, 5, 77, 0, 6, 78, 1)
    body = struct.pack("=9Q", *words)
    found = SampleLayout(bit.PERF_SAMPLE_READ, read_format=form).decode(0, body, 0, len(body))
    assert found.values == words


def test_parts_of_a_newer_kernel_are_refused_at_once() -> None:
    with pytest.raises(NotSupportedError, match=f"only a newer Linux knows .{1 << 40:#x}"):
        SampleLayout(1 << 40)


@pytest.mark.parametrize("has_index", [False, True])
@pytest.mark.parametrize("has_counters", [False, True])
@pytest.mark.parametrize("count", [0, 1, 32])
def test_branches_and_parts_of_a_trace_are_skipped(
    count: int, has_counters: bool, has_index: bool
) -> None:
    """perf_output_sample() in kernel/events/core.c: the counters follow all entries."""
    mask = bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_BRANCH_STACK | bit.PERF_SAMPLE_WEIGHT
    words = [0x1234, count, *([77] * has_index), *range(count * (3 + has_counters)), 5, 16, 1, 2]
    body = struct.pack(f"={len(words)}Q", *words)
    layout = SampleLayout(mask | bit.PERF_SAMPLE_AUX, branches=has_index << 17 | has_counters << 19)
    found = layout.decode(0, body, 0, len(body))
    assert (found.ip, found.branches, found.weight, found.aux_size) == (0x1234, count, 5, 16)
    with pytest.raises(FormatError):
        layout.decode(0, body, 0, len(body) - 8)
