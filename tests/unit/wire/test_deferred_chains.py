"""User call chains that the kernel records after the samples they belong to (Linux 6.19)."""

from __future__ import annotations

import io
import struct

import pytest

from purebpf.abi.perf import PERF_EVENT_ATTR
from purebpf.abi.perf import perf_callchain_context as context
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.observe.saved import perf_data_loader
from purebpf.results.model.profile import Profile
from purebpf.wire.perf_data_types import RecordedEvent
from purebpf.wire.perf_data_writer import PerfDataWriter
from purebpf.wire.perf_encode import MISC_KERNEL, MISC_USER, RecordEncoder
from purebpf.wire.perf_records import Other, Record, Sample

SAMPLED = (
    *(bit.PERF_SAMPLE_IP, bit.PERF_SAMPLE_TID, bit.PERF_SAMPLE_TIME),
    *(bit.PERF_SAMPLE_IDENTIFIER, bit.PERF_SAMPLE_CALLCHAIN),
)
DEFERRED = (1 << 64) - 640
KERNEL_ADDRESS = 0xFFFFFFFF81000010


def sample(time: int, cookie: int, mode: int = MISC_KERNEL, tid: int = 7) -> Sample:
    kernel = (context.PERF_CONTEXT_KERNEL, KERNEL_ADDRESS) if mode == MISC_KERNEL else ()
    chain = (*kernel, DEFERRED, cookie)
    ip = KERNEL_ADDRESS if mode == MISC_KERNEL else 0x401000
    return Sample(mode, ip=ip, pid=7, tid=tid, time=time, id=1, callchain=chain)


def deferred(time: int, cookie: int, *addresses: int, count: int | None = None) -> Other:
    """struct {header; u64 cookie; u64 nr; u64 ips[nr]; sample_id} of linux/perf_event.h."""
    count = len(addresses) if count is None else count
    body = struct.pack(f"=QQ{len(addresses)}Q", cookie, count, *addresses)
    return Other(22, MISC_USER, body, time=time, id=1)


def read(*records: Record) -> Profile:
    sample_type = sum(SAMPLED)
    attr = PERF_EVENT_ATTR.pack(
        size=PERF_EVENT_ATTR.size, sample_type=sample_type, sample_id_all=1, type=1
    )
    file = io.BytesIO()
    writer = PerfDataWriter(file, [RecordedEvent("cpu-clock", bytes(attr), (1,))])
    encoder = RecordEncoder(sample_type)
    for record in records:
        writer.write(encoder.encode(record))
    writer.end_round()
    writer.finish({})
    return perf_data_loader.of_bytes(file.getvalue(), "deferred.data").profile


def stacks(profile: Profile) -> list[tuple[list[int], list[int], str, int]]:
    """The user and kernel addresses, leaf first, how the stack is cut, and the weight."""
    return sorted(
        (
            [frame.address for frame in row.user or () if frame.address],
            [frame.address for frame in row.kernel or ()],
            row.marks.end.cut,
            row.weight,
        )
        for row in profile.rows()
    )


USER = (context.PERF_CONTEXT_USER, 0x401010, 0x402010)


@pytest.mark.parametrize("chain", [USER, USER[1:]], ids=["marked", "without a mark"])
def test_a_later_chain_completes_all_samples_of_its_number(chain: tuple[int, ...]) -> None:
    """Both samples were taken in one system call, so they have one user stack."""
    profile = read(
        *(sample(10, 5), sample(11, 5), deferred(12, 5, *chain)),
        *(sample(13, 6, MISC_USER), deferred(14, 6, context.PERF_CONTEXT_USER, 0x401000)),
    )
    assert [(user, len(kernel), weight) for user, kernel, _, weight in stacks(profile)] == [
        ([0x401000], 0, 1),
        ([0x401010, 0x402010], 1, 2),
    ]
    assert "chains_missing" not in {cause.name for cause in profile.loss.causes}


def test_chains_of_interleaved_tasks_go_to_their_own_samples() -> None:
    profile = read(
        *(sample(10, 5), sample(11, 1 << 48 | 5, tid=8)),
        *(deferred(12, 1 << 48 | 5, *USER[:1], 0x408000), deferred(13, 5, *USER)),
    )
    found = {tuple(user) for user, *_ in stacks(profile)}
    assert found == {(0x401010, 0x402010), (0x408000,)}


@pytest.mark.parametrize(
    "later",
    [
        [],
        [deferred(12, 99, *USER)],
        [deferred(12, 5, *USER, count=1 << 60)],
        [Other(22, MISC_USER, b"\5\0\0\0\0\0\0\0", time=12, id=1)],
    ],
    ids=["none", "another's", "longer than its record", "short"],
)
def test_samples_without_their_chain_are_cut_and_counted(later: list[Record]) -> None:
    profile = read(sample(10, 5, MISC_USER), *later)
    assert [(user, cut) for user, _, cut, _ in stacks(profile)] == [([0x401000], "copy_lost")]
    assert {cause.name: cause.lost for cause in profile.loss.causes}["chains_missing"] == 1
