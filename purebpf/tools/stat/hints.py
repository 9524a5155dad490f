"""Commands that show the reasons of high counts, which a counter does not know. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from purebpf.tools.stat.counts import Result

__all__ = ["hints"]

_MANY = {
    "context-switches": (20_000.0, "what they wait for", "offcpu"),
    "page-faults": (20_000.0, "their functions", "mem --show faults"),
}
"""A second, by the kernel's name of the event."""


def hints(result: Result, pids: Sequence[int]) -> Iterator[str]:
    """Yield a sentence for each count with an unusual rate.

    Args:
        result: of the whole run.
        pids: the processes that were asked for; without one that could be traced, there is none.
    """
    if len(pids) != 1 or result.elapsed_s <= 0:
        return
    for count in result.counts:
        least, about, command = _MANY.get(count.event.kind, (0.0, "", ""))
        rate = (count.value or 0) / result.elapsed_s
        if command and rate >= least and not count.key:
            many = f"{rate:,.0f} {count.event.kind.replace('-', ' ')} a second"
            yield f"{many}: purebpf {command} -p {pids[0]} shows {about}"
