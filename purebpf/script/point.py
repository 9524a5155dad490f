"""`Point`: one place to attach a program, and the refusals of attach points."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from purebpf.script import tree
from purebpf.script.script_error import ScriptError
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.symbols.usdt_arguments import Argument, UnknownArgument

__all__ = [
    "EXPECTED",
    "Danger",
    "DangerousProbeError",
    "MissingProbeError",
    "NoProbesError",
    "Point",
    "is_wild",
    "match_names",
    "refuse_point",
]

_WILD = re.compile(r"[*?\[]")
EXPECTED = "If this is expected, set the 'missing_probes' config variable to 'warn'."
"""The advice for places that are not there."""


class Danger(NamedTuple):
    """The reason why a breakpoint may harm the program; some can be forced with --unsafe."""

    message: str
    can_be_forced: bool


class Point(NamedTuple):
    """One place to attach a program.

    Attributes:
        kind: as the language calls it: "tracepoint".
        name: as `probe` shows it: "tracepoint:sched:sched_switch".
        section: the kind of program, as in SEC().
        target: the argument for attaching, "" if the section has it.
        event: the perf event of a sampled point.
        period: sample once every so many counts; of time, in ns.
        frequency: samples a second; 0 if there is a period.
        places: of a static probe: file offsets of its code, and of the counter of its tracers.
        arguments: of a static probe.
        is_counted: False for the second and further programs of a static probe, whose places have
            other arguments.
        danger: the harm that the probe may do to the program; None: none is known.
    """

    kind: str
    name: str
    section: str
    target: str = ""
    event: str = ""
    period: int = 0
    frequency: int = 0
    places: tuple[tuple[int, int], ...] = ()
    arguments: tuple[Argument | UnknownArgument, ...] = ()
    is_counted: bool = True
    danger: Danger | None = None

    @property
    def space(self) -> str:
        """The memory that pointers without a known origin refer to: "kernel" or "user"."""
        is_user = self.kind in ("uprobe", "uretprobe", "usdt")
        return "user" if is_user or self.name.startswith("tracepoint:syscalls:") else "kernel"

    @property
    def has_registers(self) -> bool:
        """Return True if the context is `struct pt_regs` of a function."""
        return self.kind in ("kprobe", "kretprobe", "uprobe", "uretprobe", "usdt")


class MissingProbeError(ScriptError):
    """An attach point that this machine does not have.

    Attributes:
        why: the reason, if one is known.
        forced: the point that --unsafe tries to attach; None: there is none.
    """

    def __init__(
        self, node: tree.Point, kind: str, rest: str, why: str = "", forced: Point | None = None
    ) -> None:
        self.why, self.forced = why, forced
        self.missing = f"No matches for {kind} {rest}."
        hint = "\n      ".join(filter(None, (why, EXPECTED)))
        super().__init__(self.missing, node.start, node.end, hint)


class NoProbesError(ScriptError):
    """A script without blocks that can be attached; its warnings tell why."""

    def __init__(self, warnings: Sequence[ScriptError]) -> None:
        super().__init__("No probes to attach", 0, -1)
        self._warnings = tuple(warnings)

    def render(self, text: str, name: str, word: str = "ERROR") -> str:
        """Show the warnings, and then the message, which has no place in the script."""
        del word
        lines = [warning.render(text, name, "WARNING") for warning in self._warnings]
        return "\n".join((*lines, self.message))


class DangerousProbeError(ScriptError):
    """A place where a probe may harm the program."""

    def render(self, text: str, name: str, word: str = "ERROR") -> str:
        """Show the message, the source line and a mark below the attach point."""
        placed = ScriptError("", self.start, self.end).render(text, name, word)
        return f"{word}: {self.message}\n{placed.partition(chr(10))[2]}"


def refuse_point(node: tree.Point, message: str, hint: str = "") -> ScriptError:
    """Return the error for an attach point."""
    return ScriptError(message, node.start, node.end, hint)


def is_wild(text: str) -> bool:
    """Return True if a name is a pattern."""
    return _WILD.search(text) is not None


def match_names(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the names that fit a pattern, sorted."""
    return sorted(set(fnmatch.filter(names, pattern)))
