"""`WindowWriter`: profiles of a window, by service, as files in the spool."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from purebpf import __version__
from purebpf.results.formats.otlp import Attribute, Series, Window, document
from purebpf.results.formats.otlp_series import Weighted, series_of
from purebpf.services.agent.budget import Step
from purebpf.services.agent.config import Config
from purebpf.services.agent.facts import Cost, facts_of
from purebpf.services.agent.name_shares import NameShares
from purebpf.services.agent.processes import Executables, user_of
from purebpf.services.agent.rows import off_cpu, on_cpu, run_queue
from purebpf.services.agent.services import PodNames, Services
from purebpf.services.agent.spool import Spool, file_name
from purebpf.services.agent.window_clock import Span
from purebpf.symbols.file_ids import FileIds, FileKey, ids_by_name

if TYPE_CHECKING:
    from purebpf.results import Labels, Profile
    from purebpf.services.agent.metrics.counts import Counts

__all__ = ["WindowWriter"]

_MOST_SERVICES, _MOST_OF_USER = 2048, 256
"""Of a window; the hub takes 4,096."""
_SECOND_NS = 1_000_000_000

CgroupText = Callable[[int], str]
"""What /proc/PID/cgroup of a process said; "" if it is unknown."""


class WindowWriter:
    """Writes for one start of an agent.

    Args:
        config: the measurement, and the names of services.
        spool: gets the files.
        say: called with losses, a line each.

    Attributes:
        files, lost: written so far, and windows that could not be.
        cost: of the last window that is over, and
        rate_reduced: how often the budget has made the rate less: each file says so.
        counts: gets the written windows, for metrics; None: there are none.
    """

    def __init__(self, config: Config, spool: Spool, say: Callable[[str], object]) -> None:
        self._config, self._spool, self._say = config, spool, say
        self._start_id = os.urandom(4).hex()
        self._number = 0
        self.files = self.lost = self.rate_reduced = 0
        self.cost = Cost()
        self.counts: Counts | None = None
        self._executables = Executables()
        self._users: dict[str, int] = {}
        host = config.agent.host or os.uname().nodename
        self._pods = PodNames(config.agent.pod_logs)
        self._services = Services(config.services, config.labels, host, self._pods)

    def write_cpu(self, span: Span, profile: Profile, step: Step, cgroup_text: CgroupText) -> None:
        """Write samples, which have a rate."""
        frequency, probability = step.frequency, self._config.cpu.probability / step.every
        window = Window(
            "samples", "count", span.started_ns, span.duration_ns,
            round(_SECOND_NS / (frequency * probability)),
        )  # fmt: skip
        known = {"frequency_hz": frequency, "probability_ppm": round(1e6 * probability)}
        used: set[FileKey] = set()
        series = self._series(on_cpu(profile), cgroup_text, used)
        files = ids_by_name(used, profile.file_ids)
        self._write("cpu", window, series, self._facts(profile, span, known), files)

    def write_waits(
        self, span: Span, profile: Profile, cgroup_text: CgroupText, known: dict[str, int]
    ) -> None:
        """Write where threads were blocked, and where they waited for a CPU; `known`: facts."""
        kinds = (("offcpu", "off_cpu", off_cpu), ("runqueue", "run_queue", run_queue))
        for kind, name, rows in kinds:
            window = Window(name, "nanoseconds", span.started_ns, span.duration_ns)
            used: set[FileKey] = set()
            series = self._series(rows(profile), cgroup_text, used)
            files = ids_by_name(used, profile.file_ids)
            self._write(kind, window, series, self._facts(profile, span, known), files)
            del series  # two of them take twice as much

    def lose(self, why: str) -> None:
        """Count a window that could not be written, and say why."""
        self.lost += 1
        self._say(why)

    def _series(
        self, rows: Iterator[Weighted], text: CgroupText, used: set[FileKey]
    ) -> list[Series]:
        """Return the samples by service, and add the files of their frames to a set."""
        self._pods.read()
        shares = NameShares(_MOST_SERVICES, _MOST_OF_USER)
        self._users = {}

        def resource(labels: Labels) -> tuple[Attribute, ...]:
            cgroup = text(labels.pid)
            process = self._executables.describe(labels.pid, labels.process_name, cgroup)
            user = user_of(labels.pid, cgroup)
            admitted = self._services.admit(shares, self._services.resource(process), user)
            self._users.setdefault(str(admitted[0][1]), user)
            return admitted

        return series_of(rows, resource, used)

    def _facts(self, profile: Profile, span: Span, known: dict[str, int]) -> tuple[Attribute, ...]:
        agent: dict[str, str | int] = {
            "start_id": self._start_id,
            "rate_reduced": self.rate_reduced,
            "dropped_windows": self._spool.dropped + self.lost,
            "corrupt_windows": self._spool.corrupt,
            "clock_step_ns": span.step_ns,
        }
        return facts_of(profile, self.cost, {**agent, **known})

    def _write(
        self,
        kind: str,
        window: Window,
        series: list[Series],
        facts: tuple[Attribute, ...],
        files: Mapping[FileKey, FileIds],
    ) -> None:
        name = file_name(window.started_ns, kind, self._start_id, self._number)
        self._number += 1
        window = window._replace(facts=facts, identity=os.urandom(16))
        if self.counts is not None:
            self.counts.add_window(kind, window.period_ns, series, dict(facts), self._users)
        series = series or [Series(self._services.nothing(), {})]
        data = gzip.compress(document(window, series, __version__, files), 4, mtime=0)
        try:
            if self._spool.add(name, data):
                self.files += 1
            else:
                self._say(f"{name} is lost: the disk of the spool is full")
        except OSError as error:
            self.lose(f"{name} is lost: {error}")
