"""Calls, one by one and added up. Pure."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["Branch", "Call", "Interval", "LatencyRow"]


class Call(NamedTuple):
    """A slow call, which has ended.

    Attributes:
        time_ns: of its end, since 1970.
        pid, tid, uid, comm: the task that made it.
        function: its name; of a pair, both.
        took_ns: how long it took.
        result: its return value, 64 bits with a sign; None of a pair, and of a call that ended with
            a jump to another file.
        depth: the number of the thread's traced calls that surround it.
        kernel_stack, user_stack: names of the callers, the innermost first; empty without
            `LatencyOptions.stacks`, and where there is no such stack.
    """

    time_ns: int
    pid: int
    tid: int
    uid: int
    comm: str
    function: str
    took_ns: int
    result: int | None
    depth: int
    kernel_stack: tuple[str, ...]
    user_stack: tuple[str, ...]


class LatencyRow(NamedTuple):
    """Calls of a function, and of a group where they are grouped, added up.

    Attributes:
        function: its name; of a pair, both.
        group: a command, the path of a cgroup, a CPU, a word; "" without a grouping.
        pid, tid: of a process or thread that it is grouped by; else 0.
        calls: that returned; with `LatencyOptions.only_count`, that began.
        total_ns: of them; nested calls of a function count in each other.
        least_ns, most_ns: the shortest and the longest; of an interval, as its buckets say.
        buckets: how many took how long: see `purebpf.results.shape.histogram`.
        is_timed: False: calls are counted as they begin, and the times are 0.
    """

    function: str
    group: str
    pid: int
    tid: int
    calls: int
    total_ns: int
    least_ns: int
    most_ns: int
    buckets: tuple[int, ...]
    is_timed: bool = True

    def without_times(self) -> LatencyRow:
        """Return the row of a function whose calls are only counted."""
        buckets = (0,) * len(self.buckets)
        return self._replace(total_ns=0, least_ns=0, most_ns=0, buckets=buckets, is_timed=False)


class Interval(NamedTuple):
    """The rows of an interval, and its end, since 1970."""

    time_ns: int
    elapsed_s: float
    rows: tuple[LatencyRow, ...]


class Branch(NamedTuple):
    """Calls grouped by the path of traced calls around them.

    Attributes:
        path: functions, from the outermost to the one that was called.
        calls: that returned.
        total_ns: of them.
        self_ns: without the time of the calls that they made.
    """

    path: tuple[str, ...]
    calls: int
    total_ns: int
    self_ns: int
