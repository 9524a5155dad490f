"""`ProcessCounters`: the counters of all processes, and their growth during a run."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable

from purebpf.errors import KernelError
from purebpf.findings.facts import Process, ThreadTime
from purebpf.measure.proc_files import entries, link, read_text, words
from purebpf.symbols.cgroup_names import cgroup_name
from purebpf.syscall import proc
from purebpf.syscall.process_memory import read_arguments, reading_others
from purebpf.tuples import NamedTuple

__all__ = ["ProcessCounters", "living", "mark_ended", "uses_new_pages"]

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PF_KTHREAD = 0x00200000
_LONGEST = 300
"""Characters of a command line."""
_TITLED = ("postgres", "postmaster")
"""Executables whose command line says what they do at the moment."""
_FAULTS, _GROWTH = 50_000, 400_000
"""Page faults, and bytes, of a process whose functions matter for its memory."""
_MOST_TRACED = 16
_CONTAINERS_OF_ALL = ("slice", "path")


def uses_new_pages(faults: float, grown: float) -> bool:
    """Return True if so many page faults, or so many bytes of growth, may be a finding."""
    return faults > _FAULTS or grown > _GROWTH


def living(pids: Iterable[int]) -> tuple[int, ...]:
    """Return the processes that have not ended."""
    there = set(proc.pids())
    return tuple(pid for pid in pids if pid in there)


def mark_ended(processes: tuple[Process, ...]) -> tuple[Process, ...]:
    """Return the processes, with `is_gone` set where one has ended meanwhile."""
    there = set(living(process.pid for process in processes))
    return tuple(
        process if process.pid in there else process._replace(is_gone=True) for process in processes
    )


class _Reading(NamedTuple):
    """A process at one moment."""

    comm: str
    ppid: int
    state: str
    threads: int
    cpu_s: float
    children_cpu_s: float
    minor_faults: int
    major_faults: int
    read_bytes: int
    written_bytes: int


class ProcessCounters:
    """Reads them at its start, at each `tick`, and at the end.

    Args:
        own: processes that are not looked at: purebpf itself.
    """

    def __init__(self, own: frozenset[int]) -> None:
        self._own = own
        self._anon: dict[int, list[int]] = {}
        self._files: dict[int, list[int]] = {}
        self._thread_counts: dict[int, list[int]] = {}
        self._titles: dict[int, Counter[str]] = {}
        self._who: dict[int, tuple[str, str, str]] = {}
        self._before_s = time.monotonic()
        self._before = self._read()
        self._times_s = time.monotonic()
        self._times = self._thread_times()
        self.tick()

    @property
    def pids(self) -> list[int]:
        """Processes that were there at the start."""
        return list(self._before)

    def threads(self) -> dict[int, int]:
        """Return the number of threads at the last reading, by process."""
        return {pid: counts[-1] for pid, counts in self._thread_counts.items()}

    def exe(self, pid: int) -> str:
        """The executable of a process that was there at a reading."""
        return self._who.get(pid, ("", "", ""))[0]

    def tick(self) -> None:
        """Read the values that have to be sampled again and again."""
        for pid in self._before:
            sizes = read_text(f"/proc/{pid}/statm").split()
            if len(sizes) > 2:  # noqa: PLR2004
                anon = (int(sizes[1]) - int(sizes[2])) * _PAGE
                self._anon.setdefault(pid, []).append(anon)
                self._files.setdefault(pid, []).append(_count_files(pid))
                self._thread_counts.setdefault(pid, []).append(_count_threads(pid))
            if self.exe(pid).endswith(_TITLED):
                self._titles.setdefault(pid, Counter())[_command(pid)] += 1

    def using_new_pages(self, part: float) -> tuple[int, ...]:
        """Return the processes whose functions that use new pages may matter, heaviest first.

        Args:
            part: the part of the measurement that is over.
        """
        used: dict[int, float] = {}
        with reading_others():
            for pid, first in self._before.items():
                now, anon = _read(pid), self._anon.get(pid, [0])
                if now is None:
                    continue
                faults, grown = now.minor_faults - first.minor_faults, anon[-1] - anon[0]
                if uses_new_pages(faults / part, grown / part):
                    used[pid] = faults + grown / _PAGE
        return tuple(sorted(used, key=lambda pid: -used[pid])[:_MOST_TRACED])

    def finish(self, elapsed_s: float) -> tuple[tuple[Process, ...], tuple[ThreadTime, ...]]:
        """Return the processes and threads, with the growth of their counters.

        Args:
            elapsed_s: the measured time. CPU times are scaled to it: on a machine without a free
                CPU, more time passes between the two readings.
        """
        scale = elapsed_s / (time.monotonic() - self._before_s)
        before, after = self._before, self._read()
        processes = tuple(
            self._process(pid, before.get(pid), after.get(pid), scale) for pid in before | after
        )
        scale = elapsed_s / (time.monotonic() - self._times_s)
        then, now = self._times, self._thread_times()
        nothing = (0, 0.0, 0.0)
        threads = [
            ThreadTime(
                *(pid, tid),
                scale * (cpu - then.get(tid, nothing)[1]),
                scale * (queued - then.get(tid, nothing)[2]),
            )
            for tid, (pid, cpu, queued) in now.items()
        ]
        return processes, tuple(thread for thread in threads if thread.cpu_s or thread.queued_s)

    def _process(
        self, pid: int, before: _Reading | None, after: _Reading | None, scale: float
    ) -> Process:
        last = after or before
        assert last is not None
        first = before or _Reading(last.comm, 0, "", 0, 0.0, 0.0, 0, 0, 0, 0)
        exe, command, cgroup = self._who.get(pid, ("", "", ""))
        name = cgroup_name(cgroup)
        return Process(
            *(pid, last.ppid, last.comm, exe, command, cgroup),
            unit="" if name.kind in _CONTAINERS_OF_ALL else name.label,
            state=last.state,
            threads=last.threads,
            cpu_s=scale * (last.cpu_s - first.cpu_s),
            children_cpu_s=scale * (last.children_cpu_s - first.children_cpu_s),
            minor_faults=last.minor_faults - first.minor_faults,
            major_faults=last.major_faults - first.major_faults,
            read_bytes=last.read_bytes - first.read_bytes,
            written_bytes=last.written_bytes - first.written_bytes,
            anon=tuple(self._anon.get(pid, ())),
            files=tuple(self._files.get(pid, ())),
            thread_counts=tuple(self._thread_counts.get(pid, ())),
            allowed=_allowed(pid),
            titles=dict(self._titles.get(pid, {})),
            is_new=before is None,
            is_gone=after is None,
        )

    def _read(self) -> dict[int, _Reading]:
        readings = {}
        with reading_others():
            for pid in proc.pids():
                reading = None if pid in self._own else _read(pid)
                if reading is not None:
                    readings[pid] = reading
                    exe = link(f"/proc/{pid}/exe").removesuffix(" (deleted)")
                    self._who[pid] = exe, _command(pid), read_text(f"/proc/{pid}/cgroup")
        return readings

    def _thread_times(self) -> dict[int, tuple[int, float, float]]:
        times = {}
        for pid in proc.pids():
            if pid in self._own:
                continue
            for tid in entries(f"/proc/{pid}/task"):
                fields = read_text(f"/proc/{pid}/task/{tid}/schedstat").split()
                if len(fields) == 3:  # noqa: PLR2004
                    times[int(tid)] = pid, int(fields[0]) / 1e9, int(fields[1]) / 1e9
        return times


def _count_files(pid: int) -> int:
    """Return the number of descriptors, or 0 where the kernel (before 6.2) does not count them."""
    try:
        return os.stat(f"/proc/{pid}/fd").st_size
    except OSError:
        return 0


def _count_threads(pid: int) -> int:
    """Return the number of threads: each is a folder with a link to its parent."""
    try:
        return os.stat(f"/proc/{pid}/task").st_nlink - 2
    except OSError:
        return 0


def _allowed(pid: int) -> tuple[int, ...]:
    """Return the CPUs that a process may use; nothing if it may use all, or has ended."""
    try:
        allowed = os.sched_getaffinity(pid)
    except OSError:
        return ()
    return tuple(sorted(allowed)) if len(allowed) < (os.cpu_count() or 1) else ()


def _command(pid: int) -> str:
    """The command line, which is in the memory of the process: that may not answer."""
    try:
        return (read_arguments(pid) or "")[:_LONGEST]
    except KernelError:
        return ""


def _read(pid: int) -> _Reading | None:
    """One process; None: it is over, or a thread of the kernel. See proc_pid_stat(5)."""
    text = read_text(f"/proc/{pid}/stat")
    comm, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    if not fields or int(fields[6]) & _PF_KTHREAD:
        return None
    io = dict(words(f"/proc/{pid}/io"))
    return _Reading(
        *(comm, int(fields[1]), fields[0], int(fields[17])),
        *((int(fields[11]) + int(fields[12])) / _TICK, (int(fields[13]) + int(fields[14])) / _TICK),
        *(int(fields[7]), int(fields[9])),
        *(int(io.get("read_bytes", 0)), int(io.get("write_bytes", 0))),
    )
