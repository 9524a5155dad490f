"""Whether the samples of an event have what a filter asks about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from purebpf.abi.perf import perf_event_sample_format
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

__all__ = ["Need", "check", "needs", "tests"]


class Need(NamedTuple):
    """A field that a filter asks about, where, and what puts it into samples.

    Attributes:
        field: the field; its `bits` are enum perf_event_sample_format, of which one will do.
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
    """What a filter asks of samples, each field once, in the order of their first mention."""
    needed: dict[str, Need] = {}
    for test in tests(filter_.root):
        field = FIELDS[test.field]
        if field.bits:
            needed.setdefault(field.name, Need(field, test.place))
    return tuple(needed.values())


def check(filter_: Filter, sample_type: int, event: str = "this event") -> None:
    """Whether samples with `sample_type` (attr.sample_type) have every field.

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
