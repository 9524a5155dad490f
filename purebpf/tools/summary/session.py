"""The live part: load, attach, wait, and read the counts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from purebpf.closable import Closing
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.programs import statistics
from purebpf.measure import targets, wait
from purebpf.measure.privileges import needing
from purebpf.measure.stop import HasFileno
from purebpf.measure.target_ends import follow_descendants
from purebpf.observe.instruments import process_tree
from purebpf.observe.instruments.quiesce import settle
from purebpf.observe.instruments.task_filter import bit_words
from purebpf.syscall import host_clock
from purebpf.tools.summary import tables
from purebpf.tools.summary.calls import call, slots
from purebpf.tools.summary.in_flight_filter import InFlightFilter
from purebpf.tools.summary.inflight import Open, open_calls
from purebpf.tools.summary.loading import load_best
from purebpf.tools.summary.loss import losses
from purebpf.tools.summary.request import MODES, SummaryOptions
from purebpf.tools.summary.table import Cost, Faults, Group, OpenCall, SummaryRow, Table

if TYPE_CHECKING:
    from purebpf.tools.summary.faults import FaultCounter

__all__ = ["Summary"]

_COST_S = 0.1
"""How long the kernel measures the programs for `Table.cost`, which makes them slower."""


class Summary(Closing):
    """Counts from when its context is entered until `stop()`; `interval()` reads in between.

    Args:
        options: which calls to count and how; how to print them does not matter here.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`). It
            is counted from its execve on, with everything it forks.

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError: a process, thread or cgroup that does not exist.
        KernelError: the kernel refused something; the message says why, and names a fix.
        NotSupportedError: the kernel lacks a feature that the programs need.
    """

    def __init__(self, options: SummaryOptions, command_pid: int = 0) -> None:
        self._options = options
        self._command_pid = command_pid
        self._total = options.mode == "total"
        self._epoch = 0
        self._interval = 0
        self._due = 1
        """The interval that is waited for, counted from the start of the run."""
        self._owned = ExitStack()
        self._measuring = ExitStack()

    @property
    def hook(self) -> str:
        """The hook of the programs: "tp_btf", "raw_tp" or "tracepoint"."""
        return self._loaded.hook

    @property
    def why_not(self) -> str:
        """Why a better way was refused; "" for the best one."""
        return self._loaded.why_not

    @property
    def abis_known(self) -> bool:
        """True if 32-bit calls are counted apart from 64-bit ones."""
        return self._loaded.abis_known

    def __enter__(self) -> Self:
        with needing("CAP_BPF", "CAP_PERFMON"), ExitStack() as stack:
            self._attach(stack)
            self._owned = stack.pop_all()
        return self

    def _attach(self, stack: ExitStack) -> None:
        options = self._options
        with targets.make_task_filter(
            options, command_pid=self._command_pid, tree=options.tree
        ) as whose:
            options = self._options = options._replace(pids=whose.pids)
            whose = whose._replace(own_pid=os.getpid())
            self._loaded = load_best(self._settings(), self._sizes(), whose, options.hook)
            stack.callback(self._loaded.close)
            self._object = self._loaded.object
            self._maps = self._object.maps
            whose.fill(self._maps)
            process_tree.follow(whose._replace(command_pid=0), self._maps, stack)
            self._faults: FaultCounter | None = None
            if options.faults:
                from purebpf.tools.summary.faults import (
                    FaultCounter,  # most summaries count calls alone
                )

                self._faults = stack.enter_context(FaultCounter(options, whose))
        stack.enter_context(self._measuring)
        if options.cost:
            self._measure()
        self._object.globals["phase"] = 1 + self._epoch
        if self._faults:
            self._faults.start()
        if options.tree and options.pids:
            tgids = self._maps["tgids"]
            follow_descendants(options.pids, lambda pids: tgids.update(dict.fromkeys(pids, 1)))
        self._started_ns = self._begun_ns = host_clock.monotonic_ns()

    def _measure(self) -> None:
        try:
            self._measuring.enter_context(statistics.run_time())
        except (KernelError, NotSupportedError):  # CAP_SYS_ADMIN, Linux 5.8: the cost stays zero
            return

    def _settings(self) -> dict[str, Any]:
        options = self._options
        return {
            "mode": MODES.index("thread" if options.mode == "command" else options.mode),
            "histograms_wanted": options.histogram,
            "errnos_wanted": options.errno_summary,
            "has_filters": options.has_filters,
            "only_failed": options.only_failed,
            "only_errno": options.errno or 0,
            "has_calls": bool(options.calls),
            "calls": [bit_words(numbers, 9) for numbers in slots(options.calls)],
        }

    def _sizes(self) -> dict[str, int]:
        """Return the sizes of maps; maps that the options do not need are small."""
        options = self._options
        epochs = tables.EPOCHS if options.interval_s else 1
        grouped = not self._total
        named = options.mode in ("thread", "process", "command")
        return {
            "totals": epochs * 2 * tables.SLOTS if self._total else 1,
            "total_histograms": (
                epochs * 2 * tables.SLOTS if self._total and options.histogram else 1
            ),
            "rows": options.row_entries if grouped else 4096,
            "histograms": (
                1 if not options.histogram else options.histogram_entries if grouped else 64
            ),
            "errors": options.error_entries if options.errno_summary else 1,
            "names": max(options.row_entries // 4, 1) if named else 1,
        }

    def wait(self, *ends: HasFileno) -> bool:
        """Sleep until an interval or the duration is over, or one of `ends` is readable.

        True when the run is over, False when only the interval is.
        """
        options, started = self._options, host_clock.own_s(self._started_ns)
        over = None if options.duration_s is None else started + options.duration_s
        pause = None
        if options.interval_s is not None:
            pause = started + self._due * options.interval_s
        is_over = False
        if self._interval == 0:  # the kernel measures the programs for a moment, once
            measured = started + _COST_S
            is_over = wait.until(over, ends, pause=min(measured, pause or measured))
        self._measuring.close()
        return is_over or wait.until(over, ends, pause=pause)

    def interval(self) -> Table:
        """Return the calls that returned since the start or the last call of this.

        Intervals that passed before there was time for their table are part of the next one. Needs
        `SummaryOptions.interval_s`, which makes room for calls during the read.

        Raises:
            KernelError: a map could not be read.
        """
        old = self._epoch
        self._epoch = 1 - old
        self._object.globals["phase"] = 1 + self._epoch
        table = self._read(old, host_clock.monotonic_ns(), ())
        tables.clear(self._maps, old, total=self._total, buckets=self._options.histogram)
        self._interval += 1
        self._due = max(self._due, self._count_intervals()) + 1
        return table

    def _count_intervals(self) -> int:
        """Intervals that are over by now."""
        if not self._options.interval_s:
            return 0
        return int((host_clock.monotonic_ns() - self._started_ns) / 1e9 / self._options.interval_s)

    def stop(self) -> Table:
        """End the counting, read the remaining counts, and close.

        Raises:
            KernelError: a map could not be read.
        """
        with self._owned:
            self._object.globals["phase"] = 0
            if self._faults:
                self._faults.stop()
            ended_ns = host_clock.monotonic_ns()
            settle()
            opened = open_calls(self._object)
            self._loaded.links.close()
            return self._read(self._epoch, ended_ns, opened)

    def close(self) -> None:
        """End it without a result, and release its resources; again is harmless."""
        self._owned.close()

    def _read(self, epoch: int, now_ns: int, opened: Sequence[Open]) -> Table:
        options = self._options
        begun_ns, self._begun_ns = self._begun_ns, now_ns
        settle()  # until nothing writes to the epoch that was just left
        counted = tables.collect(self._maps, epoch, total=self._total, buckets=options.histogram)
        wanted = InFlightFilter(options, self._command_pid)
        mine = [opened_call for opened_call in opened if wanted(opened_call)]
        still_open = sum(not open_one.start_ns for open_one in mine)
        return Table(
            mode=options.mode,
            started_ns=begun_ns - self._started_ns,
            duration_ns=now_ns - begun_ns,
            interval=self._interval,
            groups=self._groups(counted, self._faults.take() if self._faults else None),
            open_calls=tuple(self._open_call(open_one, now_ns) for open_one in mine),
            loss=losses(
                self._object.globals["losses"]._asdict(),
                in_flight=len(mine) - still_open,
                still_open=still_open,
                misses=sum(
                    program.info.recursion_misses for program in self._object.programs.values()
                ),
                options=options,
                fault_causes=self._faults.causes() if self._faults else (),
            ),
            cost=self._cost(),
        )

    def _groups(
        self, counted: tables.Counted, faults: dict[int, Faults] | None
    ) -> tuple[Group, ...]:
        mode, others = self._options.mode, self._faults.names() if self._faults else {}
        label = tables.labels(mode, self._maps, others)
        if faults and not self._loaded.has_generations:
            faults = tables.without_generations(counted, faults)
        none = self._faults.none if self._faults else None
        groups = []
        for group in set(faults or ()) - counted.keys():
            counted[group] = {}
        while counted:  # a hundred thousand rows need not be held twice
            group, rows = counted.popitem()
            own = None if faults is None else faults.get(group, none)
            groups.append(Group(label(group), tuple(map(SummaryRow._make, rows.items())), own))
        return tables.by_label(groups) if mode == "command" else tuple(groups)

    def _open_call(self, open_one: Open, now_ns: int) -> OpenCall:
        elapsed_ns = now_ns - open_one.start_ns if open_one.start_ns else None
        return OpenCall(
            open_one.pid, open_one.tid, open_one.comm, call(open_one.nr, open_one.abi), elapsed_ns
        )

    def _cost(self) -> Cost:
        infos = [program.info for program in self._object.programs.values()]
        return Cost(sum(info.run_time_ns for info in infos), sum(info.run_cnt for info in infos))
