"""The parts of the sentence that heads an output, in the words of bcc's tools."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Measured", "name_target", "stacks", "until", "whose"]


class Measured(Protocol):
    """The options for the target and the duration."""

    @property
    def pids(self) -> tuple[int, ...]:
        """These processes; empty: all."""

    @property
    def tids(self) -> tuple[int, ...]:
        """These threads; empty: all."""

    @property
    def cgroup(self) -> str | None:
        """A cgroup's path."""

    @property
    def comm(self) -> str | None:
        """The name of processes; None: any."""

    @property
    def uid(self) -> int | None:
        """The user that tasks run as; None: any."""

    @property
    def duration_s(self) -> float | None:
        """Seconds; None: until a signal, or until the command ends."""

    @property
    def command(self) -> tuple[str, ...]:
        """The words of a command to run."""


def whose(options: Measured, everything: str = "all threads") -> str:
    """`PID [185] in cgroup /a`, or `everything`."""
    if options.command:
        target = f"command {options.command[0]!r}"
    elif options.pids:
        target = f"PID {list(options.pids)}"
    elif options.tids:
        target = f"TID {list(options.tids)}"
    elif options.comm is not None:
        target = f"processes called {options.comm!r}"
    else:
        target = everything
    if options.uid is not None:
        target += f" of user {options.uid}"
    return f"{target} in cgroup {options.cgroup}" if options.cgroup else target


def name_target(options: Measured) -> str:
    """`PID 185`, as in a sentence; "" where everything is measured."""
    if options.command:
        target = f"command {options.command[0]!r}"
    elif options.pids or options.tids:
        kind = "PID" if options.pids else "TID"
        numbers = options.pids or options.tids
        target = f"{kind}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
    elif options.comm is not None:
        target = f"processes called {options.comm!r}"
    else:
        target = ""
    if options.uid is not None:
        target = f"{target} of user {options.uid}" if target else f"user {options.uid}"
    if not options.cgroup:
        return target
    return f"{target} in cgroup {options.cgroup}" if target else f"cgroup {options.cgroup}"


def stacks(*, user: bool, kernel: bool) -> str:
    """`user + kernel stack`."""
    return " + ".join(["user"] * user + ["kernel"] * kernel) + " stack"


def until(options: Measured) -> str:
    """The end of the sentence: ` for 5 secs.`, or how it ends otherwise."""
    if options.duration_s is not None:
        return f" for {options.duration_s:g} secs."
    return " until it ends." if options.command else "... Hit Ctrl-C to end."
