"""User call chains that the kernel records when the task returns to user space.

With `defer_callchain` (Linux 6.19, `perf record --call-graph fp,defer`), the call chain of a sample
ends with PERF_CONTEXT_USER_DEFERRED and a number. A later record of the type
PERF_RECORD_CALLCHAIN_DEFERRED has the same number and the user's call chain, for all samples that
the task had since it entered the kernel. purebpf's own constants are from an older kernel header,
so both values stand here (include/uapi/linux/perf_event.h).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Generic, TypeVar

from purebpf.abi.perf import perf_callchain_context
from purebpf.wire.perf_records import Other, Sample

__all__ = ["PERF_CONTEXT_USER_DEFERRED", "PERF_RECORD_CALLCHAIN_DEFERRED", "DeferredChains"]

PERF_CONTEXT_USER_DEFERRED = (1 << 64) - 640
PERF_RECORD_CALLCHAIN_DEFERRED = 22
_USER = perf_callchain_context.PERF_CONTEXT_USER
_HEAD = struct.Struct("=QQ")

Holder = TypeVar("Holder")


class DeferredChains(Generic[Holder]):
    """Samples that wait for their user call chain, each with data of the caller.

    Attributes:
        missing: samples whose call chain is in no record.
    """

    def __init__(self) -> None:
        self.missing = 0
        self._waiting: dict[int, list[tuple[Sample, Holder]]] = {}

    def hold(self, sample: Sample, data: Holder) -> bool:
        """Keep a sample until `complete` gets its call chain; False: the sample has no deferred
        one.
        """
        chain = sample.callchain
        if len(chain) < 2 or chain[-2] != PERF_CONTEXT_USER_DEFERRED:
            return False
        self._waiting.setdefault(chain[-1], []).append((sample, data))
        return True

    def complete(self, record: Other) -> Iterator[tuple[Sample, Holder]]:
        """Yield the samples that a deferred call chain belongs to, with it. A record that breaks
        its format has none.
        """
        body = record.body
        if len(body) < _HEAD.size:
            return
        cookie, count = _HEAD.unpack_from(body)
        if count > (len(body) - _HEAD.size) // 8:
            return
        chain = struct.unpack_from(f"={count}Q", body, _HEAD.size)
        for sample, data in self._waiting.pop(cookie, ()):
            yield sample._replace(callchain=(*sample.callchain[:-2], _USER, *chain)), data

    def give_up(self) -> Iterator[tuple[Sample, Holder]]:
        """Yield the samples that still wait, as they are, and count them as missing."""
        for held in self._waiting.values():
            self.missing += len(held)
            yield from held
        self._waiting.clear()
