"""`Switches`: the programs of bpf_src/offcpu.bpf.c, which cut threads' time at each switch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any

from purebpf import objects
from purebpf.closable import Closing
from purebpf.loader.attach import iterator
from purebpf.loader.load.load import load
from purebpf.observe.instruments import process_tree, sched_compat, stack_maps
from purebpf.observe.instruments.call_graph import load_walking, read_python
from purebpf.observe.instruments.quiesce import settle
from purebpf.observe.unwind.native_machine import native_machine
from purebpf.observe.unwind.tickets import Tickets
from purebpf.results.build.offcpu_rows import BEFORE, ON_CPU, STATES, Place, Span, SpanWaker
from purebpf.syscall import host_clock
from purebpf.tuples import NamedTuple
from purebpf.unwind.sent_registers import NAMES, SentRegisters, read_registers

if TYPE_CHECKING:
    from purebpf.btf.codec.values import Codec
    from purebpf.loader.perf.perf_events import PerfEvents
    from purebpf.observe.instruments.task_filter import TaskFilter
    from purebpf.observe.runtimes.cpython.python_tables import PythonTables
    from purebpf.observe.unwind.programs import EarlierLookup
    from purebpf.observe.unwind.user_stacks import Trace
    from purebpf.spec import ObjectSpec

__all__ = ["ADOPTED", "UNDECIDED", "WANTED", "Listed", "Switches"]

UNDECIDED, ADOPTED, WANTED = range(3)
"""enum verdict of bpf_src/offcpu.bpf.c."""

_UNSEEN, _ON_CPU, _OFF_CPU = range(3)  # enum place


class Listed(NamedTuple):
    """A task that the iterator came by. Times are nanoseconds of CLOCK_MONOTONIC.

    Attributes:
        place: where it was, as far as the programs know.
        verdict: the programs' verdict; UNDECIDED if it did not leave a CPU since they began.
        since_ns: when it came to where it is; 0: before the run began.
        waking_ns: when it was last woken; 0: not since it last ran.
        pending: how it was off the CPU before the verdict: (duration_ns, state, waking_ns).
        is_away: True if it was off the CPU, and its time there is wanted.
        is_on_cpu: whether it ran.
        is_seen: whether the programs know of it, and not only the iterator.
        registers: where it is in user space; None: not known.
        pthread: its thread pointer; 0: not known.
    """

    place: Place
    verdict: int
    since_ns: int
    waking_ns: int
    pending: tuple[int, str, int]
    is_away: bool
    is_on_cpu: bool
    is_seen: bool
    is_kernel_thread: bool
    cpu: int
    registers: SentRegisters | None
    pthread: int = 0


class Switches(Closing):
    """Traces from `start()` to `stop()`.

    Args:
        settings: constants of bpf_src/offcpu.bpf.c.
        sizes: max_entries of its maps.
        whose: the target.
        samples: whether `sample()` will be called.
        call_graph: how user stacks are walked, see `load_walking`.
        earlier: returns the mappings of a process at a time, see `UserStacks`.
        native: as in `PythonTables`, for `python` among the settings.

    Attributes:
        call_graph: the choice.
        walking: finishes stacks that the programs could not; None with frame pointers.
        python: reads Python frames; None where nothing does.

    Raises:
        KernelError, NotSupportedError: the kernel refused; nothing stays open.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        sizes: Mapping[str, int],
        whose: TaskFilter,
        *,
        samples: bool = False,
        call_graph: str = "fp",
        earlier: EarlierLookup | None = None,
        native: bool = False,
    ) -> None:
        self._with_wakers = bool(settings.get("wakers"))
        self.started_ns = self.ended_ns = 0
        with ExitStack() as stack:
            spec = whose.apply(_spec(settings, samples=samples)).resize(**sizes)
            self._object, self.walking, self.call_graph = load_walking(
                *(spec, call_graph if settings.get("user_stacks", True) else "", load),
                *(stack, earlier),
                lines=bool(settings.get("python_lines")),
            )
            self.python = self._read_python(settings, stack, native=native)
            self._tickets = Tickets()
            self.maps = self._object.maps
            whose.fill(self.maps)
            self._by_name = whose.comm is not None
            process_tree.follow(whose._replace(command_pid=0), self.maps, stack)
            for name, program in self._object.programs.items():
                if name == "list_tasks":
                    self._list = stack.enter_context(iterator.attach(program))
                elif name != "on_sample":
                    stack.enter_context(program.attach())
            self._ring = stack.enter_context(self.maps["direct_samples"].reader())
            self._owned = stack.pop_all()

    def _read_python(
        self, settings: Mapping[str, Any], stack: ExitStack, *, native: bool
    ) -> PythonTables | None:
        if self.walking is None or not settings.get("python"):
            return None
        lines = bool(settings.get("python_lines"))
        tasks = bool(settings.get("python_async"))
        return read_python(
            *(self._object, self.walking, stack), lines=lines, native=native, tasks=tasks
        )

    def sample(self, events: PerfEvents) -> None:
        """Also sample running code, at each overflow of these, from `start()` on."""
        for event in events:
            self._owned.enter_context(
                self._object.programs["on_sample"].attach(event, enable=False)
            )

    def fileno(self) -> int:
        """Readable when there are direct samples to `drain()`."""
        return self._ring.fileno()

    def follow(self, pids: Collection[int]) -> None:
        """Take in processes that exist already."""
        self.maps["tgids"].update(dict.fromkeys(pids, 1))

    def has_wanted_name(self, pid: int) -> bool:
        """Return False for a process without the name that was asked for."""
        return not self._by_name or pid in self.maps["tgids"]

    def start(self) -> None:
        """Begin."""
        self.started_ns = host_clock.monotonic_ns()
        self._object.globals["started_ns"] = self.started_ns
        self._object.globals["phase"] = True

    def stop(self) -> None:
        """End; the counts can still be read."""
        self._object.globals["phase"] = False
        settle()
        self.ended_ns = host_clock.monotonic_ns()

    def forget_listed(self, *, forget: bool = True) -> None:
        """From now on forget each task that `list_tasks` gives; only while nothing is traced."""
        self._object.globals["forgets"] = forget

    def forget_tasks(self) -> None:
        """Forget all tasks; only while nothing is traced.

        Raises:
            OSError: the iterator could not be read.
        """
        self.forget_listed()
        try:
            self._list.read()
        finally:
            self.forget_listed(forget=False)

    def forget_counts(self) -> None:
        """Forget the counts, and all stacks; only while nothing is traced.

        Raises:
            KernelError: a map refused.
        """
        for name in ("sums", "samples", "stacks"):
            self.maps[name].clear()
        self._tickets = Tickets()
        if self.walking is not None:
            self.walking.count_anew()

    def forget_python_names(self) -> None:
        """Number Python's code anew; only while nothing is traced, and all stacks have names."""
        assert self.python is not None
        for name in ("python_codes", "python_functions"):
            self.maps[name].clear()
        self._object.globals["python_number"] = 0
        self.python.names.forget()

    def finish_all(self) -> None:
        """Finish the stacks that `finish` left for later, once everything has come. Raises as
        `finish` does.
        """
        if self.walking is not None:
            self.walking.finish()
        self.finish()

    def look(self) -> None:
        """Read the counts of all threads up to now, and go on."""
        self.ended_ns = host_clock.monotonic_ns()

    def drain(self) -> Iterator[tuple[Place, Span]]:
        """The times at or above the threshold that ended since the last call."""
        for sample in self._ring.drain():
            yield (
                self._place(sample.key),
                Span(1, sample.blocked_ns, sample.runnable_ns, sample.ended_ns, sample.cpu),
            )

    def sums(self) -> Iterator[tuple[Place, Span]]:
        """The times below the threshold, and those that found the ring full, by place.

        Raises:
            KernelError: the map could not be read.
        """
        for key, value in self.maps["sums"].items():
            yield self._place(key), Span(value.count, value.blocked_ns, value.runnable_ns)

    def samples(self) -> Iterator[tuple[Place, int]]:
        """Return how often each place was sampled.

        Raises:
            KernelError: the map could not be read.
        """
        for key, count in self.maps["samples"].items():
            place = Place(key.comm, key.tgid, key.tid, ON_CPU, key.user_stack, key.kernel_stack)
            yield place, count

    def list_tasks(self) -> Iterator[Listed]:
        """Every task of the machine, as of this call; a machine may have 100,000.

        Raises:
            KernelError, OSError: the iterator could not be read.
        """
        decoder = self._task_codec
        data = self._list.read()
        return (
            self._list_task(decoder.decode(data, offset))
            for offset in range(0, len(data), decoder.size)
        )

    def unseen(self) -> set[int]:
        """The threads that have not left a CPU or come to one since the beginning.

        Raises: as `list_tasks`.
        """
        (place, place_at), (tid, tid_at) = (
            _member(self._task_codec, path)
            for path in (("known", "place"), ("known", "key", "tid"))
        )
        self._object.globals["brief"] = True
        try:
            data = self._list.read()
        finally:
            self._object.globals["brief"] = False
        size = self._task_codec.size
        return {
            tid.decode(data, at + tid_at)
            for at in range(0, len(data), size)
            if place.decode(data, at + place_at) == _UNSEEN
        }

    @cached_property
    def _task_codec(self) -> Codec:
        from purebpf.btf.codec.codecs import codec

        btf = self.maps["sums"].btf
        assert btf is not None
        (type_id,) = btf.find("listed_task")
        return codec(btf, type_id)

    def finish(self) -> None:
        """Finish the stacks that the programs could not, of all places that were read so far.

        Raises:
            KernelError: a table could not be filled.
        """
        if self.walking is not None:
            self.walking.drain()
            self._tickets.take(self.walking.take())
        if self.python is not None:
            self.python.drain()

    def resolve(self, place: Place, same: Mapping[int, int]) -> Place:
        """A place with the numbers that its stacks have now: `same` of `finished`."""
        resolve = self._tickets.resolve
        waker = place.waker
        if waker is not None:
            waker = waker._replace(user=resolve(waker.user, same))
        return place._replace(user=resolve(place.user, same), waker=waker)

    def finished(self, stored: Mapping[int, Trace]) -> tuple[Mapping[int, Trace], dict[int, int]]:
        """The stacks that were finished by number, and which of them the programs `stored`, too."""
        return self._tickets.traces, self._tickets.same(stored)

    def stats(self) -> dict[str, int]:
        """`struct stats`, `stack_stats` and `unwind_stats` by field, and `recursion_misses`."""
        misses = sum(
            program.info.recursion_misses
            for name, program in self._object.programs.items()
            if name != "list_tasks"
        )
        return (
            stack_maps.sum_up(self.maps["stats"])
            | stack_maps.sum_up(self.maps["stack_stats"])
            | stack_maps.sum_up(self.maps["unwind_stats"])
            | stack_maps.sum_up(self.maps["python_stats"])
            | {"recursion_misses": misses}
        )

    def traces(self) -> dict[int, Trace]:
        """The stacks by number."""
        return stack_maps.traces(self.maps["stacks"])

    def look_up(self, numbers: Iterable[int], traces: dict[int, Trace]) -> None:
        """Add the stacks with these numbers that are not `traces`: each is read once.

        Raises:
            KernelError: the map could not be read.
        """
        stack: Any
        for number in numbers:
            if number not in traces and (stack := self.maps["stacks"].get(number)) is not None:
                traces[number] = stack_maps.trace(stack)

    def close(self) -> None:
        """Detach and unload; again is harmless."""
        self._owned.close()

    def _place(self, key: Any) -> Place:
        waker = None
        if self._with_wakers:
            waker = SpanWaker(
                key.waker_comm,
                key.waker_tgid,
                key.waker_tid,
                key.waker_user_stack,
                key.waker_kernel_stack,
            )
        stacks = key.user_stack, key.kernel_stack
        return Place(
            key.comm, key.tgid, key.tid, STATES[key.state], *stacks, waker, holder=key.holder
        )

    def _list_task(self, task: Any) -> Listed:
        traces = task.known
        place = self._place(traces.key)
        is_seen = traces.place != _UNSEEN
        if not is_seen:
            place = place._replace(state=STATES[task.state] if task.state < len(STATES) else BEFORE)
        return Listed(
            place,
            traces.verdict,
            traces.since_ns,
            traces.waking_ns,
            (traces.pending_ns, STATES[traces.pending_state], traces.pending_waking_ns),
            traces.place == _OFF_CPU if is_seen else not task.on_cpu,
            traces.place == _ON_CPU if is_seen else bool(task.on_cpu),
            is_seen,
            bool(task.is_kernel_thread),
            traces.cpu,
            self._registers(task),
            task.pthread,
        )

    def _registers(self, task: Any) -> SentRegisters | None:  # noqa: ANN401 - see _list_task
        if not task.has_registers:
            return None
        words = [getattr(task.registers, name) for name in NAMES]
        return read_registers(native_machine(), words)


def _member(codec: Codec, path: Iterable[str]) -> tuple[Codec, int]:
    """Return the codec of a nested member and its offset, in bytes."""
    from purebpf.btf.codec.structs import StructCodec  # not before everything is attached

    offset = 0
    for name in path:
        assert isinstance(codec, StructCodec), codec
        (place,) = [place for place in codec.places() if place.name == name]
        codec, offset = place.codec, offset + place.bit_offset // 8
    return codec, offset


def _spec(settings: Mapping[str, Any], *, samples: bool) -> ObjectSpec:
    programs = ["on_switch", "on_newtask", "on_exec", "list_tasks"]
    if settings.get("split"):
        programs.append("on_waking")
    if samples:
        programs.append("on_sample")
    spec = objects.spec("offcpu").only(*programs).set(**settings, max_depth=stack_maps.max_depth())
    return sched_compat.adapt(spec)
