"""Each event's filter: in the kernel where it can be, else while the rings are emptied."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from purebpf.abi.perf import PERF_EVENT_ATTR
from purebpf.abi.perf import perf_event_type as kind
from purebpf.errors import FormatError, KernelError
from purebpf.loader.perf.event_parser import EventError, choose_event
from purebpf.measure import perf_targets
from purebpf.syscall import perf_event as perf
from purebpf.tools.record.events import Sampled, sample_type
from purebpf.tools.record.request import RecordOptions
from purebpf.wire.perf_data import RecordedEvent
from purebpf.wire.perf_format import RecordFormat
from purebpf.wire.perf_records import LostSamples, Sample
from purebpf.wire.perf_ring import frames

if TYPE_CHECKING:
    from purebpf.loader.maps.map import Map
    from purebpf.observe.filters.filter_names import MachineNames
    from purebpf.observe.filters.sample_filter import SampleFilter
    from purebpf.observe.instruments.own_program import OwnProgram
    from purebpf.tools.record.tree import Tree

__all__ = ["Filters", "explain_filters", "processes_to_search"]

_HEADER = 8


class Filters:
    """The filters of the events that have one, attached; `stack` detaches them.

    Functions are looked up in the kernel and in the processes `pids`. With a `tree`, the events
    that are sampled for it lose the samples of other processes, too. A tracepoint's filter is
    the kernel's own (Documentation/trace/events.rst, "Event filtering"). A user's `own`
    program sees the samples that a filter in the kernel accepts.

    Attributes:
        unreadable: records in the rings of samples that could not be read.

    Raises:
        FilterError: an empty filter, or one with a field that the samples lack.
        EventError: a tracepoint does not take its filter, or `own`.
        KernelError: the kernel refused a filter for another reason.
    """

    def __init__(
        self,
        sampled: Sequence[Sampled],
        stack: ExitStack,
        pids: Sequence[int] = (),
        tree: Tree | None = None,
        own: OwnProgram | None = None,
    ) -> None:
        self._tree = tree
        self.unreadable = 0
        names: MachineNames | None = None
        self._of: dict[int, SampleFilter] = {}  # by the event's place among `sampled`
        self._sampled = sampled
        self._in_user_space: dict[int, SampleFilter] = {}  # by the ids of the events' records
        for number, sampled_event in enumerate(sampled):
            own_tree = tree if sampled_event.by_tree else None
            if own is not None and sampled_event.choice.is_tracepoint:
                raise EventError(
                    f'event {sampled_event.name}: a program of SEC("perf_event") sees samples of '
                    "clocks and counters, not of tracepoints; attach it to the tracepoint with "
                    "purebpf.load"
                )
            if not sampled_event.option.filters:
                _attach(None, own_tree, own, sampled_event)
                continue
            if sampled_event.choice.is_tracepoint:
                _filter_tracepoint(sampled_event)
                continue
            bits = RecordedEvent("", sampled_event.opened[0].attr).sample_type
            names = names or _names(pids)
            members = None if own_tree is None else own_tree.members
            filters = sampled_event.option.filters
            attr = PERF_EVENT_ATTR.unpack(sampled_event.opened[0].attr)
            kind_of_event = int(attr["type"]), int(attr["config"])
            name = sampled_event.name
            event_filter = _make(filters, bits, kind_of_event, names, event=name, members=members)
            self._of[number] = stack.enter_context(event_filter)
            _attach(event_filter, own_tree, own, sampled_event)
            for event in sampled_event.opened:
                if not event_filter.in_kernel:
                    self._in_user_space[perf.event_id(event.fileno())] = event_filter
        self._formats = {
            perf.event_id(event.fileno()): RecordFormat.of_attr(event.attr)
            for number in self._of
            for event in sampled[number].opened
        }

    @property
    def need_sieve(self) -> bool:
        """True if the rings hold samples that do not belong into the file."""
        return bool(self._in_user_space)

    def sieve(self, data: bytes) -> bytes:
        """The records of a ring without the samples that a filter rejects in user space."""
        kept = []
        for type_, misc, start, end in frames(data, 0, self.skip):
            if type_ == kind.PERF_RECORD_SAMPLE and not self._accepts(misc, data, start, end):
                continue
            kept.append(data[start - _HEADER : end])
        return b"".join(kept)

    def _accepts(self, misc: int, data: bytes, start: int, end: int) -> bool:
        """Return False for a sample that a filter rejects, and for one that cannot be read."""
        number = int.from_bytes(data[start : start + 8], "little")  # PERF_SAMPLE_IDENTIFIER
        filter_ = self._in_user_space.get(number)
        if filter_ is None:
            return True
        try:
            sample = self._formats[number].decode(kind.PERF_RECORD_SAMPLE, misc, data, start, end)
        except FormatError as error:
            self.skip(error)
            return False
        return not isinstance(sample, Sample) or filter_.accepts(sample)

    def skip(self, _: FormatError) -> None:
        """Count a record that cannot be read."""
        self.unreadable += 1

    def count_rejected(self) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
        """By event: each term, and the samples that it was the first to reject."""
        return tuple(
            (self._sampled[number].name, sample_filter.counts().rejected)
            for number, sample_filter in self._of.items()
        )

    def count_outside(self) -> int:
        """Samples of processes that are not in the tree."""
        if self._tree is None:
            return 0
        return self._tree.outside + sum(event_filter.outside for event_filter in self._of.values())

    @property
    def undecided(self) -> int:
        """Samples that were dropped without a verdict of any filter."""
        return sum(sample_filter.counts().undecided for sample_filter in self._of.values())

    def losses(self) -> Iterator[LostSamples]:
        """The rejected samples as perf(1) notes them in a file."""
        for number, sample_filter in self._of.items():
            counts = sample_filter.counts()
            dropped = counts.dropped + counts.undecided
            if dropped:
                first = self._sampled[number].opened[0]
                yield LostSamples(dropped, id=perf.event_id(first.fileno()), by_bpf=True)

    def notes(self) -> Iterator[str]:
        """The filters that run in user space, and why."""
        for number, sample_filter in self._of.items():
            if not sample_filter.in_kernel:
                name = self._sampled[number].name
                yield f"filter: {name}: in user space, since {sample_filter.why_user_space}"


def processes_to_search(options: RecordOptions) -> tuple[int, ...]:
    """The processes that have functions a filter can name: those that are recorded, but not all."""
    if options.pids or options.tids or options.uid is not None:
        return tuple(perf_targets.existing_processes(options))
    return ()


def explain_filters(options: RecordOptions) -> Iterator[str]:
    """Explain the filters, and show the code they become; nothing is recorded.

    Raises:
        FilterError, EventError, KernelError: as `Filters`.
    """
    for option in options.events:
        choice = choose_event(option.name)
        if not option.filters:
            yield f"{option.name}: no filter\n"
        elif choice.is_tracepoint:
            yield f"{option.name}: the kernel's tracepoint filter: {_join(option.filters)}\n"
        else:
            bits = sample_type(options, choice)
            names = _names(processes_to_search(options))
            with _make(
                option.filters, bits, choice.event[1:3], names, event=option.name
            ) as event_filter:
                yield f"{option.name}:\n{event_filter.explain()}\n"


# Without a filter, what makes them need not be imported: half the time of a start.


def _names(pids: Sequence[int]) -> MachineNames:
    from purebpf.observe.filters.filter_names import MachineNames

    return MachineNames(pids)


def _make(
    texts: Sequence[str],
    bits: int,
    kind_and_config: tuple[int, int],
    names: MachineNames,
    *,
    event: str,
    members: Map | None = None,
) -> SampleFilter:
    from purebpf.filter import check_event, parse
    from purebpf.observe.filters.sample_filter import SampleFilter

    parsed = parse(*texts)
    check_event(parsed, *kind_and_config, event=event)
    return SampleFilter(parsed, bits, event=event, names=names, members=members)


def _attach(
    filter_: SampleFilter | None, tree: Tree | None, own: OwnProgram | None, sampled: Sampled
) -> None:
    """Attach a filter, or else the program that keeps a tree, and the user's own program."""
    chosen = filter_ if filter_ is not None and filter_.in_kernel else tree
    if own is not None:
        own.attach(sampled.opened, first=None if chosen is None else chosen.program)
    elif chosen is not None:
        for event in sampled.opened:
            chosen.attach(event)


def _join(filters: Sequence[str]) -> str:
    if len(filters) == 1:
        return filters[0]
    return " && ".join(f"({expression})" for expression in filters)


def _filter_tracepoint(sampled: Sampled) -> None:
    text = _join(sampled.option.filters)
    for event in sampled.opened:
        try:
            perf.set_filter(event.fileno(), text.encode())
        except KernelError as error:
            if error.errno != errno.EINVAL:
                raise
            category, name = sampled.choice.event.name.split(":")[:2]
            raise EventError(
                f"tracepoint {category}:{name} does not take the filter {text!r}. The fields are "
                f"in events/{category}/{name}/format of tracefs; compare them as in `prev_pid > "
                '1000 && prev_comm == "bash"`'
            ) from None
