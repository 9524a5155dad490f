"""struct perf_event_attr: from names and numbers to bytes, and back to how its records look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from purebpf.abi.perf import PERF_EVENT_ATTR, perf_event_read_format
from purebpf.loader.perf.perf_names import Event

if TYPE_CHECKING:
    from purebpf.wire.perf_format import RecordFormat

__all__ = ["pack_attr", "rate", "record_format"]

_TIMES_AND_ID = (
    perf_event_read_format.PERF_FORMAT_TOTAL_TIME_ENABLED
    | perf_event_read_format.PERF_FORMAT_TOTAL_TIME_RUNNING
    | perf_event_read_format.PERF_FORMAT_ID
)

_SPELT = {"cgroup_records": "cgroup"}
"""Fields with a name that an option of `PerfEvent.open` has taken."""


def pack_attr(event: Event, fields: Mapping[str, int], *, lost: bool) -> bytes:
    """The attr that opens `event` with `fields` set; `lost`: its readings count lost records.

    Raises:
        TypeError: a field that struct perf_event_attr has not, or that purebpf sets itself.
        ValueError: a value that its field cannot hold.
    """
    fields = {_SPELT.get(name, name): value for name, value in fields.items()}
    for name in fields:
        if name not in PERF_EVENT_ATTR.fields and name not in PERF_EVENT_ATTR.bits:
            raise TypeError(f"struct perf_event_attr does not have a field {name!r}")
    try:
        attr = PERF_EVENT_ATTR.pack(
            type=event.type,
            size=PERF_EVENT_ATTR.size,
            config=event.config,
            read_format=_TIMES_AND_ID | (perf_event_read_format.PERF_FORMAT_LOST if lost else 0),
            **fields,
        )
    except ValueError as error:
        raise ValueError(f"event {event.name}: {error}") from None
    return bytes(attr)


def rate(frequency: int | None, period: int | None) -> dict[str, int]:
    """The fields that make an event sample, `frequency` in Hz or `period` in counts.

    Raises ValueError unless exactly one of the two is present, and positive.
    """
    if (frequency is None) == (period is None):
        raise ValueError("exactly one of frequency and period is required")
    if (frequency or period or 0) <= 0:
        raise ValueError(f"cannot sample at {frequency or period or 0}: it must be positive")
    if frequency is not None:
        return {"sample_freq": frequency, "freq": 1}
    assert period is not None
    return {"sample_period": period}


def record_format(attr: bytes) -> RecordFormat:
    """Return the decoder of the records of an event with this attr.

    Raises NotSupportedError for a sample_type with parts that purebpf cannot decode.
    """
    from purebpf.wire.perf_format import RecordFormat  # a sampler without a ring never needs it

    return RecordFormat.of_attr(attr)
