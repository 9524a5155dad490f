"""Waits as a perf.data file, for perf report and perf script: event `offcpu-time`, in nanoseconds.

Each wait at or above the threshold is a sample at the time it ended, with its length as period. The
sums of the others, and what was not over, come last: samples dated at the end of the run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.abi.perf import perf_sw_ids, perf_type_id
from purebpf.kernel import existing, machine
from purebpf.kernel.perf_attr import packed
from purebpf.kernel.perf_names import Event
from purebpf.wire.perf_data import Feature, RecordedEvent
from purebpf.wire.perf_data_features import pack_numbers
from purebpf.wire.perf_data_writer import PerfDataWriter
from purebpf.wire.perf_encode import MISC_KERNEL, MISC_USER, RecordEncoder
from purebpf.wire.perf_records import Mmap, Mmap2, Record, Sample

if TYPE_CHECKING:
    from purebpf.kernel.sideband import Change
    from purebpf.report import Profile, Row
    from purebpf.wire.perf_data_writer import Target

__all__ = ["before", "write"]

_CONTEXT_KERNEL = (1 << 64) - 128  # enum perf_callchain_context
_CONTEXT_USER = (1 << 64) - 512
_MONOTONIC = 1

_SAMPLE_TYPE = (
    bit.PERF_SAMPLE_IP
    | bit.PERF_SAMPLE_TID
    | bit.PERF_SAMPLE_TIME
    | bit.PERF_SAMPLE_CPU
    | bit.PERF_SAMPLE_PERIOD
    | bit.PERF_SAMPLE_CALLCHAIN
)


def before(pids: Iterable[int] = ()) -> list[Record]:
    """What was there before the tracing began: the kernel's mappings, and those of processes."""
    try:
        with open("/proc/kallsyms", "rb") as file:
            kallsyms = file.read()
    except OSError:  # then the kernel's frames have no names
        kallsyms = b""
    found: list[Record] = [*existing.kernel_mappings(kallsyms)]
    return [*found, *existing.processes(pids or existing.running())]


def write(file: Target, profile: Profile, records: Iterable[Record | Change]) -> None:
    """Write the whole file.

    Args:
        file: at its start, and empty.
        profile: what was found, in nanoseconds, long waits one by one.
        records: what was there before, and what happened to processes meanwhile.

    Raises:
        KernelError: it could not be written.
    """
    encoder = RecordEncoder(_SAMPLE_TYPE)
    writer = PerfDataWriter(file, [RecordedEvent("offcpu-time", _attr())])
    build_ids = machine.BuildIds()
    for record in records:
        if isinstance(record, Mmap | Mmap2):
            build_ids.add(record)
        writer.write(encoder.encode(record))
    for sample in _samples(profile):
        writer.write(encoder.encode(sample))
    features = machine.features([sys.executable, *sys.argv])
    features[Feature.BUILD_ID] = build_ids.pack()
    features[Feature.CLOCKID] = pack_numbers(_MONOTONIC)
    writer.finish(features)


def _attr() -> bytes:
    event = Event(
        "offcpu-time", perf_type_id.PERF_TYPE_SOFTWARE, perf_sw_ids.PERF_COUNT_SW_BPF_OUTPUT
    )
    fields = {
        "sample_type": _SAMPLE_TYPE,
        "sample_period": 1,
        "sample_id_all": 1,
        "comm": 1,
        "mmap": 1,
        "mmap2": 1,
        "task": 1,
        "use_clockid": 1,
        "clockid": _MONOTONIC,
    }
    return packed(event, fields, lost=False)


def _samples(profile: Profile) -> Iterator[Sample]:
    end_ns = profile.about["ended_ns"]
    assert isinstance(end_ns, int)
    rows = profile.rows()
    for row in sorted(rows, key=lambda row: row.marks.ended_ns or end_ns):
        yield _sample(row, end_ns)


def _sample(row: Row, end_ns: int) -> Sample:
    kernel: list[int] = [entry.address for entry in row.kernel or ()]
    user: list[int] = [entry.address for entry in row.user or ()]
    chain: list[int] = []
    if kernel:
        chain += [_CONTEXT_KERNEL, *kernel]
    if user:
        chain += [_CONTEXT_USER, *user]
    return Sample(
        MISC_KERNEL if kernel else MISC_USER,
        ip=(kernel or user or [0])[0],
        pid=row.labels.pid,
        tid=row.labels.tid,
        time=row.marks.ended_ns or end_ns,
        cpu=max(row.labels.cpu, 0),
        period=row.weight,
        callchain=tuple(chain),
    )
