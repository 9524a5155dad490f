"""Files of perf.data with one record of every kind: where the fuzzers begin."""

from __future__ import annotations

import io
from collections.abc import Iterator

from purebpf.abi.perf import PERF_EVENT_ATTR
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.results.build.loaded_code import LoadedRange, pack_ksymbol
from purebpf.wire import perf_data_features as features
from purebpf.wire import perf_records
from purebpf.wire.perf_data import Feature, RecordedEvent
from purebpf.wire.perf_data_writer import PerfDataWriter
from purebpf.wire.perf_encode import HOST_KERNEL, RecordEncoder

__all__ = ["files", "records"]


def files() -> Iterator[bytes]:
    """A file for each of some sample types, with one record of every kind."""
    sampled = bit.PERF_SAMPLE_IDENTIFIER | bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_TID
    timed = sampled | bit.PERF_SAMPLE_TIME | bit.PERF_SAMPLE_CPU | bit.PERF_SAMPLE_PERIOD
    rich = timed | bit.PERF_SAMPLE_CALLCHAIN | bit.PERF_SAMPLE_RAW | bit.PERF_SAMPLE_CGROUP
    for first, second in ((sampled, sampled), (timed, rich), (rich, timed)):
        types = {11: first, 21: second}
        events = [
            RecordedEvent(f"event-{number}", _attr(sample_type), (number,))
            for number, sample_type in types.items()
        ]
        file = io.BytesIO()
        writer = PerfDataWriter(file, events)
        encoders = {number: RecordEncoder(each) for number, each in types.items()}
        for record in _RECORDS:
            writer.write(encoders[record.id or 11].encode(record))
            writer.end_round()
        writer.finish(
            {
                Feature.HOSTNAME: features.pack_string("host"),
                Feature.CMDLINE: features.pack_strings(["record", "-g"]),
                Feature.NRCPUS: features.pack_cpus(4, 2),
                Feature.BUILD_ID: features.pack_build_ids([features.BuildId("/bin/sh", bytes(20))]),
            }
        )
        yield file.getvalue()


def records(sample_type: int) -> Iterator[bytes]:
    """A ring with one record of every kind, then each record by itself."""
    encode = RecordEncoder(sample_type).encode
    each = [encode(record) for record in _RECORDS]
    yield b"".join(each)
    yield from each


def _attr(sample_type: int) -> bytes:
    size = PERF_EVENT_ATTR.size
    return bytes(PERF_EVENT_ATTR.pack(size=size, sample_type=sample_type, sample_id_all=1, type=1))


_RECORDS = (
    perf_records.Mmap(HOST_KERNEL, 0, 1 << 63, 1 << 20, 0, "[kernel.kallsyms]_text", False),
    perf_records.Mmap2(
        HOST_KERNEL, 0, 1 << 63, 1 << 20, 0, "[kernel.kallsyms]_text", 0, 0, 0, bytes(20), 5, 2
    ),
    perf_records.Mmap(HOST_KERNEL, 0, (1 << 64) - (1 << 30), 1 << 20, 0, "[xfs]", False),
    pack_ksymbol(LoadedRange((1 << 64) - (1 << 20), (1 << 64) - 16, "bpf_prog_f", "[bpf]")),
    perf_records.Comm(7, 7, "sh", True),
    perf_records.Mmap2(7, 7, 0x1000, 0x2000, 0, "/bin/sh", 8, 1, 99, b"", 5, 2),
    perf_records.Mmap2(7, 7, 0x9000, 0x2000, 0, "/lib/x", 0, 0, 0, bytes(20), 5, 2),
    perf_records.Fork(8, 7, 8, 7, 40),
    perf_records.Sample(2, ip=0x1234, pid=7, tid=7, time=50, id=11, cpu=0, period=3),
    perf_records.Sample(
        2, ip=0x9234, pid=8, tid=8, time=45, id=21, cpu=1, callchain=(1, 2), raw=b"abcd"
    ),
    perf_records.Exit(8, 7, 8, 7, 60),
    perf_records.Lost(11, 3),
    perf_records.LostSamples(3, by_bpf=True),
)
