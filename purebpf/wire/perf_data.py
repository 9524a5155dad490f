"""perf.data: the parts of the file format that its writer and its reader share.

A header with two tables and a bitmap, the attributes of the events, their ids, the records as the
kernel gave them, and behind those the features: facts about the machine and the run. Everything
is in the byte order of the machine that wrote it. The format is described in
tools/perf/Documentation/perf.data-file-format.txt of the Linux source, its version 2 here.
"""

from __future__ import annotations

import struct

from purebpf.abi.perf import PERF_EVENT_ATTR, perf_event_sample_format, perf_sw_ids, perf_type_id
from purebpf.enums import IntEnum
from purebpf.tuples import NamedTuple
from purebpf.wire import formats

__all__ = [
    "HEADER",
    "KERNEL",
    "MAGIC",
    "OLD_MAGIC",
    "SECTION",
    "Feature",
    "RecordedEvent",
    "Section",
    "UserRecord",
    "shortest_attr",
]

MAGIC = b"PERFILE2"

OLD_MAGIC = b"PERFFILE"
"""The magic of the first versions, with the same layout, which perf(1) still reads: `__perf_magic1`
of tools/perf/util/header.c."""

KERNEL = "[kernel.kallsyms]"
"""What perf calls the kernel's own code."""

HEADER = struct.Struct("=" + formats.PERF_FILE_HEADER)
"""magic, its own size, the size of an entry of the table of attributes, the sections of that
table, of the data and of the event types (not used any more), and a bitmap of the features."""

SECTION = struct.Struct("=" + formats.PERF_FILE_SECTION)
"""struct perf_file_section: offset and size in bytes."""

_SIZES = (112, 120, 128, 136)
"""PERF_ATTR_SIZE_VER5 to VER8: what perf(1) from Linux 4.1 on reads."""


class Section(NamedTuple):
    """A part of the file, in bytes."""

    offset: int
    size: int


class Feature(IntEnum):
    """HEADER_*: the number of a feature, which is its bit in the header."""

    TRACING_DATA = 1
    BUILD_ID = 2
    HOSTNAME = 3
    OSRELEASE = 4
    VERSION = 5
    ARCH = 6
    NRCPUS = 7
    CPUDESC = 8
    CPUID = 9
    TOTAL_MEM = 10
    CMDLINE = 11
    EVENT_DESC = 12
    CPU_TOPOLOGY = 13
    NUMA_TOPOLOGY = 14
    BRANCH_STACK = 15
    PMU_MAPPINGS = 16
    GROUP_DESC = 17
    AUXTRACE = 18
    STAT = 19
    CACHE = 20
    SAMPLE_TIME = 21
    MEM_TOPOLOGY = 22
    CLOCKID = 23
    DIR_FORMAT = 24
    BPF_PROG_INFO = 25
    BPF_BTF = 26
    COMPRESSED = 27
    CPU_PMU_CAPS = 28
    CLOCK_DATA = 29
    HYBRID_TOPOLOGY = 30
    PMU_CAPS = 31


class UserRecord(IntEnum):
    """PERF_RECORD_*: records of the tool, not of the kernel. They have no trailer."""

    FIRST = 64
    HEADER_ATTR = 64
    HEADER_EVENT_TYPE = 65
    HEADER_TRACING_DATA = 66
    HEADER_BUILD_ID = 67
    FINISHED_ROUND = 68
    AUXTRACE = 71
    EVENT_UPDATE = 78
    HEADER_FEATURE = 80
    COMPRESSED = 81
    COMPRESSED2 = 83


class RecordedEvent(NamedTuple):
    """One event of a file.

    `attr` is its struct perf_event_attr, `ids` the numbers that its records carry: one for each
    descriptor that it was opened as. A file with one event need not have any.
    """

    name: str
    attr: bytes
    ids: tuple[int, ...] = ()

    @property
    def sample_type(self) -> int:
        """The parts of its samples: bits of enum perf_event_sample_format."""
        return int(PERF_EVENT_ATTR.unpack(self.attr)["sample_type"])

    @property
    def has_program_records(self) -> bool:
        """True if a BPF program wrote its records, as `purebpf record --program` lets it do.

        Profiles that purebpf or perf write as such an event have periods.
        """
        attr = PERF_EVENT_ATTR.unpack(self.attr)
        kind = perf_type_id.PERF_TYPE_SOFTWARE, perf_sw_ids.PERF_COUNT_SW_BPF_OUTPUT
        period = perf_event_sample_format.PERF_SAMPLE_PERIOD
        return (attr["type"], attr["config"]) == kind and not self.sample_type & period

    @property
    def period(self) -> int:
        """The period of each of its samples; 0 where that differs, and the samples say it."""
        fields = PERF_EVENT_ATTR.unpack(self.attr)
        return 0 if fields["freq"] else int(fields["sample_period"])


def shortest_attr(attrs: list[bytes]) -> int:
    """Return the least size that lets the file hold every attr, in bytes.

    perf(1) refuses a file with attributes longer than its own, so trailing zeros are dropped.
    """
    used = max((len(attr.rstrip(b"\0")) for attr in attrs), default=0)
    return next((size for size in _SIZES if used <= size), -(-used // 8) * 8)
