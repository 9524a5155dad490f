"""`JavaProcesses`: the JVMs and V8s among the processes of a run, and the names of their frames.

Nothing of the reader is imported before there is a JVM.
"""

from __future__ import annotations

import os
import select
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from purebpf.closable import Closing
from purebpf.symbols.runtimes import is_node
from purebpf.syscall import proc

if TYPE_CHECKING:
    from purebpf.loader.maps.map import Map
    from purebpf.observe.runtimes.hotspot.copied_java import CopiedJava
    from purebpf.observe.runtimes.hotspot.java_tables import JavaTables
    from purebpf.results.model.loss import Cause
    from purebpf.symbols.frame import Frame, Unknown
    from purebpf.symbols.proc_maps import Mapping as CodePlace

__all__ = ["JavaProcesses"]

_MOST_KNOWN = 1 << 16
_LAUNCHERS = ("java", "node", "nodejs")
_LIBRARIES = ("/libjvm.so", "/libjli.so")


class JavaProcesses(Closing):
    """Publishes the JVMs of processes as they are met, and names the Java frames of stacks.

    Args:
        maps: the maps of bpf_src/include/java_layout.h by name; they must stay open.
        lines: whether lines are wanted.
    """

    def __init__(self, maps: Mapping[str, Map], *, lines: bool) -> None:
        self._maps = maps
        self._lines = lines
        self._tables: JavaTables | None = None
        self._known: dict[int, int] = {}
        self._others: set[int] = set()
        self._is_first_namespace = proc.in_first_pid_namespace()
        self._ready = select.epoll()  # of a ring that is opened with the first JVM

    @property
    def fds(self) -> tuple[int, ...]:
        """Readable when `drain()` is due: names have come."""
        return (self._ready.fileno(),)

    @property
    def published(self) -> Container[int]:
        """Processes with a published JVM: `feed` needs their records."""
        return () if self._tables is None else self._tables.published

    def publish_running(self, pids: Iterable[int] = ()) -> None:
        """Publish the JVMs of these processes, or all whose program is called java or node.

        Only in the initial PID namespace: in others, processes are published as they are met.
        """
        if self._is_first_namespace:
            for pid in pids or proc.pids():
                if pid not in self._known and _runs_java(pid):
                    self.publish(pid, pid)

    def publish(
        self, tgid: int, process: int, identity: int = 0, mappings: list[CodePlace] | None = None
    ) -> None:
        """Say how to walk the JVM of a process, if it has one.

        Args:
            tgid: in our PID namespace.
            process: the same in the initial one.
            identity: of the program that it executed; 0: not known.
            mappings: its executable mappings, if they were just read.

        Raises:
            KernelError: the kernel refused an element.
        """
        last = self._known.get(tgid)
        if last is not None and (not identity or last == identity):
            return
        if mappings is None and tgid in self._others:
            return
        if last is None and not _may_be_java(tgid, mappings):
            self._others.add(tgid)
            return
        for seen in (self._known, self._others):
            if len(seen) >= _MOST_KNOWN:
                seen.clear()
        self._others.discard(tgid)
        self._known[tgid] = identity
        self._open().publish(tgid, process, identity)

    def _open(self) -> JavaTables:
        if self._tables is None:
            from purebpf.observe.runtimes.hotspot.java_tables import JavaTables

            self._tables = JavaTables(self._maps, lines=self._lines)
            for fd in self._tables.fds:
                self._ready.register(fd, select.EPOLLIN)
        return self._tables

    def feed(self, record: object) -> None:
        """Read a record of a process, as `SideBand` reports it."""
        from purebpf.wire.perf_records import Comm, Exit  # not needed before there is a record

        if isinstance(record, Comm) and record.exec:
            self._end(record.pid)
            if self._is_first_namespace and record.comm in _LAUNCHERS:
                self.publish(record.pid, record.pid)
        elif isinstance(record, Exit) and record.pid == record.tid:
            self._end(record.pid)

    def _end(self, pid: int) -> None:
        """Forget the program of a process."""
        self._others.discard(pid)
        if self._known.pop(pid, None) is not None and self._tables is not None:
            self._tables.end(pid)

    def drain(self) -> None:
        """Read the names that came, and look again at JVMs that had just started."""
        if self._tables is not None:
            self._tables.drain()

    def look_again_s(self) -> float:
        """Seconds until `drain` is due without a record."""
        return float("inf") if self._tables is None else self._tables.look_again_s()

    def of_copy(self, tgid: int, time_ns: int) -> CopiedJava | None:
        """Return a walk through the Java frames of a copied stack; None: the process has none.

        Args:
            tgid: of the copy.
            time_ns: of the copy, by CLOCK_MONOTONIC.
        """
        return None if self._tables is None else self._tables.of_copy(tgid, time_ns)

    def has(self, pid: int) -> bool:
        """Return True if the frames of a process have names."""
        return self._tables is not None and self._tables.has(pid)

    def frames(self, word: int) -> Sequence[Frame | Unknown]:
        """The functions of a word, innermost first; none for code that is no method."""
        return () if self._tables is None else self._tables.frames(word)

    def counts(self) -> dict[str, int]:
        """`struct java_stats` by field, and `java_unnamed`; {} if there was no JVM.

        Raises:
            KernelError: the map could not be read.
        """
        return {} if self._tables is None else self._tables.counts()

    def causes(self) -> tuple[Cause, ...]:
        """Return the losses of Java frames, zero or not; () if there was no JVM.

        Raises:
            KernelError: the map could not be read.
        """
        return () if self._tables is None else self._tables.causes()

    def hints(self, pids: Collection[int]) -> list[str]:
        """Return the reasons why some of these processes have no Java frames."""
        return [] if self._tables is None else self._tables.hints(pids)

    def close(self) -> None:
        """Close the reader; again is harmless."""
        self._ready.close()
        if self._tables is not None:
            self._tables.close()


def _may_be_java(tgid: int, mappings: Iterable[CodePlace] | None) -> bool:
    """Return True if a process has a JVM or V8, or starts one."""
    if mappings is None:
        return _runs_java(tgid)
    if any(one.file.path.endswith(_LIBRARIES) or is_node(one.file.path) for one in mappings):
        return True
    return proc.comm(tgid) in _LAUNCHERS


def _runs_java(pid: int) -> bool:
    """Return True if the program of a process is called java or node."""
    with suppress(OSError):
        return os.readlink(f"{proc.PROC}/{pid}/exe").rpartition("/")[2] in _LAUNCHERS
    return False
