"""What perf.data files hold."""

from __future__ import annotations

from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_records import Mmap2


def mapped_paths(data: bytes) -> set[str]:
    """The files that processes map by the records of a file."""
    file = PerfData(lambda at, size: data[at : at + size], len(data))
    records = [placed.record for placed in file.records()]
    return {record.filename for record in records if isinstance(record, Mmap2)}
