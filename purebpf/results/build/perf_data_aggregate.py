"""From the records of a file to stacks and how often each was there. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from purebpf.abi.perf import perf_event_type
from purebpf.errors import FormatError
from purebpf.results.build.group_samples import GroupSamples
from purebpf.results.build.loaded_code import LoadedCode
from purebpf.symbols.address_spaces import AddressSpaces
from purebpf.symbols.cgroup_names import cgroup_name
from purebpf.tuples import NamedTuple
from purebpf.wire.callchain import Stacks, stacks
from purebpf.wire.deferred_chains import PERF_RECORD_CALLCHAIN_DEFERRED, DeferredChains
from purebpf.wire.perf_data import KERNEL
from purebpf.wire.perf_data_reader import PerfData, Placed
from purebpf.wire.perf_encode import HOST_KERNEL
from purebpf.wire.perf_records import (
    Comm,
    Exit,
    Fork,
    Lost,
    LostSamples,
    Mmap,
    Mmap2,
    Other,
    Sample,
)

__all__ = ["DEEP", "SLOT_NS", "Counted", "Counting", "Owner", "Unwind", "count"]

Unwind = Callable[[Sample, AddressSpaces], Stacks]
"""From a sample with a copy of its stack, and what is mapped then, to its stacks."""

LAST_SLOT = (1 << 32) - 1
SLOT_NS = 20_000_000
"""How long a slot of a time line is: fifty to the second."""


DEEP = 127
"""Frames of a call chain: PERF_MAX_STACK_DEPTH, the default of kernel.perf_event_max_stack."""
_KEEP_EXITED = 1 << 20
_CGROUP_ID = 8
_PROT_EXEC = 4
_MOST_ASIDE = 1024
"""Beyond that, code that was replaced has no names."""

_REAPED = (1 << 32) - 1
"""The PID of a task that still runs after its parent has waited for it (perf_event_pid() in
kernel/events/core.c)."""


class Owner(NamedTuple):
    """The task of the stack, `[exited]` without a PID where the kernel had taken that already.

    `cgroup` is the container or unit, "" unless the file has it. `remaps` counts how often the
    process had replaced code of one file by another's at the same addresses.
    """

    comm: str
    pid: int
    cgroup: str = ""
    remaps: int = 0


class Counted:
    """The content of a file.

    Attributes:
        samples: by event, how many.
        found: by event, the weight of each stack of each owner.
        deep: by event, how many samples have each of the stacks with `DEEP` frames or more.
        slots: by event, the same by slots of `SLOT_NS`, if requested.
        first_ns: the time of the first sample, and
        last_ns: the last one; 0: the file does not say.
        spaces: the mappings of processes.
        aside: the number in `spaces` of the mappings before each replacement of code, by process
            and `Owner.remaps`.
        kernel: the mapping of the kernel itself, None when the file has none.
        loaded: its modules and BPF programs.
        cgroups: labels of cgroups by id.
        lost: samples that found no room.
        rejected: samples that a filter rejected.
        unfinished: samples whose user call chain was to be recorded later, and is not in the file.
    """

    def __init__(self, events: int) -> None:
        self.samples: Counter[int] = Counter()
        self.found: list[Counter[tuple[Owner, Stacks]]] = [Counter() for _ in range(events)]
        self.deep: list[Counter[tuple[Owner, Stacks]]] = [Counter() for _ in range(events)]
        self.slots: list[dict[tuple[Owner, Stacks], Counter[int]]] = [{} for _ in range(events)]
        self.first_ns = self.last_ns = 0
        self.spaces = AddressSpaces(keep_exited=_KEEP_EXITED)
        self.aside: dict[tuple[int, int], int] = {}
        self.kernel: Mmap | Mmap2 | None = None
        self.loaded = LoadedCode()
        self.cgroups: dict[int, str] = {}
        self.rejected = 0
        self.unfinished = 0
        self._announced = 0
        self._noted = 0

    def space_of(self, owner: Owner) -> int:
        """The number in `spaces` of the process at the time of its samples."""
        return self.aside.get((owner.pid, owner.remaps), owner.pid)

    @property
    def lost(self) -> int:
        """The kernel announces losses when there is room again; perf notes all at the end."""
        return max(self._announced, self._noted)


def count(
    file: PerfData,
    build_ids: Mapping[str, bytes],
    *,
    periods: Sequence[bool],
    slots: bool,
    unwind: Mapping[int, Unwind],
) -> Counted:
    """Read every record once.

    Args:
        file: the file to read.
        build_ids: of the files that are named in it.
        periods: of each event, whether a sample weighs its period instead of 1.
        slots: True if samples get a time slot.
        unwind: by event, how the stacks of its samples are had, where not from their call chains.

    Raises:
        FormatError, NotSupportedError: as `PerfData.records`; times that lie years apart.
    """
    counting = Counting(file, build_ids, periods=periods, slots=slots, unwind=unwind)
    counting.take(file.records())
    counting.finish()
    return counting.counted


class Counting:
    """Counts the records of a file as they come; arguments and errors are the same as for `count`.

    Attributes:
        counted: the counts so far.
    """

    def __init__(
        self,
        file: PerfData,
        build_ids: Mapping[str, bytes],
        *,
        periods: Sequence[bool],
        slots: bool,
        unwind: Mapping[int, Unwind],
    ) -> None:
        self.counted = Counted(len(file.events))
        self._source = file.source
        self._build_ids = build_ids
        self._periods = periods
        self._wants_slots = slots
        self._methods = [unwind.get(event) for event in range(len(file.events))]
        self._fixed = [recorded.period for recorded in file.events]
        self._comms: dict[int, str] = {0: "swapper"}
        self._owners: dict[tuple[int, int], Owner] = {}
        self._groups = GroupSamples(file.events)
        self._deferred: DeferredChains[tuple[int, Owner]] = DeferredChains()
        self._sampled: set[int] = set()  # since the last replacement of their code
        self._remaps: dict[int, int] = {}

    def take(self, records: Iterable[Placed]) -> None:
        """Count more records."""
        counted, comms, owners = self.counted, self._comms, self._owners
        hold = self._deferred.hold
        if self._groups.is_needed:
            records = self._groups.split(records)
        for event, record in records:
            if isinstance(record, Sample):
                owner = owners.get(record[2:4])
                if owner is None:
                    owner = owners[record.pid, record.tid] = self._owner(record.pid, record.tid)
                if not hold(record, (event, owner)):
                    self._count(event, owner, record)
            elif isinstance(record, Comm):
                comms[record.tid] = record.comm
                owners.pop((record.pid, record.tid), None)
                self._remember(record)
            elif isinstance(record, Fork):
                comms[record.tid] = comms.get(record.ptid) or comms.get(
                    record.ppid, f":{record.tid}"
                )
                owners.pop((record.pid, record.tid), None)
                counted.spaces.feed(record)
            elif isinstance(record, Mmap | Mmap2) and record.pid != HOST_KERNEL:
                build_id = self._build_ids.get(record.filename)
                self._remember(_with_build_id(record, build_id) if build_id else record)
            elif isinstance(record, Other) and record.type == PERF_RECORD_CALLCHAIN_DEFERRED:
                for sample, (its_event, owner) in self._deferred.complete(record):
                    self._count(its_event, owner, sample)
            else:
                _other(counted, record)

    def finish(self) -> None:
        """Count the samples that still wait for their user call chain, as cut ones."""
        for sample, (event, owner) in self._deferred.give_up():
            self._count(event, owner, sample)
        self.counted.unfinished = self._deferred.missing

    def _count(self, event: int, owner: Owner, sample: Sample) -> None:
        counted = self.counted
        counted.samples[event] += 1
        weight = (sample.period or self._fixed[event]) if self._periods[event] else 1
        if sample.cgroup:
            owner = owner._replace(cgroup=counted.cgroups.get(sample.cgroup, ""))
        method = self._methods[event]
        key = owner, method(sample, counted.spaces) if method else stacks(sample)
        counted.found[event][key] += weight
        if len(key[1].user) + len(key[1].kernel) >= DEEP:
            counted.deep[event][key] += 1
        counted.last_ns = max(counted.last_ns, sample.time)
        if self._wants_slots and sample.time:
            self._place(event, key, sample.time, weight)

    def _remember(self, record: Mmap | Mmap2 | Comm) -> None:
        """Take in what a process maps. Samples before code was replaced keep the names of that."""
        spaces, pid = self.counted.spaces, record.pid
        has_room = len(self.counted.aside) < _MOST_ASIDE
        if pid in self._sampled and has_room and spaces.replaces(record):
            remaps = self._remaps.get(pid, 0)
            self.counted.aside[pid, remaps] = spaces.keep_aside(pid)
            self._remaps[pid] = remaps + 1
            for key in [key for key in self._owners if key[0] == pid]:
                del self._owners[key]
            self._sampled.discard(pid)
        spaces.feed(record)

    def _owner(self, pid: int, tid: int) -> Owner:
        if pid == _REAPED:
            return Owner("[exited]", 0)
        if pid not in self._sampled:
            self._sampled.add(pid)
            self.counted.spaces.settle(pid)
        comm = self._comms.get(tid) or self._comms.get(pid) or f":{tid}"
        return Owner(comm, pid, remaps=self._remaps.get(pid, 0))

    def _place(self, event: int, key: tuple[Owner, Stacks], time: int, weight: int) -> None:
        """Note the time slot of a sample."""
        counted = self.counted
        counted.first_ns = counted.first_ns or time
        slot = max(time - counted.first_ns, 0) // SLOT_NS
        if slot > LAST_SLOT:
            raise FormatError(self._source, "records", f"a sample at {time} ns, years after others")
        counted.slots[event].setdefault(key, Counter())[slot] += weight


def _with_build_id(mapping: Mmap | Mmap2, build_id: bytes) -> Mmap2:
    """A mapping with the build id of its file, which has another inode on another machine.

    The record's own build id counts more than the one that the file has for all of a path.
    """
    if isinstance(mapping, Mmap2):
        build_id = mapping.build_id or build_id
        return mapping._replace(maj=0, min=0, ino=0, build_id=build_id)
    prot = 0 if mapping.is_data else _PROT_EXEC
    pid, tid, addr, length, pgoff, filename, _, *place = mapping
    where = pid, tid, addr, length, pgoff, filename
    return Mmap2._make((*where, 0, 0, 0, build_id, prot, 0, *place))


def _other(counted: Counted, record: object) -> None:
    if isinstance(record, Mmap | Mmap2):
        if record.filename.startswith(KERNEL):
            counted.kernel = record
        else:
            counted.loaded.add_mapping(record)
    elif isinstance(record, Exit):
        counted.spaces.feed(record)
    elif isinstance(record, Other):
        if record.type == perf_event_type.PERF_RECORD_CGROUP and len(record.body) > _CGROUP_ID:
            number = int.from_bytes(record.body[:_CGROUP_ID], "little")
            path = record.body[_CGROUP_ID:].partition(b"\0")[0].decode(errors="surrogateescape")
            counted.cgroups[number] = cgroup_name(f"0::{path}").label
        elif record.type == perf_event_type.PERF_RECORD_KSYMBOL:
            counted.loaded.add_symbol(record)
    elif isinstance(record, Lost):
        counted._announced += record.lost  # noqa: SLF001
    elif isinstance(record, LostSamples):
        if record.by_bpf:
            counted.rejected += record.lost
        else:
            counted._noted += record.lost  # noqa: SLF001
