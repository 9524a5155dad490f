"""Opens the events to sample: each event, in each place, with one ring a CPU."""

from __future__ import annotations

import errno
import mmap
import os
import time
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.abi.perf import perf_hw_id, perf_sw_ids, perf_type_id
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.perf.event_parser import Choice, choose_event
from purebpf.loader.perf.inheritance import inherited_by_threads
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.loader.perf.perf_names import event_named
from purebpf.loader.perf.perf_ring import PerfRing
from purebpf.measure.perf_targets import EventPlace
from purebpf.syscall import perf_event as sys
from purebpf.tools.record.request import DEFAULT_EVENT, FREQUENCY, EventOption, RecordOptions
from purebpf.tuples import NamedTuple
from purebpf.unwind.perf_registers import MASKS
from purebpf.wire.perf_data import RecordedEvent

__all__ = ["Sampled", "open_events", "open_side_band", "rings", "sample_type"]

_ASKED = (
    ("addresses", bit.PERF_SAMPLE_ADDR | bit.PERF_SAMPLE_DATA_SRC),
    ("callchains", bit.PERF_SAMPLE_CALLCHAIN),
    ("copy_bytes", bit.PERF_SAMPLE_REGS_USER | bit.PERF_SAMPLE_STACK_USER),
    ("weights", bit.PERF_SAMPLE_WEIGHT_STRUCT),
    ("sample_cpu", bit.PERF_SAMPLE_CPU),
    ("phys_data", bit.PERF_SAMPLE_PHYS_ADDR),
    ("data_page_size", bit.PERF_SAMPLE_ADDR | bit.PERF_SAMPLE_DATA_PAGE_SIZE),
    ("code_page_size", bit.PERF_SAMPLE_CODE_PAGE_SIZE),
    ("all_cgroups", bit.PERF_SAMPLE_CGROUP),
    ("transactions", bit.PERF_SAMPLE_TRANSACTION),
)
_ALWAYS = (
    bit.PERF_SAMPLE_IDENTIFIER
    | bit.PERF_SAMPLE_IP
    | bit.PERF_SAMPLE_TID
    | bit.PERF_SAMPLE_TIME
    | bit.PERF_SAMPLE_PERIOD
)
_SIDE_BAND_PAGES = 64
_FEWEST_PAGES = 8
_WAKE_AT = 4
"""The reader wakes when a ring is full to this part: the rest is for while it gets a CPU."""
_RATES = ("sample_period", "sample_freq", "freq")
_GONE = (errno.ESRCH, errno.ENODEV)


class Sampled(NamedTuple):
    """One event of the file: its option, and the events opened for it, one for each place.

    `user_only`: without the kernel's code, as this user may not sample it. `by_tree`: every task on
    a CPU is sampled, and a program has to drop the samples of tasks outside the tree.
    """

    choice: Choice
    option: EventOption
    opened: tuple[PerfEvent, ...]
    user_only: bool
    by_tree: bool = False

    def describe_recorded(self, more_ids: Iterable[int] = ()) -> RecordedEvent:
        """Return the event's description in the file; `more_ids`: of events with records that
        count as its records.
        """
        ids = (*(sys.event_id(event.fileno()) for event in self.opened), *more_ids)
        return RecordedEvent(self.name, self.opened[0].attr, ids)

    @property
    def name(self) -> str:
        """As it was written, or the name of the event in its place."""
        return self.opened[0].event.name


def sample_type(options: RecordOptions, choice: Choice) -> int:
    """Return the fields of an event's samples, as bits of `sample_type`."""
    bits_of_all = int(_ALWAYS)
    for name, bits in _ASKED:
        if getattr(options, name):
            bits_of_all |= bits
    if options.all_cpus or options.cpus or not (options.has_target or options.command):
        bits_of_all |= bit.PERF_SAMPLE_CPU
    if choice.is_tracepoint:
        bits_of_all |= bit.PERF_SAMPLE_RAW | bit.PERF_SAMPLE_CPU
    if _rate(options, choice).get("sample_period", 1) > 1 and _is_counted(choice):
        bits_of_all &= (
            ~bit.PERF_SAMPLE_PERIOD
        )  # with it, each event is a sample (perf_swevent_event())
    return bits_of_all


def has_tracepoints(options: RecordOptions) -> bool:
    """Return True if one of the events is a tracepoint of the kernel."""
    return any(choose_event(option.name).is_tracepoint for option in options.events)


def _is_counted(choice: Choice) -> bool:
    """Return True if the kernel's code counts the event, not a timer or hardware."""
    clocks = (perf_sw_ids.PERF_COUNT_SW_CPU_CLOCK, perf_sw_ids.PERF_COUNT_SW_TASK_CLOCK)
    is_software = choice.event.type == perf_type_id.PERF_TYPE_SOFTWARE
    return choice.is_tracepoint or (is_software and choice.event.config not in clocks)


def _rate(options: RecordOptions, choice: Choice) -> dict[str, int]:
    """Return the sampling rate: the event's, or the user's, or else the default."""
    own = {name: choice.attr[name] for name in _RATES if name in choice.attr}
    if "sample_period" in own:
        return own
    if options.period is not None:
        return {"sample_period": options.period}
    if options.frequency is None and choice.is_tracepoint:
        return {"sample_period": 1}
    return {"sample_freq": options.frequency or FREQUENCY, "freq": 1}


def _attr(options: RecordOptions, choice: Choice, *, by_tree: bool = False) -> dict[str, Any]:
    follows = options.follows_command and not by_tree
    return {
        "sample_type": sample_type(options, choice),
        "sample_id_all": 1,
        "disabled": 1,
        **({} if by_tree else _who_inherits(options)),
        "enable_on_exec": int(follows),
        "watermark": 1,
        "wakeup_watermark": _watermark(options.pages),
        "use_clockid": 1,
        "clockid": time.CLOCK_MONOTONIC,
        **_copies(options),
        **_rate(options, choice),
        **choice.attr,
    }


def _who_inherits(options: RecordOptions) -> dict[str, int]:
    """Threads of processes; of commands and users, and with `tree`, children, too."""
    if options.follows_command or options.uid is not None or (options.pids and options.tree):
        return {"inherit": 1}
    return inherited_by_threads() if options.pids else {}


def _copies(options: RecordOptions) -> dict[str, int]:
    """Registers and stack to copy: the same registers as perf(1), so that it unwinds them too."""
    if not options.copy_bytes:
        return {}
    machine = os.uname().machine
    if machine not in MASKS:
        raise NotSupportedError(
            "--call-graph copy", f"it is for x86-64 and arm64, and this machine is {machine}"
        )
    return {
        "sample_regs_user": MASKS[machine],
        "sample_stack_user": options.copy_bytes,
        "exclude_callchain_user": 1,
    }


def open_events(
    options: RecordOptions,
    places: Iterable[EventPlace],
    stack: ExitStack,
    of_tree: Iterable[EventPlace] = (),
) -> tuple[Sampled, ...]:
    """Open every event in every place, disabled; `stack` closes them.

    Where there is a tree, timers and counters of the CPU are opened in the places `of_tree`
    instead. Inherited by a child, they have a whole period to go, which a short life misses; events
    that the kernel counts, each fault or switch, are complete in either way.

    Raises:
        EventError: no such event.
        KernelError: the kernel refused one.
    """
    wanted = options.events or (EventOption(DEFAULT_EVENT),)
    everywhere, tree_places = tuple(places), tuple(of_tree)
    sampled = []
    for event_option in wanted:
        choice = choose_event(event_option.name)
        by_tree = bool(tree_places) and (options.comm is not None or not _is_counted(choice))
        opening = _Opening(options, event_option, choice, by_tree=by_tree)
        sampled.append(opening.open(tree_places if by_tree else everywhere, stack))
    return tuple(sampled)


class _Opening:
    """Opens an event; the first place settles the attributes for the others."""

    def __init__(
        self, options: RecordOptions, option: EventOption, choice: Choice, *, by_tree: bool
    ) -> None:
        self._option = option
        self._choice = choice
        self._by_tree = by_tree
        self._attr = _attr(options, choice, by_tree=by_tree)
        self._event = self._choice.event
        self._user_only = False

    def open(self, places: Iterable[EventPlace], stack: ExitStack) -> Sampled:
        opened: list[PerfEvent] = []
        gone: KernelError | None = None
        for place in places:
            try:
                opened.append(stack.enter_context(self._open(place)))
            except KernelError as error:
                if error.errno not in _GONE:
                    raise
                gone = error  # a thread that ended, a CPU that went offline
        if not opened and gone is not None:
            raise gone
        return Sampled(self._choice, self._option, tuple(opened), self._user_only, self._by_tree)

    def _open(self, place: EventPlace) -> PerfEvent:
        while True:
            try:
                return PerfEvent.open(
                    self._event,
                    pid=place.pid,
                    cpu=place.cpu,
                    cgroup=place.cgroup,
                    **self._attr,
                )
            except KernelError as error:
                if not self._retries(error, place):
                    raise

    def _retries(self, error: KernelError, place: EventPlace) -> bool:
        """Return True if there is a lesser event to try, as perf(1) does."""
        event, attr = self._event, self._attr
        is_cycles = event[1:3] == (
            perf_type_id.PERF_TYPE_HARDWARE,
            perf_hw_id.PERF_COUNT_HW_CPU_CYCLES,
        )
        if error.errno in (errno.ENOENT, errno.EOPNOTSUPP) and is_cycles:
            _, _, modifiers = event.name.partition(":")
            kept = modifiers.replace("p", "")
            clock = event_named("cpu-clock")
            name = f"{clock.name}:{kept}" if kept else clock.name
            self._event = clock._replace(name=name, asked=event.name, why_not=str(error))
            attr.pop("precise_ip", None)
            return True
        if error.errno == errno.EINVAL and attr["sample_type"] & bit.PERF_SAMPLE_WEIGHT_STRUCT:
            attr["sample_type"] ^= bit.PERF_SAMPLE_WEIGHT_STRUCT | bit.PERF_SAMPLE_WEIGHT
            return True
        own = place.pid >= 0 and place.cgroup is None
        if error.errno in (errno.EACCES, errno.EPERM) and own and not attr.get("exclude_kernel"):
            attr["exclude_kernel"] = attr["exclude_hv"] = 1
            self._user_only = True
            return True
        return False


def side_band_pages(options: RecordOptions) -> int:
    """Pages of the rings that tell of processes and mappings."""
    return min(_SIDE_BAND_PAGES, options.pages)


def _watermark(pages: int) -> int:
    return pages * mmap.PAGESIZE // _WAKE_AT


def open_side_band(
    options: RecordOptions, places: Iterable[EventPlace], like: Sampled, stack: ExitStack
) -> tuple[PerfEvent, ...]:
    """Open the events that report new processes and mappings, in the places, in the layout of
    `like`.

    It is enabled at once, or by execve(2) where the events are.
    """
    fields = {
        name: like.choice.attr.get(name, value)
        for name, value in _attr(options, like.choice).items()
        if name not in _RATES
    }
    own = like.opened[0]
    fields |= {
        "sample_type": RecordedEvent("", own.attr).sample_type,
        "sample_period": 1,
        "wakeup_watermark": _watermark(side_band_pages(options)),
        "disabled": fields["enable_on_exec"],
        "exclude_kernel": 1,  # there is nothing of it to see, and everybody may
        "mmap": 1,
        "mmap2": 1,
        "mmap_data": int(options.needs_data_mappings),
        "comm": 1,
        "comm_exec": 1,
        "task": 1,
        "ksymbol": int(not like.user_only),
        "cgroup_records": int(options.all_cgroups),
    }
    fields.pop("precise_ip", None)
    opened = []
    for place in places:
        try:
            opened.append(
                stack.enter_context(PerfEvent.open("dummy", pid=place.pid, cpu=place.cpu, **fields))
            )
        except KernelError as error:
            if error.errno not in _GONE:
                raise
    return tuple(opened)


def rings(events: Iterable[PerfEvent], pages: int) -> dict[int, PerfRing]:
    """One ring for each CPU, which all events there write to.

    A user who may not lock so much memory gets smaller ones.

    Raises:
        KernelError: mmap(2) refused even those.
    """
    rings_by_cpu: dict[int, PerfRing] = {}
    owners: dict[int, PerfEvent] = {}
    for event in events:
        owner = owners.setdefault(event.cpu, event)
        if owner is not event:
            sys.set_output(event.fileno(), owner.fileno())
            continue
        while event.cpu not in rings_by_cpu:
            try:
                rings_by_cpu[event.cpu] = event.map_ring(pages)
            except KernelError as error:
                if error.errno != errno.EPERM or pages <= _FEWEST_PAGES:
                    raise
                pages //= 2
    return rings_by_cpu
