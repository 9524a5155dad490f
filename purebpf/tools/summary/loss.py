"""The losses of a table of calls, from the counters of the BPF programs. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.results import Cause, Loss, count_cause
from purebpf.tools.summary.request import SummaryOptions

__all__ = ["EXPLANATIONS", "losses"]

EXPLANATIONS = frozenset(
    {"open_at_start", "in_flight", "exits", "died", "unpaired", "tid_changed", "names_full"}
)
"""Causes that belong to the subject: the table is complete all the same."""


def losses(
    counted: Mapping[str, int],
    *,
    in_flight: int,
    still_open: int,
    misses: int,
    options: SummaryOptions,
    fault_causes: tuple[Cause, ...] = (),
) -> Loss:
    """Every cause, zero or not.

    Args:
        counted: `struct losses` of bpf_src/summary.bpf.c by field.
        in_flight: calls entered during the run that had not returned at its end.
        still_open: calls that were open at the start and at the end.
        misses: how often the kernel did not run a program that was running on the CPU already.
        options: the options of the run.
        fault_causes: the causes of page faults.
    """
    counts = {
        "in_flight": in_flight,
        "open_at_start": counted["open_at_start"] + still_open,
        "recursion_misses": misses,
    }
    more = f"at {options.row_entries} entries. Raise --map-entries"
    histograms = f"the map of them was full, at {options.histogram_entries} entries"
    descriptions = {
        "open_at_start": "calls were in flight when the run began; their duration is not known",
        "in_flight": "calls were in flight when it ended; list them with --inflight",
        "exits": "calls of exit and exit_group, which do not return",
        "died": "tasks died inside another call, which did not return",
        "unpaired": "calls that seccomp or a tracer refused; their duration is not known",
        "tid_changed": "threads took over the PID of their process (execve)",
        "unnamed": "calls are in no row: a tracer replaced their number",
        "unreturned": "returns were not traced: a recursion miss, or a tracer skipped them",
        "states_full": "calls were dropped: the map of calls in flight was full",
        "rows_full": f"calls were dropped: the map of rows was full, {more}",
        "errors_full": (
            "failed calls are counted without their error: the map of errors was full, at "
            f"{options.error_entries} entries. Raise --map-entries"
        ),
        "histograms_full": (
            f"calls are not in histograms and percentiles: {histograms}. Set --map-entries to the "
            "number of rows (1.6 kB each)"
        ),
        "names_full": "groups have no name",
        "follow_full": "new tasks could not be followed",
        "recursion_misses": "recursion misses: the kernel does not run a program inside itself",
        "switches_missed": "calls were lost, as a context switch was not traced",
        "clock_backwards": "calls had a clock that ran backwards; they count as 0 ns",
        "outside_namespace": "times a target task had no ID in this PID namespace",
    }
    lost = {name: counts[name] if name in counts else counted[name] for name in descriptions}
    causes = (
        count_cause(name, lost[name], text, name in EXPLANATIONS)
        for name, text in descriptions.items()
    )
    return Loss(causes=(*causes, *fault_causes))
