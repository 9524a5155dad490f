"""The screens of `purebpf top`, each in a separate module that is imported with its first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.tools.profile.request import ProfileOptions
    from purebpf.tools.top.screens.base import Screen

__all__ = ["SCREENS", "Kind", "load"]

_OWNERS = ("process", "thread", "comm", "cgroup")


class Kind(NamedTuple):
    """A screen before it measures.

    Attributes:
        bys: the kinds of rows; the first one is the default.
        sorts: the columns; the first one is the default.
        has_targets: whether it can be only of some processes.
    """

    bys: tuple[str, ...]
    sorts: tuple[str, ...]
    has_targets: bool = True


SCREENS = {
    "cpu": Kind(("function", "module", *_OWNERS), ("self", "total")),
    "syscalls": Kind(
        ("syscall", "process", "thread", "cgroup"), ("total", "calls", "errors", "avg", "max")
    ),
    "locks": Kind(
        ("caller", "lock", "process", "thread", "owner", "cgroup"),
        ("total", "waits", "avg", "p99"),
    ),
    "offcpu": Kind(
        ("place", "process", "thread", "comm", "cgroup", "function", "module"), ("self", "total")
    ),
    "runqueue": Kind(("process", "thread", "cgroup"), ("total", "waits", "avg", "p99")),
    "kwork": Kind(("function", "kind"), ("total", "runs", "avg", "p99"), has_targets=False),
}
"""By name, in the order of their keys."""


def load(
    name: str, options: ProfileOptions, by: str, interval_s: float, command_pid: int = 0
) -> Screen:
    """A screen of SCREENS that measures when its context is entered."""
    from importlib import import_module

    make = import_module(f"purebpf.tools.top.screens.{name}").make
    screen: Screen = make(options, by, interval_s, command_pid)
    return screen
