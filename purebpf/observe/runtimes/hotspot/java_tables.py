"""`JavaTables`: JVMs published for bpf_src/include/java_steps.h, and V8s for v8_steps.h, and the
names of their frames.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Container, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from purebpf.closable import Closing
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.maps.map import Map
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.observe.runtimes.hotspot.copied_java import CopiedJava
from purebpf.observe.runtimes.hotspot.java_layout import pack_java_process
from purebpf.observe.runtimes.hotspot.java_names import (
    Answer,
    JavaCodeNames,
    Reading,
    is_outdated,
    read_record,
)
from purebpf.observe.runtimes.hotspot.java_process import (
    UNKNOWN,
    JavaProcess,
    JavaReading,
    find_java,
)
from purebpf.observe.runtimes.v8.v8_layout import pack_v8_process
from purebpf.observe.runtimes.v8.v8_process import V8Process, V8Reading, find_v8
from purebpf.results.model.loss import Cause
from purebpf.runtimes.hotspot.layout import LayoutError
from purebpf.symbols.java_words import split_java
from purebpf.syscall import bpf, host_clock
from purebpf.tuples import NamedTuple

__all__ = ["JavaTables"]

_AGAIN_S, _AGAIN_LATER_S, _MANY_LOOKS = 0.03, 0.2, 20
_MOST_LOOKS = 50
"""At a process that starts: its library is mapped after a while, its first methods are compiled."""
_OLD_COPY_NS = 1_000_000_000
"""Copies of this age are not walked: the code may be another one by now."""

_KEY_BYTES = 24
"""Of a record: struct java_key."""
_BATCH = 512
"""Records whose names are read together."""
_RECHECK_S, _RECHECKED = 1.0, 128
"""Seconds between two looks at the names of interpreted methods, and methods of a look."""


class _Published(NamedTuple):
    """A published JVM or V8."""

    process: int
    generation: int
    identity: int
    runtime: JavaProcess | V8Process


class _Later(NamedTuple):
    """A look that is due."""

    process: int
    identity: int
    looks: int
    due_s: float


class JavaTables(Closing):
    """Publishes how to walk the JVM of each process, and names its frames.

    Args:
        maps: the object's maps, by name; they must stay open.
        lines: whether lines are wanted.

    Attributes:
        names: the names of the frames.
        skipped: why processes with a JVM are not read.
    """

    def __init__(self, maps: Mapping[str, Map], *, lines: bool = False) -> None:
        self._javas, self._v8s = maps["javas"], maps["v8s"]
        self._codes = maps["java_codes"]
        self._stats = maps["java_stats"]
        self._ring = RingBuffer(maps["java_names"], bytes)
        self._over: list[int] = []
        self._later: dict[int, _Later] = {}
        self._published: dict[int, _Published] = {}
        self._by_generation: dict[int, JavaProcess | V8Process] = {}
        self._unloaded: dict[int, tuple[int, int]] = {}  # by generation, and since when it is so
        self._generation = 0
        self._named: set[int] = set()
        self._recheck_due_s = 0.0
        self._named_s = float("-inf")
        self.names = JavaCodeNames(lines=lines)
        self.skipped: dict[int, str] = {}

    @property
    def fds(self) -> tuple[int, ...]:
        """Readable when `drain()` is due: names have come."""
        return (self._ring.fileno(),)

    def publish(self, tgid: int, process: int, identity: int = 0) -> None:
        """Say how to walk the JVM of a process.

        Args:
            tgid: in our PID namespace.
            process: the same in the initial one.
            identity: of the program that it executed; 0: not known.

        Raises:
            KernelError: the kernel refused an element.
        """
        published = self._published.get(tgid)
        if published is not None and not published.identity:
            self._published[tgid] = published._replace(process=process, identity=identity)
        self._look(tgid, process, identity, 0)

    def _look(self, tgid: int, process: int, identity: int, looks: int) -> None:
        """Publish a JVM, or the kinds of code that it had not yet at the last look."""
        is_complete = False
        published = self._published.get(tgid)
        try:
            if published is not None and published.identity == identity:
                is_complete = self._put(tgid, published)
            else:
                self._forget(tgid)
                runtime = find_java(tgid) or find_v8(tgid)
                if runtime is not None:
                    self._generation += 1
                    one = _Published(process, self._generation, identity, runtime)
                    self._published[tgid] = one
                    self._by_generation[one.generation] = runtime
                    is_complete = self._put(tgid, one)
        except NotSupportedError as error:
            self.skipped[tgid] = error.reason
        except (KernelError, LayoutError) as error:
            self.skipped[tgid] = str(error)
        if not is_complete and looks < _MOST_LOOKS:
            after_s = _AGAIN_S if looks < _MANY_LOOKS else _AGAIN_LATER_S
            due = time.monotonic() + after_s
            self._later[tgid] = _Later(process, identity, looks + 1, due)

    def _put(self, tgid: int, published: _Published) -> bool:
        """Write how to walk a JVM; whether all kinds of its code are known."""
        identity, generation = published.identity, published.generation
        reading = self._observe(generation, published.runtime)
        if isinstance(reading, V8Reading):
            table = self._v8s
            packed = pack_v8_process(reading.layout, reading.ranges, identity, generation)
            is_complete = reading.ranges.has_copy
        else:
            table = self._javas
            packed, is_complete = pack_java_process(
                reading.layout, reading.cache, reading.counter, identity, generation
            )
        bpf.map_update_elem(table.fileno(), published.process.to_bytes(4, "little"), packed)
        self.skipped.pop(tgid, None)
        return is_complete

    @property
    def published(self) -> Container[int]:
        """Processes with a published JVM: `feed` needs their records."""
        return self._published

    def end(self, tgid: int) -> None:
        """Forget the JVM of a process with the next `drain`: it ended, or executed a program."""
        self._later.pop(tgid, None)
        if tgid in self._published:
            self._over.append(tgid)

    def _forget(self, tgid: int) -> None:
        """Give up the place of a JVM, and its memory; names that were read stay."""
        published = self._published.pop(tgid, None)
        if published is None:
            return
        self._by_generation.pop(published.generation).close()
        self._unloaded.pop(published.generation, None)
        self._named.add(tgid)
        table = self._javas if isinstance(published.runtime, JavaProcess) else self._v8s
        with suppress(KernelError):  # ENOENT
            bpf.map_delete_elem(table.fileno(), published.process.to_bytes(4, "little"))

    def drain(self) -> None:
        """Take in the names that came, and look again at JVMs that had just started."""
        now = time.monotonic()
        for tgid, later in [each for each in self._later.items() if each[1].due_s <= now]:
            del self._later[tgid]
            self._look(tgid, later.process, later.identity, later.looks)
        records = iter(self._ring.drain())
        while batch := list(islice(records, _BATCH)):
            self._add(batch)
        if now >= self._recheck_due_s:
            self._recheck_due_s = now + _RECHECK_S
            self.names.recheck(self._read, _RECHECKED)
        over, self._over = self._over, []
        for tgid in over:
            self._forget(tgid)

    def _add(self, batch: Sequence[bytes]) -> None:
        """Read the names of some records.

        A reading keeps the pages that it has read. It begins behind the last of the records, so
        that none of its pages is older than the code that they tell of.
        """
        readings: dict[int, Reading | None] = {}
        for raw in batch:
            record = read_record(raw)
            if record.generation not in readings:
                readings[record.generation] = self._read(record.generation)
            reading = readings[record.generation]
            if reading is not None and is_outdated(record, reading):
                reading = readings[record.generation] = self._read(record.generation)
            if not self.names.add(record, reading):
                with suppress(KernelError):  # it has moved, or others went: the next sample tells
                    bpf.map_delete_elem(self._codes.fileno(), raw[:_KEY_BYTES])

    def _read(self, generation: int) -> Reading | None:
        runtime = self._by_generation.get(generation)
        if runtime is None:
            return None
        with suppress(NotSupportedError):
            return self._observe(generation, runtime)
        return None

    def _observe(self, generation: int, runtime: JavaProcess | V8Process) -> Reading:
        """Look at a runtime, and remember since when it has unloaded as many classes as now."""
        began_ns = host_clock.monotonic_ns()
        reading = runtime.look()
        if isinstance(reading, JavaReading):
            unloaded, _ = self._unloaded.get(generation, (None, 0))
            if reading.unloaded != unloaded:
                self._unloaded[generation] = reading.unloaded, began_ns
        return reading

    def look_again_s(self) -> float:
        """Seconds until `drain` is due without a record."""
        due = min((each.due_s for each in self._later.values()), default=None)
        return float("inf") if due is None else max(0.0, due - time.monotonic())

    def has(self, pid: int) -> bool:
        """Return True if the frames of a process have names."""
        return pid in self._published or pid in self._named

    def frames(self, word: int) -> Sequence[Answer]:
        """The functions of a word, innermost first; none for code that is no method."""
        now = time.monotonic()
        if now >= self._named_s + _RECHECK_S:  # the first names of a result
            self.names.recheck(self._read)
        self._named_s = now
        return self.names.frames(split_java(word))

    def of_copy(self, tgid: int, time_ns: int) -> CopiedJava | None:
        """See `JavaProcesses.of_copy`."""
        published = self._published.get(tgid)
        reading = None if published is None else self._read(published.generation)
        if published is None or reading is None:
            return None
        is_old = host_clock.monotonic_ns() - time_ns > _OLD_COPY_NS
        if isinstance(reading, V8Reading):
            return CopiedJava(reading.frames(), self.names.number, is_old=is_old)
        unloaded, since_ns = self._unloaded[published.generation]
        is_other_count = bool(unloaded) and since_ns > time_ns

        def is_unchanged() -> bool:
            if unloaded == UNKNOWN:
                return True
            return not is_other_count and reading.unloaded_now() == unloaded

        return CopiedJava(
            reading.frames(), self.names.number, is_old=is_old, is_unchanged=is_unchanged
        )

    def counts(self) -> dict[str, int]:
        """See `JavaProcesses.counts`."""
        totals: dict[str, int] = {}
        for per_cpu in self._stats.values():
            entry: Any
            for entry in per_cpu:
                for name, value in entry._asdict().items():
                    totals[name] = totals.get(name, 0) + value
        del totals["java_told"]
        return totals | {"java_unnamed": self.names.unread}

    def causes(self) -> tuple[Cause, ...]:
        """Return the losses of Java frames, zero or not."""
        counts = self.counts()
        why = {
            "no code at their address": counts["java_no_blob"],
            "a bytecode that is not of its method": counts["java_no_bytecode"],
            "no frame": counts["java_no_frame"],
            "a leaf in a state that is not known": counts["java_leaf"],
        }
        cut, lost, unread = (
            counts[name] for name in ("java_cut", "java_names_lost", "java_unnamed")
        )
        reasons = ", ".join(f"{count} for {reason}" for reason, count in why.items() if count)
        return (
            Cause(
                "java_cut",
                cut,
                f"{cut} user stacks end at a Java frame that could not be left"
                + (f" ({reasons})" if reasons else ""),
            ),
            Cause(
                "java_unnamed",
                unread + lost,
                f"{unread + lost} Java or JavaScript functions have no name: {lost} found no room "
                f"in a ring, {unread} were freed, replaced or moved",
            ),
            Cause(
                "v8_cut",
                counts["v8_cut"],
                f"{counts['v8_cut']} user stacks end at a frame of V8 that is elsewhere",
            ),
        )

    def hints(self, pids: Collection[int]) -> list[str]:
        """Return the reasons why some of these processes have no Java frames."""
        reasons = {why: pid for pid, why in self.skipped.items() if pid in pids}
        return [f"process {pid} has native frames only: {why}" for why, pid in reasons.items()]

    def close(self) -> None:
        """Close the ring and the memories; again is harmless."""
        self._ring.close()
        for runtime in self._by_generation.values():
            runtime.close()
