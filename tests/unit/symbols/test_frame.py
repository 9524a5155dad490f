"""Where a walk without frame pointers left the stack."""

from __future__ import annotations

import pytest

from purebpf.symbols.frame import Address, Frame, Reason, Unknown, without_stray_tail


def named(address: int) -> Frame:
    return Frame("f", 1, "/bin/x", Address(address), "user")


def unknown(address: int, reason: Reason = Reason.GARBAGE) -> Unknown:
    return Unknown(reason, "", Address(address), "user")


@pytest.mark.parametrize(
    ("stack", "kept"),
    [
        ([], 0),
        ([named(1), named(2)], 2),
        ([named(1), unknown(2)], 2),
        ([named(1), unknown(2), unknown(3), unknown(4)], 2),
        ([named(1), unknown(2), named(3)], 2),  # what follows a stray address is chance
        ([named(1), unknown(2, Reason.ANONYMOUS), unknown(3, Reason.STRIPPED), named(4)], 4),
        ([unknown(1), named(2)], 1),
    ],
)
def test_the_first_stray_address_ends_the_stack(stack, kept):
    assert without_stray_tail(stack) == tuple(stack[:kept])
