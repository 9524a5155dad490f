"""`Sampling`: the attached program of the profiler, and the readers of process events.

Modules that only a running session needs are imported after the attach: see
docs/design/0002-start.md.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from purebpf import objects
from purebpf.closable import Closing
from purebpf.errors import NotSupportedError
from purebpf.loader.load.load import load
from purebpf.loader.maps.map import Map
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.measure import targets
from purebpf.measure.privileges import RECORD_INSTEAD, needing
from purebpf.measure.process_watch import ProcessWatch
from purebpf.measure.target_ends import TargetEnds, first_pids, follow_descendants
from purebpf.observe.instruments import stack_maps
from purebpf.observe.instruments.call_graph import PYTHON_PROCESSES, load_walking, read_python
from purebpf.syscall import proc

if TYPE_CHECKING:
    from purebpf.observe.instruments.own_program import OwnProgram
    from purebpf.observe.instruments.process_tree import ProcessTree
    from purebpf.observe.instruments.task_filter import TaskFilter
    from purebpf.observe.runtimes.cpython.python_tables import PythonTables
    from purebpf.spec import ObjectSpec
    from purebpf.symbols.address_spaces import Earlier
    from purebpf.tools.profile.request import ProfileOptions

__all__ = ["Sampling"]

_FEW_HERTZ = 199
_FASTEST_HZ = 100_000
"""For events with a period, whose rate is not known."""
_PATIENT_HERTZ = 25
"""Up to here most processes have no sample, and nothing is missing before the first."""
_FEW_PAGES, _MANY_PAGES = 256, 1024
"""Of a ring of copies: for 60, and for 240, as a CPU may save up 200.

The first samples of a program all are copied, until its files have been read: with cold caches, on
a busy machine, that takes longer than 60 samples at a high rate.
"""


class Sampling(Closing):
    """Samples from `attach()` until its events are disabled; `drain` it whenever `fds` say so.

    Args:
        options, command_pid: as of `Profiler`.

    Attributes, once it is attached:
        loaded: the object.
        events: the events that sample.
        watch: follows processes, and passes their records on to the walk.
        targets: `options.pids`, as long as they live.
        tree: follows children; None where that is not asked for, or not supported.
        call_graph: how user stacks are walked.
        walking: finishes user stacks; None where they are walked by frame pointers.
        own: a user's own program that sees the samples; None: there is none.
        max_depth: of a stack.
        started: time.monotonic() when it began.
    """

    def __init__(self, options: ProfileOptions, command_pid: int) -> None:
        self._options = options
        self._command_pid = command_pid
        self._owned = ExitStack()
        self.max_depth = stack_maps.max_depth()
        self.tree: ProcessTree | None = None
        self.own: OwnProgram | None = None

    @cached_property
    def by_tree(self) -> bool:
        """True if a program follows children or names.

        Otherwise, the children of a command inherit its event.
        That program needs the kernel's types. The events of children that end sooner than their
        first period never count.
        """
        asked = self._options.tree and self._options.pids
        if self._options.comm is not None:
            return True
        if not (self._command_pid or asked):
            return False
        from purebpf.observe.instruments.process_tree import is_supported

        return is_supported()

    @cached_property
    def slot_ns(self) -> int:
        """The length of a time slot in the keys of counts; 0 without `timeline`."""
        if not self._options.timeline:
            return 0
        from purebpf.tools.profile.timeline import slot_length_ns

        return slot_length_ns(self._options)

    def attach(self) -> None:
        """Load the program and attach it; nothing stays open if that fails.

        Raises: as `Profiler`.
        """
        asked = needing("CAP_BPF", "CAP_PERFMON", without_root=RECORD_INSTEAD)
        with asked, ExitStack() as stack:
            self._attach(stack)
            self._owned = self._owned_python = stack.pop_all()

    def _attach(self, stack: ExitStack) -> None:
        options = self._options
        with ExitStack() as loading:
            pinned = {
                name: loading.enter_context(Map.open(path))
                for name, path in (
                    ("cgroup_ids", options.cgroup_map),
                    ("mount_namespaces", options.mount_namespace_map),
                )
                if path is not None
            }
            whose = loading.enter_context(targets.make_task_filter(options, thread_option="-L"))
            whose = whose._replace(cpus=())  # the events are on those
            chosen = self._choose_program()
            by_fp = f"{chosen}_fp"
            wanted = chosen.replace("on_sample", "is_wanted")
            before_own = () if options.program is None else (wanted,)
            spec = whose.apply(self._spec().only(chosen, by_fp, *before_own))
            if self.by_tree:
                from purebpf.observe.instruments.process_tree import CAPACITY

                spec = spec.set(has_tgids=True).resize(tgids=CAPACITY)
            self.loaded, self.walking, self.call_graph = load_walking(
                spec,
                options.call_graph if options.user_stacks else "",
                lambda spec: load(spec, maps=pinned),
                stack,
                self._earlier,
                pages=_FEW_PAGES if 0 < self._rate() <= _FEW_HERTZ else _MANY_PAGES,
                fp_program=by_fp,
                always=before_own,
                lines=options.python_lines,
            )
            whose.fill(self.loaded.maps)
            self._follow(stack, whose)
        self._owned_python = stack
        if options.gil and self.python is None:
            raise NotSupportedError(
                "--gil", "it needs Python frames, so neither --no-python, -K nor --call-graph fp"
            )
        self.events = stack.enter_context(self._open_events())
        pids = first_pids(options.pids, tree=options.tree)
        only = None if self.by_tree or self._command_pid else frozenset(pids) or None
        is_patient = 0 < self._rate() <= _PATIENT_HERTZ
        self.watch = stack.enter_context(
            ProcessWatch(self, pids, self._command_pid, only=only, is_patient=is_patient)
        )
        self._attach_programs(stack, before_own)
        self.note_start()
        if self.by_tree or not self._command_pid:  # else execve enables
            self.events.enable()
        command = (self._command_pid,) if self._command_pid else ()
        self.watch.followed.snapshot(pids or command, self.watch.collect)
        if command:  # it may be over before the reader of its Python frames is imported
            _ = self.python

    def _attach_programs(self, stack: ExitStack, before_own: tuple[str, ...]) -> None:
        """Attach the profiler's program, or a user's own program in front of it."""
        programs = dict(self.loaded.programs)
        first = [programs.pop(name) for name in before_own]
        (program,) = programs.values()
        if self._options.program is None:
            for event in self.events:
                stack.enter_context(program.attach(event, enable=False))
            return
        from purebpf.observe.instruments.own_program import OwnProgram

        self.own = stack.enter_context(OwnProgram(self._options.program))
        self.own.attach(self.events, first=first[0], rest=program)

    def _rate(self) -> int:
        """Samples of a CPU in a second; 0: not known."""
        return 0 if self._options.period else self._options.frequency

    @property
    def rate_hz(self) -> int:
        """Samples of a CPU in a second, at most."""
        return self._rate() or _FASTEST_HZ

    def _earlier(self, pid: int, time_ns: int) -> Earlier | None:
        """Return the mappings of a process at a time."""
        return self.watch.followed.spaces.earlier(pid, time_ns)

    def _follow(self, stack: ExitStack, whose: TaskFilter) -> None:
        """Sample the children of the command, or of the processes, where the options say so."""
        maps = self.loaded.maps
        if self._options.pids or self._options.tids or self.by_tree:
            from purebpf.observe.instruments import process_tree

            whose = whose._replace(command_pid=self._command_pid if self.by_tree else 0)
            self.tree = process_tree.follow(whose, maps, stack, tree=self.by_tree)
        if self.by_tree:
            follow_descendants(
                self._options.pids, lambda missing: maps["tgids"].update(dict.fromkeys(missing, 1))
            )
        self.targets = stack.enter_context(TargetEnds(self._options.pids))

    def _choose_program(self) -> str:
        """The one that reads the kernel's types, where something needs them."""
        by_mount = self._options.mount_namespace_map is not None
        typed = by_mount or targets.PidNamespace.own().needs_types()
        return "on_sample_typed" if typed else "on_sample"

    def _spec(self) -> ObjectSpec:
        options = self._options
        return (
            objects.spec("profile")
            .set(
                user_stacks=options.user_stacks,
                python=options.python,
                python_lines=options.python_lines,
                python_async=options.async_tasks,
                gil_only=options.gil,
                kernel_stacks=options.kernel_stacks,
                include_idle=options.include_idle,
                by_thread=options.by_thread or bool(options.tids),
                slot_ns=self.slot_ns,
                has_cgroup_ids=options.cgroup_map is not None,
                has_mount_namespaces=options.mount_namespace_map is not None,
                max_depth=self.max_depth,
            )
            .resize(
                counts=options.hash_storage_size,
                stacks=options.stack_storage_size,
                python_tasks=PYTHON_PROCESSES if options.async_tasks else 1,
            )
        )

    def _open_events(self) -> PerfEvents:
        options = self._options
        rate = (None, options.period) if options.period else (options.frequency, None)
        if self.by_tree or not self._command_pid:
            return PerfEvents.sampling(*rate, cpus=options.cpus or None, disabled=1)
        pid = self._command_pid
        return PerfEvents(
            [PerfEvent.sampling(*rate, pid=pid, inherit=1, enable_on_exec=1, disabled=1)]
        )

    @cached_property
    def python(self) -> PythonTables | None:
        """The reader of Python frames; None where stacks are walked by frame pointers."""
        if self.walking is None or not self._options.python:
            return None
        return read_python(
            *(self.loaded, self.walking, self._owned_python),
            lines=self._options.python_lines,
            native=self._options.native,
            tasks=self._options.async_tasks,
        )

    def prepare(self) -> PythonTables | None:
        """Import the modules that the first copies need, 30 ms of CPU time; return `python`."""
        if self.walking is not None:
            self.walking.prepare()
        return self.python

    @property
    def is_prepared(self) -> bool:
        """True if `prepare` has nothing to import."""
        return self.walking is None or self.walking.is_prepared

    def note_start(self) -> None:
        """Begin to measure the time."""
        self.started, self._idle_before_s = time.monotonic(), proc.idle_seconds()

    def times_s(self) -> tuple[float, float]:
        """Return the time since sampling began, and the idle time of the events' CPUs."""
        elapsed_s = time.monotonic() - self.started
        before_s, now_s = self._idle_before_s, proc.idle_seconds()
        cpus = {event.cpu for event in self.events} & before_s.keys() & now_s.keys()
        return elapsed_s, sum(max(0.0, now_s[cpu] - before_s[cpu]) for cpu in cpus)

    def drain(self) -> None:
        """Process the events of processes, and the stacks that BPF could not finish."""
        self.watch.catch_up()
        if self.walking is not None:
            self.walking.drain()
        if self.python is not None:
            self.python.drain()

    def close(self) -> None:
        """Detach and close everything; again is harmless."""
        self._owned.close()
