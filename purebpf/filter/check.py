"""Checks that the samples of an event have the fields of a filter."""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.abi.perf import perf_event_sample_format, perf_sw_ids, perf_type_id
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.filter.fields import FIELDS, Field
from purebpf.filter.syntax import (
    And,
    Comparison,
    Expression,
    Filter,
    FilterError,
    Membership,
    Not,
    Or,
    TextSpan,
)
from purebpf.tuples import NamedTuple

__all__ = ["Need", "check", "check_event", "needs", "tests"]

_FROM_HARDWARE = (
    bit.PERF_SAMPLE_WEIGHT
    | bit.PERF_SAMPLE_WEIGHT_STRUCT
    | bit.PERF_SAMPLE_DATA_SRC
    | bit.PERF_SAMPLE_TRANSACTION
)
"""Fields that only the driver of a performance unit fills (perf_prepare_sample() and
perf_sample_data_init() in kernel/events/core.c)."""
_OF_ADDRESSES = bit.PERF_SAMPLE_ADDR | bit.PERF_SAMPLE_PHYS_ADDR | bit.PERF_SAMPLE_DATA_PAGE_SIZE
_WITH_ADDRESSES = frozenset(
    {
        perf_sw_ids.PERF_COUNT_SW_PAGE_FAULTS,
        perf_sw_ids.PERF_COUNT_SW_PAGE_FAULTS_MIN,
        perf_sw_ids.PERF_COUNT_SW_PAGE_FAULTS_MAJ,
        perf_sw_ids.PERF_COUNT_SW_ALIGNMENT_FAULTS,
        perf_sw_ids.PERF_COUNT_SW_EMULATION_FAULTS,
    }
)
"""Software events that are about an address: the others leave it 0."""


class Need(NamedTuple):
    """A field of a filter, its place in the text, and the option that puts it into samples.

    Attributes:
        field: the field; its `bits` are enum perf_event_sample_format; one of them is enough.
        place: where the filter asks.
    """

    field: Field
    place: TextSpan

    @property
    def bit_names(self) -> str:
        """The sample types, as the kernel spells them."""
        names = [
            sample_bit.name
            for sample_bit in perf_event_sample_format
            if sample_bit & self.field.bits
        ]
        return " or ".join(names)


def tests(root: Expression) -> Iterator[Comparison | Membership]:
    """Every test of a tree, from left to right."""
    if isinstance(root, And | Or):
        for part in root.parts:
            yield from tests(part)
    elif isinstance(root, Not):
        yield from tests(root.part)
    else:
        yield root


def needs(filter_: Filter) -> tuple[Need, ...]:
    """Return the fields that a filter needs, each once, in the order of their first mention."""
    needed: dict[str, Need] = {}
    for test in tests(filter_.root):
        field = FIELDS[test.field]
        if field.bits:
            needed.setdefault(field.name, Need(field, test.place))
    return tuple(needed.values())


def check(filter_: Filter, sample_type: int, event: str = "this event") -> None:
    """Check that samples with `sample_type` (attr.sample_type) have every field.

    Raises:
        FilterError: one is missing; names the sample type and the option that adds it.
    """
    for need in needs(filter_):
        if not need.field.bits & sample_type:
            advice = f": add {need.field.option}" if need.field.option else ""
            raise FilterError(
                f"samples of {event} do not have {need.field.name} ({need.bit_names}){advice}",
                filter_.text,
                need.place,
            )


def check_event(filter_: Filter, kind: int, config: int, event: str = "this event") -> None:
    """Refuse a filter that asks for fields which the samples of an event have no values for.

    The kernel fills them with 0, or "not available", so that a test passes every sample or none.
    Performance units differ from machine to machine, and are not refused.

    Args:
        filter_: the filter.
        kind: attr.type (enum perf_type_id).
        config: attr.config.
        event: its name in errors.

    Raises:
        FilterError: names the field.
    """
    empty = 0
    if kind in (perf_type_id.PERF_TYPE_SOFTWARE, perf_type_id.PERF_TYPE_BREAKPOINT):
        empty |= _FROM_HARDWARE
    if kind == perf_type_id.PERF_TYPE_SOFTWARE and config not in _WITH_ADDRESSES:
        empty |= _OF_ADDRESSES
    for need in needs(filter_):
        if need.field.bits & empty:
            raise FilterError(
                f"samples of {event} never have a value for {need.field.name}, so this test passes "
                "all of them or none. Use an event that has it, or leave out the test",
                filter_.text,
                need.place,
            )
