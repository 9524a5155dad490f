"""What is encoded decodes to itself, in every layout."""

from __future__ import annotations

from functools import reduce
from operator import or_

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.errors import NotSupportedError
from purebpf.wire.perf_encode import HOST_KERNEL, MISC_KERNEL, MISC_USER, RecordEncoder
from purebpf.wire.perf_format import RecordFormat
from purebpf.wire.perf_records import (
    Comm,
    Exit,
    Fork,
    Lost,
    LostSamples,
    Mmap,
    Mmap2,
    Other,
    Record,
    Sample,
    Switch,
)
from purebpf.wire.perf_ring import HEADER

u32 = st.integers(0, (1 << 32) - 1)
u64 = st.integers(0, (1 << 64) - 1)
names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
place = {"time": u64, "cpu": st.integers(0, 4095), "id": u64}

PARTS = {
    bit.PERF_SAMPLE_IP: {"ip": u64},
    bit.PERF_SAMPLE_TID: {"pid": u32, "tid": u32},
    bit.PERF_SAMPLE_TIME: {"time": u64},
    bit.PERF_SAMPLE_ADDR: {"addr": u64},
    bit.PERF_SAMPLE_ID: {"id": u64},
    bit.PERF_SAMPLE_STREAM_ID: {"stream_id": u64},
    bit.PERF_SAMPLE_CPU: {"cpu": st.integers(0, 4095)},
    bit.PERF_SAMPLE_PERIOD: {"period": u64},
    bit.PERF_SAMPLE_CALLCHAIN: {"callchain": st.lists(u64, max_size=5).map(tuple)},
    bit.PERF_SAMPLE_RAW: {"raw": st.sampled_from([b"four", b"twelve bytes"])},
    bit.PERF_SAMPLE_WEIGHT: {"weight": u64},
    bit.PERF_SAMPLE_DATA_SRC: {"data_src": u64},
    bit.PERF_SAMPLE_TRANSACTION: {"transaction": u64},
    bit.PERF_SAMPLE_PHYS_ADDR: {"phys_addr": u64},
    bit.PERF_SAMPLE_CGROUP: {"cgroup": u64},
    bit.PERF_SAMPLE_DATA_PAGE_SIZE: {"data_page_size": u64},
    bit.PERF_SAMPLE_CODE_PAGE_SIZE: {"code_page_size": u64},
}

records = st.one_of(
    st.builds(Mmap, u32, u32, u64, u64, u64, names, st.booleans(), **place),
    st.builds(
        Mmap2, u32, u32, u64, u64, u64, names, u32, u32, u64, st.just(b""), u32, u32, **place
    ),
    st.builds(
        Mmap2,
        *(u32, u32, u64, u64, u64, names),
        *(st.just(0), st.just(0), st.just(0), st.binary(min_size=1, max_size=20), u32, u32),
        **place,
    ),
    st.builds(Comm, u32, u32, names, st.booleans(), **place),
    st.builds(Fork, u32, u32, u32, u32, **place),
    st.builds(Exit, u32, u32, u32, u32, **place),
    st.builds(Lost, u64, u64, **place),
    st.builds(LostSamples, u64, by_bpf=st.booleans(), **place),
    st.builds(Other, st.just(19), st.just(3), st.sampled_from([b"", b"8 bytes."]), **place),
)


@given(record=records)
def test_an_encoded_record_is_decoded_to_the_same(record: Record) -> None:
    where = bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_TIME | bit.PERF_SAMPLE_CPU
    where |= bit.PERF_SAMPLE_IDENTIFIER
    data = RecordEncoder(where).encode(record)
    assert list(RecordFormat(where, sample_id_all=True, build_id=True).iter_decode(data)) == [
        record
    ]


@given(data=st.data(), chosen=st.sets(st.sampled_from(sorted(PARTS))))
def test_samples_survive_in_every_layout(data: st.DataObject, chosen: set[int]) -> None:
    sample_type = reduce(or_, chosen, 0)
    fields = {name: data.draw(values) for part in chosen for name, values in PARTS[part].items()}
    sample = Sample(MISC_USER, **fields)
    encoded = RecordEncoder(sample_type).encode(sample)
    assert list(RecordFormat(sample_type, sample_id_all=True).iter_decode(encoded)) == [sample]


@given(
    registers=st.one_of(st.just(()), st.tuples(u64, u64, u64)),
    stack=st.binary(max_size=64),
    cgroup=u64,
)
def test_copied_stacks_survive(registers: tuple[int, ...], stack: bytes, cgroup: int) -> None:
    sample_type = bit.PERF_SAMPLE_REGS_USER | bit.PERF_SAMPLE_STACK_USER | bit.PERF_SAMPLE_CGROUP
    sample = Sample(MISC_USER, regs_user=registers, stack_user=stack, cgroup=cgroup)
    encoded = RecordEncoder(sample_type).encode(sample)
    form = RecordFormat(sample_type, sample_id_all=True, sample_regs_user=0b1011)
    assert list(form.iter_decode(encoded)) == [sample]


def test_a_payload_is_padded_as_the_kernel_does() -> None:
    encoded = RecordEncoder(bit.PERF_SAMPLE_RAW).encode(Sample(0, raw=b"8 bytes."))
    (found,) = RecordFormat(bit.PERF_SAMPLE_RAW).iter_decode(encoded)
    assert isinstance(found, Sample)
    assert found.raw == b"8 bytes." + bytes(4)


def test_mappings_have_the_mode_of_their_side() -> None:
    encoder = RecordEncoder(0)
    for pid, mode in ((HOST_KERNEL, MISC_KERNEL), (1, MISC_USER)):
        _, misc, _ = HEADER.unpack_from(encoder.encode(Mmap(pid, 0, 1, 2, 3, "x", False)))
        assert misc == mode


def test_what_cannot_be_encoded_says_so() -> None:
    with pytest.raises(NotSupportedError, match="unsupported sample_type bits 0x10"):
        RecordEncoder(bit.PERF_SAMPLE_READ)
    with pytest.raises(NotSupportedError, match="Switch"):
        RecordEncoder(0).encode(Switch(True, False, 0, 0))
    with pytest.raises(ValueError, match="the maximum of 65528"):
        RecordEncoder(bit.PERF_SAMPLE_RAW).encode(Sample(0, raw=bytes(1 << 16)))
