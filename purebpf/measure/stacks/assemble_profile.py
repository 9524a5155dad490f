"""`assemble_profile`: a profile of named stacks, in the same steps for every session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from purebpf.measure.process_watch import name_stacks
from purebpf.results.build.stored_stacks import count_truncated
from purebpf.results.shape.hints import hints
from purebpf.results.shape.naming_loss import with_naming
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.measure.process_watch import ProcessWatch
    from purebpf.observe.runtimes.cpython.python_tables import PythonTables
    from purebpf.observe.symbols.symbolizer import Symbolizer
    from purebpf.observe.unwind.user_stacks import Trace
    from purebpf.results import Loss, Profile
    from purebpf.results.build.stored_stacks import Stacks

__all__ = ["Steps", "assemble_profile", "python_counters"]


class Steps(NamedTuple):
    """The parts of a profile that differ between sessions.

    Attributes:
        fill: add the rows.
        losses: the losses, by the number of stacks that the kernel cut at `max_depth`.
        max_depth: the most frames of a stack in the kernel.
        python_stats: `struct python_stats`; asked only if there are Python frames, after the names.
        advise: hints of this session, by the processes with rows.
        with_hints: False: hints are not looked for, as that takes time and nobody sees them.
        python_pids: the processes whose missing Python frames are hinted at, by the processes with
            rows; None: all.
    """

    fill: Callable[[Profile, Stacks], object]
    losses: Callable[[int], Loss]
    max_depth: int
    python_stats: Callable[[], Mapping[str, int]]
    advise: Callable[[set[int]], Iterable[str]] = lambda _: ()
    with_hints: bool = True
    python_pids: Callable[[set[int]], set[int] | None] = lambda pids: pids


def assemble_profile(
    profile: Profile,
    steps: Steps,
    traces: Mapping[int, Trace],
    *,
    watch: ProcessWatch,
    python: PythonTables | None,
    symbolizer: Symbolizer,
) -> Profile:
    """Fill a profile, and complete it: names, losses, hints.

    Args:
        profile: an empty one, with its title, unit, cost and facts.
        steps: the session's parts.
        traces: stacks by number.
        watch: the processes of the run.
        python: reads Python frames; None: there are none.
        symbolizer: of the session; its budget says which names were not looked for.
    """
    with symbolizer.batch():
        steps.fill(profile, name_stacks(traces, symbolizer))
    profile.file_ids = symbolizer.file_ids
    watch.followed.name_processes(profile)
    truncated = count_truncated(profile, steps.max_depth)
    profile.loss = with_naming(steps.losses(truncated), symbolizer.budget)
    if python is not None:  # before the hints, which say why a process has no Python frames
        profile.about |= {**steps.python_stats(), **python.counts()}
        profile.loss = python.with_python(profile.loss, profile.about)
    walking = watch.walking
    java = None if walking is None else walking.java
    if java is not None:
        profile.about |= java.counts()
        loss = profile.loss
        profile.loss = loss._replace(causes=(*loss.causes, *watch.java_causes()))
    if steps.with_hints:
        pids = {row.labels.pid for row in profile.rows()}
        profile.hints = hints(profile, symbolizer.runtime)
        if python is not None:
            profile.hints += python.hints(steps.python_pids(pids))
        if java is not None:
            profile.hints += java.hints(pids)
        profile.hints += steps.advise(pids)
    return profile


def python_counters(stats: Mapping[str, int]) -> dict[str, int]:
    """Return the counters of `struct python_stats` among all counters of a program."""
    return {name: count for name, count in stats.items() if name.startswith("python_")}
