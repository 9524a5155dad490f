"""`SharedCounts`: one set of counters for many sessions (bpf_src/shared_counts.bpf.c).

    /sys/fs/bpf/purebpf/counts/sets    which link counts which set of events

The first session of a set opens the events and attaches the program; others join it, by the ID of
its link. Only the list of links is pinned: each session holds the link, and when the last one
ends, however it ends, the kernel detaches the program and closes the events. The folder is root's,
and its lock lets one session at a time join, and read.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from purebpf import objects
from purebpf.abi.bpf import bpf_map_type
from purebpf.closable import Closing
from purebpf.errors import KernelError, NotSupportedError
from purebpf.files.root_folders import lock_folder, reach_bpffs
from purebpf.loader.host import cpus
from purebpf.loader.host.pins import BPFFS
from purebpf.loader.load.load import load
from purebpf.loader.maps.map import Map
from purebpf.loader.maps.map_pin import differences
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.spec import MapSpec
from purebpf.syscall.folder import Folder
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.perf.perf_event import PerfEvent

__all__ = ["MOST_EVENTS", "OpenedEvent", "Reading", "SharedCounts", "Task"]

MOST_EVENTS = 32
"""Of bpf_src/shared_counts.bpf.c."""
_OBJECT, _PROGRAM = "shared_counts", "add_counts"
_FOLDERS = (("purebpf", 0o711), ("counts", 0o700))
_IDENTITY = 32
_SETS = MapSpec("sets", bpf_map_type.BPF_MAP_TYPE_HASH, _IDENTITY, 16, 64)
_ENTRY = struct.Struct("=II8s")  # the IDs of the link and its program, and that one's tag
_MAPS = ("sums", "tasks", "unread")
_ZERO = (0, 0, 0)

Reading = tuple[int, int, int]
"""What an event counted, and the nanoseconds that it was enabled and on a counter."""


class Task(NamedTuple):
    """A process, or one of its threads."""

    id: int
    is_thread: bool = False


class OpenedEvent(NamedTuple):
    """An event that is open and enabled: its number in the set, and its CPU."""

    number: int
    cpu: int
    event: PerfEvent


class SharedCounts(Closing):
    """A session of a set of events: joined, or begun.

    Args:
        identity: 32 bytes that are equal for equal sets: the events and CPUs.
        events: how many there are.
        open_events: opens and enables them on each CPU; the stack closes them once they are handed
            on. Called if no session counts the set.
        bpffs: where the bpf file system is.

    Attributes:
        leads: whether this session began the set.

    Raises:
        NotSupportedError: more events than MOST_EVENTS; a folder of another user's.
        KernelError: no bpf file system, a list of another shape, no CAP_SYS_ADMIN; or the kernel
            refused the program or an event. Linux 5.10 (commit 1b4d60ec162f, test runs of raw
            tracepoints on a CPU).
    """

    def __init__(
        self,
        identity: bytes,
        events: int,
        open_events: Callable[[ExitStack], Iterable[OpenedEvent]],
        bpffs: str = BPFFS,
    ) -> None:
        if events > MOST_EVENTS:
            raise NotSupportedError("shared counters", f"a set has at most {MOST_EVENTS} events")
        assert len(identity) == _IDENTITY
        self._events = events
        self._limit = 1 + max(cpus.possible())
        with ExitStack() as stack:
            self._folder = stack.enter_context(_folder(bpffs))
            with lock_folder(self._folder), _open_sets(self._folder) as sets:
                self.leads = not self._join(sets.get(identity), stack)
                if self.leads:
                    _forget_ended(sets)
                    sets[identity] = self._lead(open_events, stack)
            self._owned = stack.pop_all()

    def _spec(self) -> Any:
        spec = objects.spec(_OBJECT).set(events=self._events, cpu_limit=self._limit)
        return spec.resize(counters=self._limit * self._events)

    def _join(self, entry: bytes | None, stack: ExitStack) -> bool:
        """Return True if there is such a session, which this one has joined."""
        if entry is None:
            return False
        link_id, program_id, tag = _ENTRY.unpack(entry)
        with ExitStack() as undo:
            try:
                link = undo.enter_context(Link.from_id(link_id))
                self._program = undo.enter_context(Program.from_id(program_id))
            except KernelError as error:
                if error.errno != errno.ENOENT:
                    raise
                return False
            info = self._program.info
            if link.info.program_id != program_id or info.tag != tag.hex():
                return False  # the numbers are of others by now
            by_name = {}
            for map_id in info.map_ids:
                opened = undo.enter_context(Map.from_id(map_id))
                by_name[opened.info.name] = opened
            self._maps = {name: by_name[name] for name in _MAPS}
            _require_shapes(self._spec().maps, self._maps)
            stack.push(undo.pop_all())
        return True

    def _lead(
        self, open_events: Callable[[ExitStack], Iterable[OpenedEvent]], stack: ExitStack
    ) -> bytes:
        loaded = stack.enter_context(load(self._spec()))
        with ExitStack() as opened:
            for event in open_events(opened):
                loaded.maps["counters"][event.number * self._limit + event.cpu] = event.event
        self._program = loaded.programs[_PROGRAM]
        self._maps = {name: loaded.maps[name] for name in _MAPS}
        self._take()  # the first readings
        loaded.globals["phase"] = True
        link = stack.enter_context(self._program.attach())
        return _ENTRY.pack(
            link.info.id, self._program.info.id, bytes.fromhex(self._program.info.tag)
        )

    def follow(self, tasks: Iterable[Task]) -> None:
        """Also count these tasks alone from now on; tasks of other sessions stay.

        Raises:
            KernelError: E2BIG, sessions follow 4096 tasks already.
        """
        nothing = [{"of": [_ZERO] * MOST_EVENTS}] * len(cpus.possible())
        followed = self._maps["tasks"]
        with lock_folder(self._folder):
            self._take()
            for task in tasks:
                key = (int(task.is_thread), task.id)
                if key not in followed:
                    followed[key] = nothing

    def read_cpus(self) -> dict[int, tuple[Reading, ...]]:
        """Return every event's count on each CPU, since the set began.

        Raises:
            KernelError: a map could not be read.
        """
        with lock_folder(self._folder):
            self._take()
            values: Any = self._maps["sums"][0]
        return {
            cpu: self._readings((value,))
            for cpu, value in zip(cpus.possible(), values, strict=True)
        }

    def read_tasks(self, tasks: Iterable[Task]) -> Mapping[Task, tuple[Reading, ...]]:
        """Return every event's count while these tasks ran, since they are followed.

        Raises:
            KernelError: a map could not be read.
        """
        followed: Any = self._maps["tasks"]
        with lock_folder(self._folder):
            self._take()
            return {task: self._readings(followed[int(task.is_thread), task.id]) for task in tasks}

    def unread(self) -> int:
        """Readings that the kernel refused, since the set began."""
        counts: Any = self._maps["unread"][0]
        return sum(counts)

    def _readings(self, values: Sequence[Any]) -> tuple[Reading, ...]:
        """The sums of values of CPUs."""
        sums = []
        for event in range(self._events):
            parts = [value.of[event] for value in values]
            sums.append(
                (
                    sum(part.counter for part in parts),
                    sum(part.enabled for part in parts),
                    sum(part.running for part in parts),
                )
            )
        return tuple(sums)

    def _take(self) -> None:
        """Add the counts of each CPU up to now."""
        for cpu in cpus.online():
            try:
                self._program.test_run(cpu=cpu)
            except KernelError as error:
                if error.errno != errno.ENXIO:  # it went offline
                    raise

    def close(self) -> None:
        """End this session; the last one ends the counting. Again is harmless."""
        self._owned.close()


def _folder(bpffs: str) -> Folder:
    with ExitStack() as held:
        parent_folder = held.enter_context(reach_bpffs(bpffs))
        for name, mode in _FOLDERS:
            try:
                parent_folder = held.enter_context(parent_folder.make(name, mode))
            except KernelError as error:
                if error.errno != errno.EPERM or not error.why:
                    raise
                why = f"{error.what}: {error.why}"  # it is there, and another user's
                raise NotSupportedError("sharing counters", why) from None
        return Folder.reach(parent_folder.path)


def _open_sets(folder: Folder) -> Map:
    """The list of links; made if there is none."""
    path = f"{folder.place}/{_SETS.name}"
    node = folder.find(_SETS.name)
    if node is None:
        sets = Map.create(_SETS)
        try:
            sets.pin(path)
        except BaseException:
            sets.close()
            raise
        return sets
    with node:
        node.require_trusted()
    sets = Map.open(path)
    try:
        _require_shapes({_SETS.name: _SETS}, {_SETS.name: sets}, f"{folder.path}/{_SETS.name}")
    except BaseException:
        sets.close()
        raise
    return sets


def _require_shapes(specs: Mapping[str, MapSpec], maps: Mapping[str, Map], path: str = "") -> None:
    for name, opened in maps.items():
        if different := differences(specs[name], opened.info):
            why = f"the map has {', '.join(different)}"
            fix = f"rm {path}" if path else ""
            raise KernelError("share counters", errno.EINVAL, path or name, why=why, fix=fix)


def _forget_ended(sets: Map) -> None:
    """Make room: leave out the links that are gone."""
    for identity, entry in list(sets.items()):
        with ExitStack() as stack:
            try:
                stack.enter_context(Link.from_id(_ENTRY.unpack(entry)[0]))
            except KernelError as error:
                if error.errno != errno.ENOENT:
                    raise
                del sets[identity]
