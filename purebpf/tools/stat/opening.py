"""Opens counters: each event in each place, in its group."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from purebpf.abi.perf import perf_hw_id, perf_sw_ids, perf_type_id
from purebpf.errors import KernelError
from purebpf.loader.perf.event_parser import Choice, choose_event
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.measure.perf_targets import EventPlace
from purebpf.measure.targets import NoSuchTargetError
from purebpf.tools.stat.counts import CountedEvent
from purebpf.tools.stat.request import HARDWARE, Groups, default_groups
from purebpf.tuples import NamedTuple

__all__ = ["OpenCounter", "Opened", "choose_events", "open_counters"]

_REFUSED = (errno.EACCES, errno.EPERM)
_UNSUPPORTED = (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV)
_RATES = ("sample_period", "freq")
"""Fields that make an event sample; `period=` in its spelling means nothing to who counts."""


class OpenCounter(NamedTuple):
    """A counter: of the event of a number, in a place. The first one of a group leads it."""

    number: int
    place: EventPlace
    counter: PerfEvent
    leads: bool


class Opened(NamedTuple):
    """All counters, and the events that they count; `gone` threads ended before they had one."""

    events: tuple[CountedEvent, ...]
    counters: tuple[OpenCounter, ...]
    gone: int
    notes: tuple[str, ...]


class _Chosen(NamedTuple):
    """An event, and where it is in the list."""

    event: CountedEvent
    choice: Choice


def choose_events(groups: Groups, *, of_tasks: bool) -> tuple[list[_Chosen], tuple[str, ...]]:
    """Return the events of `groups`, or the defaults of this machine, and notes about them.

    Raises:
        EventError: no event is called that.
        KernelError, NotSupportedError: tracefs or sysfs may not be read.
    """
    notes: tuple[str, ...] = ()
    if not groups:
        groups = default_groups(of_tasks=of_tasks)
        if why := _why_no_hardware():
            notes = (f"no hardware events: {why}",)
        else:
            groups += HARDWARE
    chosen = []
    for number, names in enumerate(groups):
        for name in names:
            choice = choose_event(name)
            chosen.append(_Chosen(_describe(name, choice, number), choice))
    return chosen, notes


def _why_no_hardware() -> str:
    """Why this machine has no counters for cycles; "" where it has."""
    try:
        PerfEvent.open("cycles", pid=0, exclude_kernel=1, exclude_hv=1, disabled=1).close()
    except KernelError as error:
        return error.why.partition(";")[0] if error.errno in _UNSUPPORTED else ""
    return ""


def _describe(name: str, choice: Choice, group: int) -> CountedEvent:
    kind = ""
    if choice.event.type == perf_type_id.PERF_TYPE_SOFTWARE:
        kind = _spell(perf_sw_ids(choice.event.config).name)
    elif choice.event.type == perf_type_id.PERF_TYPE_HARDWARE:
        kind = _spell(perf_hw_id(choice.event.config).name)
    elif choice.event.type == perf_type_id.PERF_TYPE_HW_CACHE:
        kind = name.partition(":")[0]
    spaces = "".join(
        letter
        for letter, field in (("u", "exclude_user"), ("k", "exclude_kernel"), ("h", "exclude_hv"))
        if choice.attr.get(field) == 0 or not _limits(choice)
    )
    unit = "ns" if kind in ("cpu-clock", "task-clock") else ""
    return CountedEvent(name, kind, spaces, group, unit)


def _limits(choice: Choice) -> bool:
    return any(choice.attr.get(field) for field in ("exclude_user", "exclude_kernel", "exclude_hv"))


def _spell(name: str) -> str:
    """`PERF_COUNT_SW_PAGE_FAULTS` as users type it."""
    return name.split("_", 3)[3].lower().replace("_", "-")


def open_counters(
    groups: Groups,
    places: Sequence[EventPlace],
    stack: ExitStack,
    *,
    of_tasks: bool,
    fields: dict[str, int],
) -> Opened:
    """Open every event in every place, disabled; `stack` closes them.

    Args:
        groups: the events; () for the default.
        places: where.
        stack: owns the counters.
        of_tasks: which clock is counted by default.
        fields: of struct perf_event_attr, for each event.

    Raises:
        EventError: no event is called that.
        NoSuchTargetError: all threads have ended.
        KernelError: the kernel refused; or it supports none of the events.
    """
    chosen, notes = choose_events(groups, of_tasks=of_tasks)
    opener = _Opener(chosen, fields, stack)
    for place in places:
        opener.open_at(place)
    if opener.gone == len(places):
        raise NoSuchTargetError("every thread to count ended before it had a counter")
    if not opener.counters and opener.last_error is not None:
        raise opener.last_error
    return Opened(
        tuple(opener.events()), tuple(opener.counters), opener.gone, (*notes, *opener.notes())
    )


class _Opener:
    """Opens events in one place after the other, and remembers the ones that the kernel lacks."""

    def __init__(self, chosen: list[_Chosen], fields: dict[str, int], stack: ExitStack) -> None:
        self._chosen = chosen
        self._fields = fields
        self._stack = stack
        self._why_not: dict[int, str] = {}
        self._user_only: set[int] = set()
        self.counters: list[OpenCounter] = []
        self.gone = 0
        self.last_error: KernelError | None = None

    def open_at(self, place: EventPlace) -> None:
        """Open every event there; a thread that has ended has none."""
        leaders: dict[int, PerfEvent] = {}
        for number, (event, choice) in enumerate(self._chosen):
            if number in self._why_not:
                continue
            leader = leaders.get(event.group)
            try:
                counter = self._open(number, choice, place, leader)
            except KernelError as error:
                if error.errno == errno.ESRCH and not leaders and place.pid > 0:
                    self.gone += 1
                    return
                if error.errno not in _UNSUPPORTED:
                    raise
                self.last_error = error
                self._why_not[number] = error.why or str(error)
                continue
            self._stack.enter_context(counter)
            leaders.setdefault(event.group, counter)
            self.counters.append(OpenCounter(number, place, counter, leader is None))

    def _open(
        self, number: int, choice: Choice, place: EventPlace, leader: PerfEvent | None
    ) -> PerfEvent:
        """Open it, for user space alone where the whole is refused and the threads are ours."""
        attr = {name: value for name, value in choice.attr.items() if name not in _RATES}
        if leader is None:
            attr |= {"disabled": 1, **self._fields}
        else:
            # It follows its leader. An event of another unit, enabled behind its leader, never
            # ran on Linux 6.18: ctx_resched() looks at that unit alone.
            attr |= {name: on for name, on in self._fields.items() if name != "enable_on_exec"}
        if number in self._user_only:
            attr |= {"exclude_kernel": 1, "exclude_hv": 1}
        where = {"pid": place.pid, "cpu": place.cpu, "cgroup": place.cgroup, "group": leader}
        try:
            return PerfEvent.open(choice.event, **where, **attr)  # type: ignore[arg-type]
        except KernelError as error:
            is_own = place.pid >= 0 and place.cgroup is None
            if error.errno not in _REFUSED or attr.get("exclude_kernel") or not is_own:
                raise
            attr |= {"exclude_kernel": 1, "exclude_hv": 1}
            try:
                counter = PerfEvent.open(choice.event, **where, **attr)  # type: ignore[arg-type]
            except KernelError:
                raise error from None
        self._user_only.add(number)
        return counter

    def events(self) -> Iterator[CountedEvent]:
        """Yield every event with its outcome."""
        for number, (event, _) in enumerate(self._chosen):
            spaces = "u" if number in self._user_only else event.spaces
            yield event._replace(spaces=spaces, why_not=self._why_not.get(number, ""))

    def notes(self) -> Iterator[str]:
        """Yield notes about restricted events."""
        if self._user_only:
            names = ", ".join(self._chosen[number].event.name for number in sorted(self._user_only))
            yield (
                f"counted in user space only: {names}. This user may not count in the kernel "
                "(kernel.perf_event_paranoid)"
            )
