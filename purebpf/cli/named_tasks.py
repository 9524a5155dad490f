"""Finds the tasks that a command line names: a container, and processes that have ended."""

from __future__ import annotations

import argparse

from purebpf.cli import command
from purebpf.measure import named_targets
from purebpf.measure.targets import without_gone

__all__ = ["resolve_names"]

_SHOWN = 5


def resolve_names(parsed: argparse.Namespace, *, awaits_name: bool = True) -> None:
    """Turn a container's name into the path of its cgroup; say which processes are gone.

    `awaits_name`: say that no process has the name of --comm yet; the run fails otherwise.
    """
    container = vars(parsed).pop("container", None)
    if awaits_name and getattr(parsed, "comm", None) is not None:
        for note in named_targets.explain_absence(parsed.comm):
            command.note(note)
    if container is not None:
        parsed.cgroup = named_targets.container_cgroup(container)
    pids = getattr(parsed, "pids", ())
    if len(pids) > 1:
        parsed.pids = _leave_out_gone(pids)


def _leave_out_gone(pids: tuple[int, ...]) -> tuple[int, ...]:
    """The processes that have not ended; says how many have."""
    living = without_gone(pids)
    gone = [str(pid) for pid in pids if pid not in living]
    if gone:
        more = f" and {len(gone) - _SHOWN} more" if len(gone) > _SHOWN else ""
        shown = ", ".join(gone[:_SHOWN])
        command.note(
            f"skipped {len(gone)} of {len(pids)} processes, which have ended: {shown}{more}"
        )
    return living
