"""`UserStacks`: true user stacks of an object that includes bpf_src/include/user_stacks.h.

    stacks = UserStacks(loaded.maps, loaded.globals, tables=True)   before the first sample
    stacks.fds                                                      readable: drain is due
    stacks.drain()                                                  take what BPF could not finish
    stacks.finish()                                                 at the end: finish all of it
    stacks.take()                                                   what that counts

A sample that the program cannot finish comes here with the key of its count, and is counted here
once. In the tables mode the drain also publishes the parts that the walk lacked: after a while
nothing is sent any more. Modules for that alone are imported with the first copy.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any

from purebpf.closable import Closing
from purebpf.observe.unwind.copy_rings import CopyRings
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.rings.record_types import RecordMap
    from purebpf.observe.symbols.mapped_files import Identity
    from purebpf.observe.unwind.generated_stacks import GeneratedStacks
    from purebpf.observe.unwind.programs import EarlierLookup
    from purebpf.observe.unwind.stack_finisher import MissedStack, StackFinisher
    from purebpf.symbols.proc_maps import Mapping as CodePlace
    from purebpf.unwind.sent_registers import SentRegisters

__all__ = ["Finished", "Trace", "UserStacks"]

_TURN_S = 0.05
"""How long a `drain` may work; the rings are read every 5 ms of it."""
_SLICE_S = 0.005
_MOST_WAITING = 64 << 20
_MOST_KINDS = 4096
"""Of copies: so many are remembered."""
_IMPORTED = tuple(
    f"purebpf.{name}"
    for name in (
        "wire.perf_format",
        "loader.rings.record_types",
        "symbols.address_spaces",
        "observe.symbols.elf_files",
        "observe.unwind.code_files",
        "observe.unwind.process_stacks",
        "observe.unwind.stack_finisher",
    )
)
"""In steps of some milliseconds, each of which needs the ones before."""
_FINISHED = 1
"""`purebpf.unwind.reason.Reason`, which is not needed before there is a copy."""


class Trace(NamedTuple):
    """A stack trace and how it ended.

    Attributes:
        addresses: leaf first.
        reason: a number of `purebpf.unwind.reason.Reason`.
        guessed: frames that followed frame pointers for lack of a rule.
    """

    addresses: tuple[int, ...]
    reason: int
    guessed: int


class Finished(NamedTuple):
    """Equal samples that were finished here.

    `key` is the key of the program's count: the bytes of its struct.
    """

    key: bytes
    trace: Trace


class _Backlog(Closing):
    """A descriptor that is readable while there is work left."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._is_marked = False

    def mark(self, is_behind: bool) -> None:
        """Make it readable, or not."""
        if is_behind != self._is_marked:
            self._is_marked = is_behind
            os.eventfd_write(self.fd, 1) if is_behind else os.eventfd_read(self.fd)

    def close(self) -> None:
        """Close it; again is harmless."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class UserStacks(Closing):
    """Reads the copies, finishes them, and fills the tables.

    Args:
        maps: the object's maps, by name; they must stay open.
        variables: its globals.
        tables: whether the program walks by tables; else it copies every sample.
        earlier: returns the mappings of a process at a time, see `ProcessStacks`.
        limit: how many different samples to remember between two `take`s.
        stack_bytes, pages: of the copies, see `CopyRings`.

    Attributes:
        copies: the copies that came and were processed.
        finished: the copies that reached an outermost frame by rules.
        dropped: samples beyond `limit`.
        most_waiting: bytes of copies that may wait, some thousand of them; then they come first.
        wanted: processes of which copies are unwound; None: all. Copies of other processes keep the
            frames that the program has walked.
        java: reads Java frames; None: they are not walked.
        on_missed: called with each process of a copy, unless its program is over: its tgid in our
            PID namespace and in the initial one, the identity of its program, and its executable
            mappings, if they were just read.
        catch_up: calls `feed` with all records of processes up to now. It is called once the
            mappings of a process were read, which may belong to a later program than its copy's.
        ask: called with each process before it is read; then `feed` should get its records so far.

    Raises:
        KernelError: the kernel refused an event, a ring, or an element of a map.
    """

    def __init__(
        self,
        maps: Mapping[str, RecordMap],
        variables: MutableMapping[str, Any],
        *,
        tables: bool,
        earlier: EarlierLookup | None = None,
        limit: int = 65536,
        stack_bytes: int = 16384,
        pages: int = 256,
    ) -> None:
        self._maps = maps
        self._variables = variables
        self._by_tables = tables
        self._rings = CopyRings(maps["copies"], stack_bytes=stack_bytes, pages=pages)
        self._owned = ExitStack()
        self._owned.enter_context(self._rings)
        self._finisher: StackFinisher | None = None
        self.java: GeneratedStacks | None = None
        self._counts: Counter[Finished] = Counter()
        self._earlier = earlier
        self._limit = limit
        self.wanted: Container[int] | None = None
        self.on_missed: Callable[[int, int, int, list[CodePlace] | None], None] | None = None
        self.catch_up: Callable[[], object] | None = None
        self.ask: Callable[[int], object] = bool
        self._raw: deque[bytes] = deque()
        self._new: deque[MissedStack] = deque()
        self._first: deque[MissedStack] = deque()
        self._waiting: deque[MissedStack] = deque()
        self._kinds: set[tuple[int, int, int, tuple[int, ...]]] = set()
        self._nbytes = 0
        self.most_waiting = _MOST_WAITING
        self._backlog = self._owned.enter_context(_Backlog())
        self._gets_ready = False
        self.copies = 0
        self.finished = 0
        self.dropped = 0

    @property
    def fds(self) -> tuple[int, ...]:
        """Readable when `drain()` is due."""
        java = () if self.java is None else self.java.fds
        return (*self._rings.fds, self._backlog.fd, *java)

    @property
    def lost(self) -> int:
        """Copies that found no room in the ring of their CPU, as the kernel counts them."""
        return self._rings.lost

    @property
    def is_behind(self) -> bool:
        """True if copies wait: the mappings of their processes may be needed."""
        return bool(self._raw or self._new or self._first or self._waiting)

    def waiting_keys(self) -> Iterator[bytes]:
        """Return the keys of the waiting copies."""
        self.collect()
        while self._raw:
            self._decode_one()
        for missed in (*self._new, *self._first, *self._waiting):
            yield missed.key

    @property
    def is_prepared(self) -> bool:
        """True if the finisher of stacks is imported."""
        return self._finisher is not None

    def prepare(self) -> None:
        """Import the finisher of stacks, 0.1 s, now: a burst may follow the first copy."""
        if self._finisher is None:
            self._finisher = self._owned.enter_context(self._make_finisher())

    def get_ready(self, pids: Iterable[int]) -> None:
        """Have `drain` build the tables of all files of these processes, and of later ones.

        Without this, it builds only those that stacks have missed. Many stacks that miss tables at
        once, as in the first moments of a program with a hundred libraries, cannot all be copied.
        """
        self.prepare()
        assert self._finisher is not None
        for pid in pids:
            self.ask(pid)
            self._finisher.get_ready(pid)
        self._gets_ready = True
        self._backlog.mark(is_behind=True)

    @property
    def is_getting_ready(self) -> bool:
        """True if `drain` has tables of `get_ready` left to build."""
        return self._gets_ready

    def feed(self, record: object) -> None:
        """Handle a record of a process, as `SideBand` reports it."""
        if self.java is not None:
            self.java.feed(record)
        if self._finisher is not None:  # else nothing is known that could change
            self._finisher.feed(record)

    def look_again_s(self) -> float:
        """Seconds until `drain` is due without a record."""
        return float("inf") if self.java is None else self.java.look_again_s()

    @property
    def followed(self) -> Container[int]:
        """Processes for which `feed` needs the mappings; it needs no others."""
        return () if self._finisher is None else self._finisher.followed

    def drain(self) -> bool:
        """Read the pending copies, and build tables and finish stacks for some milliseconds.

        Tables come first: stacks whose parts the walk no longer lacks are no longer copied. If
        there is more to do, one of `fds` stays readable.

        Returns:
            Whether there is more to do.

        Raises:
            FormatError: a record is not in the program's form.
            KernelError: a table could not be filled.
        """
        deadline = time.monotonic() + _TURN_S
        if self.java is not None:
            self.java.drain()
        self._collect()
        if self._finisher is not None:
            self._finisher.update()
        is_behind = self._work()
        while is_behind and time.monotonic() < deadline:
            self._collect()
            is_behind = self._work()
        if self._finisher is not None and not is_behind:
            self._gets_ready = is_behind = self._finisher.work_ahead()
        self._backlog.mark(is_behind)
        return is_behind

    def rest(self) -> None:
        """Drop data that can be read again."""
        self._kinds.clear()
        if self._finisher is not None:
            self._finisher.rest()

    def finish(self) -> None:
        """Finish everything that has come. Raises as `drain` does."""
        if self.java is not None:
            self.java.drain()
        self._collect()
        while self.is_behind:
            self._advance()

    def collect(self) -> None:
        """Empty the rings, which hold some 60 copies each, in the middle of long work."""
        if self._nbytes > self.most_waiting:
            return
        for data in self._rings.consume():
            self._raw.append(data)
            self._nbytes += len(data)

    def _collect(self) -> None:
        """Empty the rings: records that are not read in time are lost."""
        self.collect()
        while self._nbytes > self.most_waiting:
            self._advance()

    def _work(self) -> bool:
        """Do something for 5 ms; whether there is more to do."""
        deadline = time.monotonic() + _SLICE_S
        while self._raw or self._new or self._first:
            self._advance()
            if time.monotonic() >= deadline:
                break
        if self._finisher is not None and self._finisher.work():  # or copies would never end
            return True
        while self._waiting and time.monotonic() < deadline:
            self._advance()
        return self.is_behind

    def _advance(self) -> None:
        """Bring one copy further.

        First their processes are read, which may end soon: later steps can take longer than such a
        process lives. Then new kinds are finished: they show all parts that walks like theirs lack.
        """
        if self._raw:
            self._decode_one()
        elif self._new:
            self._announce_one()
        else:
            self._finish_one()

    def _decode_one(self) -> None:
        self.prepare()
        assert self._finisher is not None
        data = self._raw.popleft()
        decoded = list(self._finisher.records(data))
        for missed in decoded:
            self._meet(missed)
        self._new.extend(decoded)
        self._nbytes += sum([len(missed.copy.stack) for missed in decoded]) - len(data)
        self._rings.lost_records = self._finisher.lost_records
        self._rings.unreadable = self._finisher.unreadable

    def _meet(self, missed: MissedStack) -> None:
        assert self._finisher is not None
        tgid = missed.copy.tgid
        self.ask(tgid)
        met = self._finisher.meet(missed)
        if met.is_over:
            return
        where = tgid, missed.process, missed.identity, met.mappings
        if self.java is not None:
            self.java.publish(*where)
        if self.on_missed is not None:
            self.on_missed(*where)

    def _announce_one(self) -> None:
        assert self._finisher is not None
        missed = self._new.popleft()
        if not (self._by_tables and missed.identity):
            self._finisher.announce(missed)
            self._waiting.append(missed)
        elif self._is_new_kind(missed):
            self._finisher.announce(missed)
            self._first.append(missed)
        else:
            self._waiting.append(missed)

    def _is_new_kind(self, missed: MissedStack) -> bool:
        """Return True if no walk of that program has ended there before."""
        walked = missed.walked
        kind = (missed.process, missed.identity, int(walked.reason), tuple(walked.frames[-1:]))
        if kind in self._kinds:
            return False
        if len(self._kinds) >= _MOST_KINDS:
            self._kinds.clear()
        self._kinds.add(kind)
        return True

    def _finish_one(self) -> None:
        assert self._finisher is not None
        missed = (self._first or self._waiting).popleft()
        self._nbytes -= len(missed.copy.stack)
        if self.wanted is None or missed.copy.tgid in self.wanted:
            frames, reason, guessed = self._finisher.finish(missed)
        else:
            frames, reason, guessed = missed.walked
        self.copies += 1
        self.finished += reason == _FINISHED
        self._count(Finished(missed.key, Trace(tuple(frames), reason, guessed)))

    def unwind(self, pid: int, registers: SentRegisters, stack: bytes) -> Trace:
        """The stack of a thread that sleeps, from its registers and memory."""
        self.prepare()
        assert self._finisher is not None
        self.ask(pid)
        frames, reason, guessed = self._finisher.unwind(pid, registers, stack)
        return Trace(tuple(frames), reason, guessed)

    def held(self, mapping: CodePlace, pid: int) -> int | None:
        """Return the open descriptor of a file that a process has or had mapped.

        Files of processes with copies are opened while the processes live, so they can be read
        after the last path to them is gone. None for all other files. The descriptor stays this
        object's.
        """
        return None if self._finisher is None else self._finisher.held(mapping, pid)

    def noted(self, mapping: CodePlace, pid: int) -> Identity | None:
        """Return the identity of a mapped file, see `CodeFiles.noted`."""
        return None if self._finisher is None else self._finisher.noted(mapping, pid)

    def _count(self, sample: Finished) -> None:
        if sample in self._counts or len(self._counts) < self._limit:
            self._counts[sample] += 1
        else:
            self.dropped += 1

    def _make_finisher(self) -> StackFinisher:
        """Import the finisher of stacks, 0.1 s in all, while copies come."""
        for name in _IMPORTED:
            import_module(name)
            self.collect()
        from purebpf.observe.unwind.stack_finisher import StackFinisher

        return StackFinisher(
            self._maps,
            self._variables,
            tables=self._by_tables,
            earlier=self._earlier,
            catch_up=self._catch_up,
            generated=None if self.java is None else self.java.of_copy,
        )

    def _catch_up(self) -> None:
        if self.catch_up is not None:
            self.catch_up()

    def take(self) -> list[tuple[Finished, int]]:
        """Return the stacks finished since the last time, and how often."""
        counts = list(self._counts.items())
        self._counts.clear()
        return counts

    def count_anew(self) -> None:
        """Forget the counts; tables, and waiting copies, stay."""
        self._counts.clear()
        self.copies = self.finished = self.dropped = 0

    def close(self) -> None:
        """Close rings, tables and files; again is harmless."""
        self._owned.close()
