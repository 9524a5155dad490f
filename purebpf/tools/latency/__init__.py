"""The durations of calls: `purebpf latency`, and as a library:

    from purebpf.tools.latency import CallLatency, LatencyOptions

    with CallLatency(LatencyOptions(functions=("libc.so.6:malloc",), pids=(185,))) as latency:
        work()
        ending = latency.stop()
    latency.rows     # by function: calls, time, and a histogram

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.latency.calls import Branch, Call, Interval, LatencyRow
    from purebpf.tools.latency.request import LatencyOptions
    from purebpf.tools.latency.session import CallLatency

__all__ = ["Branch", "Call", "CallLatency", "Interval", "LatencyOptions", "LatencyRow"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Branch": "purebpf.tools.latency.calls.Branch",
            "Call": "purebpf.tools.latency.calls.Call",
            "CallLatency": "purebpf.tools.latency.session.CallLatency",
            "Interval": "purebpf.tools.latency.calls.Interval",
            "LatencyOptions": "purebpf.tools.latency.request.LatencyOptions",
            "LatencyRow": "purebpf.tools.latency.calls.LatencyRow",
        },
    )
