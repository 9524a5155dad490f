"""The records that a user's own program writes: into the rings of the samples, so into the file."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.abi.perf import perf_event_type as kind
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.syscall import bpf
from purebpf.syscall import perf_event as perf
from purebpf.wire.perf_data import RecordedEvent
from purebpf.wire.perf_data_features import pack_btf
from purebpf.wire.perf_ring import frames

if TYPE_CHECKING:
    from purebpf.observe.instruments.own_program import OwnProgram
    from purebpf.wire.perf_ring import Buffer

__all__ = ["OwnRecords"]

_ID = struct.Struct("=Q")  # PERF_SAMPLE_IDENTIFIER, the first field of all samples
_NO_FIELDS = ~(bit.PERF_SAMPLE_PERIOD | bit.PERF_SAMPLE_REGS_USER | bit.PERF_SAMPLE_STACK_USER)
_MORE_FIELDS = bit.PERF_SAMPLE_RAW | bit.PERF_SAMPLE_CPU
_SAME = ("sample_id_all", "watermark", "wakeup_watermark", "use_clockid", "clockid")


class OwnRecords:
    """Events `bpf-output` for the maps that a program writes to, on the CPUs of its samples.

    Args:
        own: the program.
        attr: of the sampled event; records have its fields, without period and copied stack, and
            the data of the program.
        cpus: where samples are taken.
        stack: closes the events.

    Attributes:
        events: the opened events, enabled.
        count: records so far.

    Raises:
        KernelError: the kernel refused an event, or an element of a map.
    """

    def __init__(
        self, own: OwnProgram, attr: dict[str, Any], cpus: Iterable[int], stack: ExitStack
    ) -> None:
        self._own = own
        self.count = 0
        fields = {name: attr[name] for name in _SAME}
        fields["sample_type"] = attr["sample_type"] & _NO_FIELDS | _MORE_FIELDS
        self._by_map: dict[str, tuple[PerfEvent, ...]] = {}
        numbers = sorted(set(cpus))
        for output in own.outputs:
            opened = []
            for cpu in numbers:
                event = PerfEvent.open("bpf-output", cpu=cpu, sample_period=1, **fields)
                opened.append(stack.enter_context(event))
                key, value = struct.pack("=I", event.cpu), struct.pack("=i", event.fileno())
                bpf.map_update_elem(output.fileno(), key, value)
            self._by_map[output.name] = tuple(opened)
        self.events = tuple(event for opened in self._by_map.values() for event in opened)
        self._ids = {_ID.pack(perf.event_id(event.fileno())) for event in self.events}

    def describe(self) -> list[RecordedEvent]:
        """Return the events in the file: each has the name of its map."""
        return [
            RecordedEvent(name, opened[0].attr, tuple(perf.event_id(e.fileno()) for e in opened))
            for name, opened in self._by_map.items()
        ]

    def pack_types(self) -> bytes | None:
        """Return the feature BPF_BTF of the file: the types of the records; None without types."""
        types = next((output.btf for output in self._own.outputs if output.btf is not None), None)
        if types is None:
            return None
        btf_id = self._own.object.programs[self._own.name].info.btf_id
        return pack_btf([(btf_id, types.data)])

    def take_in(self, data: Buffer) -> None:
        """Count the records among the data of a ring."""
        ids = self._ids
        for type_, _, start, _ in frames(data, 0, bool):
            if type_ == kind.PERF_RECORD_SAMPLE and bytes(data[start : start + _ID.size]) in ids:
                self.count += 1

    def count_lost(self) -> int:
        """Return the number of records that found no room in the rings (Linux 6.0)."""
        return sum(event.read().lost or 0 for event in self.events)
