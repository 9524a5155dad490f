"""Counts of events: `purebpf stat`, and as a library:

    from purebpf.tools.stat import Counter, StatOptions

    with Counter(StatOptions(groups=(("task-clock",), ("page-faults",)), pids=(185,))) as counter:
        time.sleep(5)
        for count in counter.stop().counts:      # a purebpf.tools.stat.counts.Count for each event
            print(count.event, count.value, count.percent_running)

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.stat.counts import Count, Result
    from purebpf.tools.stat.request import StatOptions
    from purebpf.tools.stat.session import Counter

__all__ = ["Count", "Counter", "Result", "StatOptions"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Count": "purebpf.tools.stat.counts.Count",
            "Counter": "purebpf.tools.stat.session.Counter",
            "StatOptions": "purebpf.tools.stat.request.StatOptions",
            "Result": "purebpf.tools.stat.counts.Result",
        },
    )
