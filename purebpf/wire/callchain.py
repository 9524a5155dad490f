"""Call chains of perf samples: addresses, leaf first, between marks of user and kernel."""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.abi.perf import perf_callchain_context as context
from purebpf.tuples import NamedTuple
from purebpf.wire.perf_encode import MISC_KERNEL, MISC_USER
from purebpf.wire.perf_records import Sample

__all__ = ["Stacks", "stacks"]

_MARKS = 1 << 64
_KERNEL, _USER = context.PERF_CONTEXT_KERNEL, context.PERF_CONTEXT_USER
_FIRST_MARK = _MARKS - 4095  # PERF_CONTEXT_MAX


class Stacks(NamedTuple):
    """The addresses of both sides, leaf first; () for a side without a stack.

    `reason` is how the user side ended (`purebpf.unwind.reason`), 0 where that is not known, and
    `guessed` how many of its steps were guesses.
    """

    kernel: tuple[int, ...]
    user: tuple[int, ...]
    reason: int = 0
    guessed: int = 0


def stacks(sample: Sample) -> Stacks:
    """The stacks of a sample; without a call chain, its address alone.

    The result omits entries of a hypervisor's guest: its addresses mean nothing here.
    """
    chain: Sequence[int] = sample.callchain
    if not chain:
        mode = sample.misc & 7
        one = (sample.ip,)
        return Stacks(one if mode == MISC_KERNEL else (), one if mode == MISC_USER else ())
    parts: dict[int, list[int]] = {_KERNEL: [], _USER: []}
    current: list[int] | None = parts[_KERNEL if sample.misc & 7 == MISC_KERNEL else _USER]
    for address in chain:
        if address >= _FIRST_MARK:
            current = parts.get(address)
        elif current is not None:
            current.append(address)
    return Stacks(tuple(parts[_KERNEL]), tuple(parts[_USER]))
