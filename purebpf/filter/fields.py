"""The vocabulary of filters: the fields of a sample, their constants, the option for each.

Names and constants are the same as in `perf record --filter`. The defects of perf 6.12 are not
repeated: `fwd` and `peer` are bits 5 and 6 of `mem_snoop`, `mem_lvl == na` means "not available",
and `weight` is there with PERF_SAMPLE_WEIGHT and PERF_SAMPLE_WEIGHT_STRUCT alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.tuples import NamedTuple

__all__ = ["CONSTANTS", "FIELDS", "Field", "Kind", "Slice", "constant"]


class Kind(Enum):
    """The kinds of values that fields are compared with."""

    NUMBER = "a number"
    USER = "a user name or number"
    GROUP = "a group name or number"
    CGROUP = "a cgroup path"
    COMM = "a thread name"
    SYMBOL = "a function name"


class Slice(NamedTuple):
    """`width` bits from bit `shift` of a word, put at bit `at` of the field."""

    shift: int
    width: int
    at: int = 0


class Field(NamedTuple):
    """A field of a sample.

    Attributes:
        name: as it is written; synonyms have separate entries.
        kind: the kind of values that it is compared with.
        bits: enum perf_event_sample_format; the sample needs one of them. 0: always there.
        option: the option of purebpf.tools.record and of perf record that adds it; "" when every
            sample has it.
        word: the word that holds it: a path of struct perf_sample_data ("tid_entry.pid"), or "" for
            fields that only helpers and symbols provide.
        size: of the word, in bytes.
        slices: the parts of the word that make the field; () for all of it.
    """

    name: str
    kind: Kind = Kind.NUMBER
    bits: int = 0
    option: str = ""
    word: str = ""
    size: int = 8
    slices: tuple[Slice, ...] = ()


_WEIGHT = bit.PERF_SAMPLE_WEIGHT | bit.PERF_SAMPLE_WEIGHT_STRUCT
_ID = bit.PERF_SAMPLE_ID | bit.PERF_SAMPLE_IDENTIFIER


def _weight(name: str, *slices: Slice) -> Field:
    bits = bit.PERF_SAMPLE_WEIGHT_STRUCT if slices else _WEIGHT
    return Field(name, bits=bits, option="-W", word="weight.full", slices=slices)


def _source(name: str, *slices: Slice) -> Field:
    bits = bit.PERF_SAMPLE_DATA_SRC
    return Field(name, bits=bits, option="-d", word="data_src.val", slices=slices)


_TABLE = (
    Field("ip", bits=bit.PERF_SAMPLE_IP, word="ip"),
    Field("tid", bits=bit.PERF_SAMPLE_TID, word="tid_entry.tid", size=4),
    Field("pid", bits=bit.PERF_SAMPLE_TID, word="tid_entry.pid", size=4),
    Field("time", bits=bit.PERF_SAMPLE_TIME, option="-T", word="time"),
    Field("addr", bits=bit.PERF_SAMPLE_ADDR, option="-d", word="addr"),
    Field("id", bits=_ID, option="--sample-identifier", word="id"),
    Field("cpu", bits=bit.PERF_SAMPLE_CPU, option="--sample-cpu", word="cpu_entry.cpu", size=4),
    Field("period", bits=bit.PERF_SAMPLE_PERIOD, word="period"),
    _weight("weight"),
    _weight("weight1", Slice(0, 32)),
    _weight("weight2", Slice(32, 16)),
    _weight("ins_lat", Slice(32, 16)),
    _weight("weight3", Slice(48, 16)),
    _weight("p_stage_cyc", Slice(48, 16)),
    _weight("retire_lat", Slice(48, 16)),
    _source("mem_op", Slice(0, 5)),
    _source("mem_lvl", Slice(33, 4)),
    _source("mem_lvlnum", Slice(33, 4)),
    _source("mem_snoop", Slice(19, 5), Slice(38, 2, at=5)),
    _source("mem_remote", Slice(37, 1)),
    _source("mem_lock", Slice(24, 2)),
    _source("mem_dtlb", Slice(26, 7)),
    _source("mem_blk", Slice(40, 3)),
    _source("mem_hops", Slice(43, 3)),
    Field("txn", bits=bit.PERF_SAMPLE_TRANSACTION, option="--transaction", word="txn"),
    Field("phys_addr", bits=bit.PERF_SAMPLE_PHYS_ADDR, option="--phys-data", word="phys_addr"),
    Field("cgroup", Kind.CGROUP, bit.PERF_SAMPLE_CGROUP, "--all-cgroups", "cgroup"),
    Field(
        "data_pgsz",
        bits=bit.PERF_SAMPLE_DATA_PAGE_SIZE,
        option="--data-page-size",
        word="data_page_size",
    ),
    Field(
        "code_pgsz",
        bits=bit.PERF_SAMPLE_CODE_PAGE_SIZE,
        option="--code-page-size",
        word="code_page_size",
    ),
    Field("uid", Kind.USER),
    Field("gid", Kind.GROUP),
    Field("comm", Kind.COMM),
    Field("symbol", Kind.SYMBOL, bit.PERF_SAMPLE_IP, "", "ip"),
)

FIELDS: Mapping[str, Field] = MappingProxyType({field.name: field for field in _TABLE})
"""Every field, by the name that a filter uses."""

_LEVELS = MappingProxyType(
    {
        "l1": 1,
        "l2": 2,
        "l3": 3,
        "l4": 4,
        "l2_mhb": 5,
        "msc": 6,
        "uncached": 8,
        "cxl": 9,
        "io": 0xA,
        "any_cache": 0xB,
        "lfb": 0xC,
        "ram": 0xD,
        "pmem": 0xE,
        "na": 0xF,
    }
)

CONSTANTS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "mem_op": {"na": 1, "load": 2, "store": 4, "pfetch": 8, "exec": 0x10},
        "mem_lvl": _LEVELS,
        "mem_lvlnum": _LEVELS,
        "mem_snoop": {
            "na": 1,
            "none": 2,
            "hit": 4,
            "miss": 8,
            "hitm": 0x10,
            "fwd": 0x20,
            "peer": 0x40,
        },
        "mem_remote": {"remote": 1},
        "mem_lock": {"na": 1, "locked": 2},
        "mem_dtlb": {
            "na": 1,
            "l1_hit": 0xA,
            "l1_miss": 0xC,
            "l2_hit": 0x12,
            "l2_miss": 0x14,
            "any_hit": 2,
            "any_miss": 4,
            "walk": 0x20,
            "os": 0x40,
            "fault": 0x40,
        },
        "mem_blk": {"na": 1, "by_data": 2, "by_addr": 4},
        "mem_hops": {"hops0": 1, "hops1": 2, "hops2": 3, "hops3": 4},
    }
)
"""The names of values, field by field (union perf_mem_data_src).

The masks are made to be tested with `&`; `mem_lvl` and `mem_hops` are numbers.
"""

_ANYWHERE = {
    name: value for table in reversed(list(CONSTANTS.values())) for name, value in table.items()
}


def constant(field: str, name: str) -> int | None:
    """The value of a constant for a field, None if there is none of that name.

    As in perf, a constant of another field is accepted; the field's own come first.
    """
    return CONSTANTS.get(field, {}).get(name, _ANYWHERE.get(name))
