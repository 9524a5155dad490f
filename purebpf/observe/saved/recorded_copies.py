"""Samples of a perf.data file that carry registers and a copy of the user stack: unwound."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from purebpf.abi.perf import PERF_EVENT_ATTR, perf_event_sample_format
from purebpf.closable import Closing
from purebpf.observe.saved.recorded_kernel import Origin
from purebpf.results.build.perf_data_aggregate import Unwind
from purebpf.symbols.budget import PROCESS, RUN, Allowance, Budget
from purebpf.unwind.reason import Reason
from purebpf.wire.callchain import Stacks, stacks
from purebpf.wire.perf_data_reader import PerfData

if TYPE_CHECKING:
    from purebpf.observe.unwind.recorded_stacks import RecordedStacks
    from purebpf.symbols.address_spaces import AddressSpaces
    from purebpf.wire.perf_records import Sample

__all__ = ["RecordedCopies"]

_COPY = (
    perf_event_sample_format.PERF_SAMPLE_REGS_USER | perf_event_sample_format.PERF_SAMPLE_STACK_USER
)
_ALLOWANCES = {PROCESS: Allowance(4 << 30, 600.0), RUN: Allowance(16 << 30, 3600.0)}
"""Unwinding a file takes as long as the file is; what a file's rules may cost has its own bound."""


class RecordedCopies(Closing):
    """Unwinds the copies of a file.

    Args:
        file: the file to read.
        origin: the machine that it is of.

    Attributes:
        methods: for each event that has copies, by its index.
        ends: by event, how many stacks ended for each reason.
    """

    def __init__(self, file: PerfData, origin: Origin) -> None:
        self.methods: dict[int, Unwind] = {}
        self.ends: dict[int, Counter[int]] = {}
        self._stacks: RecordedStacks | None = None
        for number, event in enumerate(file.events):
            if event.sample_type & _COPY == _COPY:
                mask = int(PERF_EVENT_ATTR.unpack(event.attr)["sample_regs_user"])
                self.methods[number] = self._method(number, mask)
        if self.methods:
            self._stacks = _open(origin)

    @property
    def missing(self) -> list[str]:
        """Files of the recording that are not on this machine as they were."""
        return sorted(file.path for file in self._stacks.missing) if self._stacks else []

    def _method(self, event: int, mask: int) -> Unwind:
        ends = self.ends[event] = Counter()

        def unwind(sample: Sample, spaces: AddressSpaces) -> Stacks:
            chains = stacks(sample)
            if not sample.regs_user:  # a task of the kernel
                return chains
            if self._stacks is None:
                ends[Reason.RULE_UNSUPPORTED] += 1
                return chains._replace(reason=int(Reason.RULE_UNSUPPORTED))
            frames, reason, guessed = self._stacks.unwind(
                spaces, sample.pid, mask, sample.regs_user, sample.stack_user
            )
            ends[reason] += 1
            return chains._replace(user=tuple(frames), reason=int(reason), guessed=guessed)

        return unwind

    def close(self) -> None:
        """Close the files; again is harmless."""
        if self._stacks is not None:
            self._stacks.close()


def _open(origin: Origin) -> RecordedStacks | None:
    """Return the unwinder of the samples; None for a machine that we do not unwind."""
    from purebpf.observe.unwind.recorded_stacks import MACHINES, RecordedStacks

    machine = MACHINES.get(origin.arch or os.uname().machine)
    if machine is None:
        return None
    return RecordedStacks(machine, recorded=origin.recorded(), budget=Budget(_ALLOWANCES))
