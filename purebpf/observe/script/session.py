"""`ScriptSession`: a script that runs."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from purebpf.closable import SoleOwner
from purebpf.errors import AttachError, NotSupportedError, PurebpfError, VerifierError
from purebpf.loader.load.load import load
from purebpf.loader.load.object import Object
from purebpf.loader.perf.probe_threads import ProbeThreads
from purebpf.loader.programs.attachments import Attachments
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.observe.script.attach_points import attach_point
from purebpf.observe.script.names import LocalNames
from purebpf.observe.script.printer import Printer
from purebpf.observe.script.stored_maps import StoredMaps
from purebpf.observe.script.unsafe_return import UnsafeReturnError
from purebpf.observe.script.walked_stacks import LinkStacks, WalkedStacks
from purebpf.script.actions import Action
from purebpf.script.compilation import Compilation
from purebpf.script.lowering.layout import (
    BUSY,
    EXITED,
    LOST,
    LOST_STACKS,
    STACKS,
    STARTED,
    TAI,
    TARGET_CGROUP,
    WALL,
)
from purebpf.script.output.decode import Decoder
from purebpf.script.output.map_rows import needs_processes
from purebpf.script.point import Point
from purebpf.script.script_error import ScriptError, locate
from purebpf.syscall import host_clock
from purebpf.syscall.memory import Memory

if TYPE_CHECKING:
    from purebpf.observe.script.benchmarks import Benchmark
    from purebpf.observe.script.iterations import Iterations
    from purebpf.observe.script.own_signals import OwnSignals

__all__ = ["ScriptSession"]

_PAGE = 4096
_MOST_WARNINGS = 5
_SPECIAL = ("begin", "end")
_BY_HAND = (*_SPECIAL, "self", "bench", "iter")
"""Kinds of blocks that this process runs."""
_USER = frozenset({"uprobe", "uretprobe", "usdt"})
"""Kinds of places whose probes belong to a thread of the chosen process."""
_FIRST_IN_FIRST_RUN = frozenset({"kretprobe", "tracepoint", "rawtracepoint", "profile", "interval",
                                 "software", "hardware"})  # fmt: skip
"""Kinds of places where the kernel runs programs in the order in which they were attached."""
_LOOK_S = 1.0
"""The time between two looks at the thread that probes belong to."""
_PATIENCE_S = 1.0
"""The time for commands of system() that were still waiting at the end."""


class ScriptSession(SoleOwner):
    """Loads and attaches a script when its context is entered, and detaches it at the end.

    Args:
        compilation: the script.
        write: takes the text that the script prints.
        warn: takes lines for standard error.
        is_json: print lines of JSON.
        omits_warnings: do not print the messages of warnf().
        make_printer: makes the printer of events.
        link_stacks: links the walk of user stacks into the object; for scripts with `ustack`.
        cgroup_fd: a descriptor of the cgroup whose tasks are traced; for settings with one.

    Attributes:
        is_over: True once the script has called exit().
        is_stopped: returns True when `drain()` shall leave the events that have come.
        status: the argument of exit().

    Raises, when it is entered; nothing stays open then:
        VerifierError, KernelError, NotSupportedError: the kernel refuses.
        ScriptError: the kernel does not allow path() in a function.
    """

    def __init__(
        self,
        compilation: Compilation,
        write: Callable[[str], object],
        warn: Callable[[str], object],
        *,
        is_json: bool = False,
        omits_warnings: bool = False,
        make_printer: Callable[..., Printer] = Printer,
        link_stacks: LinkStacks | None = None,
        cgroup_fd: int | None = None,
    ) -> None:
        self._link_stacks = link_stacks
        self._cgroup_fd = cgroup_fd
        self._stacks: WalkedStacks | None = None
        self._signals: OwnSignals | None = None
        self._iterations: Iterations | None = None
        self._new_printer, self._omits_warnings = make_printer, omits_warnings
        self._warn = warn
        self.compilation = compilation
        self.is_over = False
        self.status = 0
        self._is_left = False
        self.is_stopped: Callable[[], object] = bool
        self._no_more_commands_s = math.inf
        self._unrun_commands = 0
        self._write, self._is_json = write, is_json
        self._owned = ExitStack()
        self._links = Attachments()
        self._user_links = Attachments()
        self._threads = ProbeThreads(())
        self._looked_s = 0.0
        self._gaps: Counter[int] = Counter()

    def __enter__(self) -> Self:
        with ExitStack() as owned:
            compilation = self.compilation
            self._object = self._load(compilation, owned)
            if self._cgroup_fd is not None:
                self._object.maps[TARGET_CGROUP][0] = self._cgroup_fd
            size = -(-compilation.globals_size // _PAGE) * _PAGE
            memory = Memory(self._object.maps["globals"].fileno(), size, writable=True)
            owned.callback(memory.close)
            self._words = memory.view.cast("Q")
            owned.callback(self._words.release)
            started = host_clock.boottime_ns()
            self._words[STARTED // 8] = started
            self._words[WALL // 8] = time.time_ns() - started
            self._words[TAI // 8] = time.clock_gettime_ns(time.CLOCK_TAI) - started
            ring: RingBuffer[bytes] = RingBuffer(self._object.maps["events"], bytes)
            self._ring = owned.enter_context(ring)
            self._printer = self._make_printer()
            self._owned = owned.pop_all()
        return self

    def _load(self, compilation: Compilation, owned: ExitStack) -> Object:
        try:
            return self._load_linked(compilation, owned)
        except VerifierError as error:
            from purebpf.observe.script.refusals import place_load_refusal

            raise place_load_refusal(error, compilation.units) or error from None

    def _load_linked(self, compilation: Compilation, owned: ExitStack) -> Object:
        if not compilation.walks_user_stacks:
            return owned.enter_context(load(compilation.spec))
        assert self._link_stacks is not None
        stacks = self._stacks = self._link_stacks(compilation.spec)
        owned.callback(stacks.close)
        if stacks.call_graph_why:
            self._warn(f"WARNING: ustack follows frame pointers: {stacks.call_graph_why}")
        return stacks.object

    def _make_printer(self) -> Printer:
        compilation, config = self.compilation, self.compilation.config
        names = self._names = LocalNames(self._object.maps.get(STACKS), self._stacks)
        decoder = Decoder(
            compilation.world,
            [unit.point.name for unit in compilation.units],
            names,
            config.numbers["max_strlen"],
            config.texts["str_trunc_trailer"],
        )
        maps = self._maps = StoredMaps(compilation.maps, self._object.maps, self._words, decoder)
        return self._new_printer(
            compilation.actions,
            maps,
            decoder,
            self._write,
            is_json=self._is_json,
            warn=self._warn,
            place=self._place,
            omits_warnings=self._omits_warnings,
            most_bytes=config.numbers["max_cat_bytes"],
        )

    def _place(self, action: Action, text: str) -> str:
        """Return a message of errorf() or warnf() with its place in the script."""
        compilation = self.compilation
        first, last = (
            locate(compilation.text, source_offset) for source_offset in action.numbers[:2]
        )
        word = "ERROR" if action.kind == "errorf" else "WARNING"
        span = f"{first.line}:{first.column}-{last.column}"
        message = f"{compilation.name}:{span}: {word}: {text}"
        if len(action.numbers) == 2:
            return message
        start, end = action.numbers[2:]
        call = ScriptError("expanded from", start, end)  # of a macro
        return f"{message}\n{call.render(compilation.text, compilation.name, word)}"

    def __exit__(self, *exception: object) -> None:
        with self._owned, self._links:
            self._user_links.close()

    @property
    def fds(self) -> set[int]:
        """Descriptors that are readable when `drain()` is due."""
        stacks = self._stacks.fds if self._stacks is not None else set[int]()
        others = [owner.fileno() for owner in (self._signals, self._iterations) if owner]
        return {self._ring.fileno(), *stacks, *others}

    def pause_ms(self) -> float | None:
        """Return after how long `drain()` is due at the latest; None: after no time."""
        pauses = [_LOOK_S] if self._threads else []
        if self._stacks is not None:
            pauses.append(max(0.0, self._stacks.pause_s()))
        return min(pauses) * 1e3 if pauses else None

    def attach(self) -> int:
        """Run the begin blocks, attach all programs, and return how many there are.

        A function whose returns cannot be traced safely is left out with a warning.

        Raises:
            AttachError, KernelError, NotSupportedError: the kernel refuses, nothing is left, or
                signals cannot be caught here.
            ScriptError: a kprobe that was forced by --unsafe is refused.
        """
        self._run_special("begin")
        names = [unit.point.target for unit in self.compilation.units if unit.point.kind == "self"]
        if names:
            from purebpf.observe.script.own_signals import OwnSignals

            self._signals = self._links.own(OwnSignals(names))
        pairs = self._in_order_of_attaching()
        if any(point.kind in _USER for point, _ in pairs):
            self._threads = ProbeThreads([self.compilation.settings.pid])
        left_out = self._attach(pairs)
        self._start_iterations()
        points = [unit.point for unit in self.compilation.units if unit.point.kind != "bench"]
        count = sum(point.is_counted for point in points) - len(left_out)
        if left_out and not count:
            raise left_out[0]
        if self.compilation.config.texts["missing_probes"] == "ignore":
            left_out = [error for error in left_out if isinstance(error, UnsafeReturnError)]
        for refusal in left_out[:_MOST_WARNINGS]:
            self._warn(f"WARNING: {refusal}")
        if len(left_out) > _MOST_WARNINGS:
            self._warn(f"WARNING: {len(left_out) - _MOST_WARNINGS} more functions, likewise")
        return count

    def _attach(self, pairs: Iterable[tuple[Point, str]]) -> list[AttachError | NotSupportedError]:
        """Attach programs; return why functions are left out."""
        settings, left_out = self.compilation.settings, []
        for point, name in pairs:
            try:
                attach_point(
                    self._object.programs[name],
                    point,
                    settings.pid,
                    self._user_links if point.kind in _USER else self._links,
                    is_unsafe=settings.is_unsafe,
                )
            except (AttachError, NotSupportedError) as error:
                from purebpf.observe.script.refusals import judge_refused_probe

                left_out.append(judge_refused_probe(error, point, self.compilation))
        return left_out

    def _follow_threads(self) -> None:
        """Attach again if a process went on without the thread that its uprobes belonged to."""
        if not self._threads or time.monotonic() < self._looked_s + _LOOK_S:
            return
        self._looked_s = time.monotonic()
        left = self._threads.left()
        if not left:
            return
        threads = ProbeThreads(left)
        self._user_links.close()
        try:
            self._attach(pair for pair in self._in_order_of_attaching() if pair[0].kind in _USER)
        except PurebpfError:  # the process ends now, or has another file: `losses` tells
            self._user_links.close()
            return
        self._threads = threads
        self._gaps.update(left)

    def _start_iterations(self) -> None:
        """Begin to run the programs of `iter` blocks; their run is not waited for."""
        programs = [
            self._object.programs[name]
            for unit, name in self._programs()
            if unit.point.kind == "iter"
        ]
        if not programs:
            return
        from purebpf.loader.attach.iterator import IteratorLink
        from purebpf.observe.script.iterations import Iterations

        pid = self.compilation.settings.pid
        links = []
        for program in programs:
            link = (
                program.attach(pid=pid) if pid and "task" in program.section else program.attach()
            )
            assert isinstance(link, IteratorLink)
            links.append(self._links.own(link))
        self._iterations = self._links.own(Iterations(links, self._leave_iterations))

    def _leave_iterations(self) -> None:
        self._words[EXITED // 8] = 1

    def _in_order_of_attaching(self) -> list[tuple[Point, str]]:
        """Return points and their programs so that blocks of one place run as they are written.

        The kernel runs the program first that was attached last at most kinds of places.
        """
        pairs = [
            (unit.point, name) for unit, name in self._programs() if unit.point.kind not in _BY_HAND
        ]
        first = [pair for pair in pairs if pair[0].kind in _FIRST_IN_FIRST_RUN]
        last = [pair for pair in pairs if pair[0].kind not in _FIRST_IN_FIRST_RUN]
        return [*first, *reversed(last)]

    def begin(self) -> None:
        """Run the begin blocks only."""
        self._run_special("begin")

    def benchmarks(self) -> Iterator[Benchmark]:
        """Run the bench blocks one after the other, and yield their results; they print nothing.

        Raises:
            KernelError: the kernel refuses to run a program.
        """
        from purebpf.observe.script.benchmarks import measure_block

        for unit, name in self._programs():
            if unit.point.kind == "bench":
                yield measure_block(
                    unit.point.target, self._object.programs[name], self._drain_silently
                )

    def _drain_silently(self) -> int:
        """Take events without printing; return the status of exit(), 1 for errorf(), else 0."""
        status = 0
        for data in self._ring.drain():
            kind = self.compilation.actions[int.from_bytes(data[:8], "little")].kind
            if kind in ("clear", "zero", "exit"):
                status = self._printer.take(data) or status
            elif kind == "errorf":
                status = 1
        return status

    @property
    def only_special(self) -> bool:
        """True if there is nothing to wait for: no block but begin and end can run any more."""
        if self._iterations is not None and not self._iterations.is_over:
            return False
        return all(
            unit.point.kind in (*_SPECIAL, "bench", "iter") for unit in self.compilation.units
        )

    def _programs(self) -> Any:
        return zip(self.compilation.units, self.compilation.program_names, strict=True)

    def _run_special(self, kind: str, target: str = "") -> None:
        for unit, name in self._programs():
            if unit.point.kind == kind and unit.point.target == target:
                self._object.programs[name].test_run()

    def drain(self, show: Callable[[], object] = bool) -> None:
        """Take the events that are there, and finish stacks.

        Args:
            show: is called behind the events. If none of them shows a stack, stacks are finished
                after it, which may take a tenth of a second.

        Raises:
            KernelError: a table of the walk could not be filled.
        """
        self._follow_threads()
        if self._stacks is not None and self._prints_names:
            self._stacks.drain()
        for name in self._signals.take() if self._signals is not None else ():
            self._run_special("self", name)
        for data in self._printer.take_all(self._ring.drain()):
            self._take(data)
            if self.is_over or self.is_stopped():
                break
        show()
        if self._stacks is not None and not self._prints_names:
            self._stacks.drain()
        if self._is_left and self._iterations is not None and self._iterations.is_over:
            self.is_over = True

    @cached_property
    def _prints_names(self) -> bool:
        """True if events show stacks or functions of processes, which are followed first."""
        actions = self.compilation.actions
        return any(
            action.kind.startswith("print ") or any(map(needs_processes, action.types))
            for action in actions
        )

    def _take(self, data: bytes) -> None:
        action = self.compilation.actions[int.from_bytes(data[:8], "little")]
        if action.kind == "system" and time.monotonic() > self._no_more_commands_s:
            self._unrun_commands += 1
            return
        status = self._printer.take(data)
        if status is not None:
            self._is_left, self.status = True, status
            self.is_over = self._iterations is None

    def finish(self, *, prints_maps: bool = True) -> None:
        """Detach, take the last events, run the end blocks, and print the maps."""
        for attached in (self._user_links, self._links):
            attached.end()
        self._signals = None
        self._no_more_commands_s = time.monotonic() + _PATIENCE_S
        if self.is_over:  # exit() has stopped the printing of later events
            deque(self._ring.drain(), maxlen=0)
        self._take_rest()
        self.is_over = False
        self._run_special("end")
        if self._stacks is not None:
            self._stacks.stop()
        self._take_rest()
        if prints_maps and self.compilation.config.prints_maps:
            self._printer.print_all()

    def _take_rest(self) -> None:
        for data in self._printer.take_all(self._ring.drain()):
            self._take(data)

    def describe_programs(self) -> list[str]:
        """Return a line for each program: its verified and its loaded instructions."""
        lines = []
        for unit, name in self._programs():
            info = self._object.programs[name].info
            lines.append(
                f"{unit.point.name}: {info.verified_insns} instructions verified, "
                f"{info.xlated_size // 8} loaded"
            )
        return lines

    def rows(self, name: str) -> list[tuple[Any, Any]]:
        """Return the keys and the values of a map in the order of printing."""
        return self._maps.rows(name)

    def lost_events(self) -> int:
        """Return the number of events that found no room in the ring."""
        return self._words[LOST // 8]

    def losses(self) -> list[str]:
        """Return a sentence for each kind of loss."""
        words = self._words
        sentences = []
        if words[LOST // 8]:
            sentences.append(f"Lost {words[LOST // 8]} events: raise perf_rb_pages")
        if words[BUSY // 8]:
            sentences.append(
                f"Lost {words[BUSY // 8]} runs: all scratch memory of a CPU was in use"
            )
        if words[LOST_STACKS // 8]:
            number = words[LOST_STACKS // 8]
            sentences.append(f"Lost {number} kernel stacks: the map of stacks is full")
        if self._unrun_commands:
            sentences.append(
                f"Lost {self._unrun_commands} commands of system(): not run at the end"
            )
        sentences += [
            f"Lost calls of PID {pid}: it goes on without the thread that its uprobes belonged to"
            for pid in self._threads.left()
        ]
        sentences += [
            f"Lost calls of PID {pid}, of up to {count * _LOOK_S:g} s: the thread that its uprobes "
            "belonged to has ended, and they were attached again"
            for pid, count in self._gaps.items()
        ]
        if self._stacks is not None:
            sentences += [cause.what for cause in self._stacks.causes() if cause.lost]
            ends = self._names.cut_stacks()
            sentences += [
                f"{number} different user stacks lack their roots: {end}"
                for end, number in sorted(ends.items())
            ]
        sentences += [
            f"WARNING: Map full; can't update element. {info.name} has {info.entries} keys, and "
            f"{words[info.lost_place // 8]} "
            "updates are missing: raise max_map_keys"
            for info in self.compilation.maps.values()
            if words[info.lost_place // 8]
        ]
        return sentences
