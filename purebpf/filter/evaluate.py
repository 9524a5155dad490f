"""A filter as a Python function of decoded samples, for where no program can run it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from purebpf.errors import NotSupportedError
from purebpf.filter.fields import Field
from purebpf.filter.lowering import All, Any, CommIn, Compare, Condition, Opposite, Term, Under
from purebpf.wire.perf_records import Sample

__all__ = ["predicate"]

_ATTRIBUTES: Mapping[str, str] = {
    "tid_entry.tid": "tid",
    "tid_entry.pid": "pid",
    "cpu_entry.cpu": "cpu",
    "weight.full": "weight",
    "data_src.val": "data_src",
    "txn": "transaction",
}
"""What `Sample` calls the words that it calls otherwise."""

_OPERATORS: Mapping[str, Callable[[int, int], object]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "&": operator.and_,
}

Predicate = Callable[[Sample], bool]


def predicate(terms: Sequence[Term]) -> Callable[[Sample], int]:
    """A function that says which term rejects a sample: its index, or -1 to keep the sample.

    Raises:
        NotSupportedError: the filter needs a fact that samples lack: a user, a name, a subtree.
    """
    tests = [_predicate(term.condition) for term in terms]

    def rejecting(sample: Sample) -> int:
        return next((index for index, test in enumerate(tests) if not test(sample)), -1)

    return rejecting


def _predicate(condition: Condition) -> Predicate:
    if isinstance(condition, All):
        parts = tuple(map(_predicate, condition.parts))
        return lambda sample: all(part(sample) for part in parts)
    if isinstance(condition, Any):
        parts = tuple(map(_predicate, condition.parts))
        return lambda sample: any(part(sample) for part in parts)
    if isinstance(condition, Opposite):
        part = _predicate(condition.part)
        return lambda sample: not part(sample)
    if isinstance(condition, CommIn):
        raise _untold("comm")
    if isinstance(condition, Under):
        raise _untold("the cgroup's parents")
    value = _value(condition.field)
    if isinstance(condition, Compare):
        compare, wanted = _OPERATORS[condition.operator], condition.value
        return lambda sample: bool(compare(value(sample), wanted))
    ranges = condition.ranges
    return lambda sample: any(low <= value(sample) <= high for low, high in ranges)


def _value(field: Field) -> Callable[[Sample], int]:
    if not field.word:
        raise _untold(field.name)
    word = operator.attrgetter(_ATTRIBUTES.get(field.word, field.word))
    slices = field.slices
    if not slices:
        return word

    def time_slice(sample: Sample) -> int:
        whole = word(sample)
        number = 0
        for shift, width, at in slices:
            number |= (whole >> shift & (1 << width) - 1) << at
        return number

    return time_slice


def _untold(what: str) -> NotSupportedError:
    return NotSupportedError("filtering in user space", f"samples do not have {what}")
