"""Call chains are taken apart at their marks."""

from __future__ import annotations

import pytest

from purebpf.abi.perf import perf_callchain_context as context
from purebpf.wire.callchain import Stacks, stacks
from purebpf.wire.perf_records import Sample

KERNEL, USER = context.PERF_CONTEXT_KERNEL, context.PERF_CONTEXT_USER


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (Sample(2, callchain=(KERNEL, 10, 11, USER, 1, 2)), Stacks((10, 11), (1, 2))),
        (Sample(2, callchain=(USER, 1, 2)), Stacks((), (1, 2))),
        (Sample(1, callchain=(KERNEL, 10)), Stacks((10,), ())),
        (Sample(2, ip=7), Stacks((), (7,))),
        (Sample(1, ip=7), Stacks((7,), ())),
        (Sample(1, callchain=(10, 11)), Stacks((10, 11), ())),
        (
            Sample(1, callchain=(context.PERF_CONTEXT_GUEST_KERNEL, 9, USER, 1)),
            Stacks((), (1,)),
        ),
    ],
)
def test_a_call_chain_is_split_into_its_sides(sample: Sample, expected: Stacks) -> None:
    assert stacks(sample) == expected
