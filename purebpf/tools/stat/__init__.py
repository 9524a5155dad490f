"""Counts of events: `purebpf stat`, and as a library:

    from purebpf.tools.stat import Counter, Options

    with Counter(Options(groups=(("task-clock",), ("page-faults",)), pids=(185,))) as counter:
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
    from purebpf.tools.stat.request import Options
    from purebpf.tools.stat.session import Counter

__all__ = ["Count", "Counter", "Options", "Result"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Count": "purebpf.tools.stat.counts.Count",
            "Counter": "purebpf.tools.stat.session.Counter",
            "Options": "purebpf.tools.stat.request.Options",
            "Result": "purebpf.tools.stat.counts.Result",
        },
    )
