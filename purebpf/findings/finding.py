"""A finding: one incident, whom it concerns, its cost, its evidence, and where to look next."""

from __future__ import annotations

from purebpf.symbols.script_names import spell_script
from purebpf.tuples import NamedTuple

__all__ = ["Finding", "Loss", "Source"]


class Source(NamedTuple):
    """A function of a program; `line` is 0 where it is not known."""

    function: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        """`charge (orders.py:22)`-like; `get (flask/app.py:902)` of a package."""
        if not self.file or not self.line:
            return self.function
        return f"{self.function} ({spell_script(self.file)}:{self.line})"


class Loss(NamedTuple):
    """A process that waits for the one of a finding, in seconds a second."""

    name: str
    pid: int
    cost: float


class Finding(NamedTuple):
    """One incident.

    Attributes:
        kind: "lock-convoy", "cpu", ...: docs/triage.md lists them.
        name, pids: who it is: a process name and process IDs, the one that matters most first.
            `unit` is their container, pod or systemd unit, or "".
        cost: seconds a second that somebody loses.
        text: the incident in a clause, without its subject.
        evidence: clauses that support it, the most telling first.
        command: words after `purebpf` that show more.
        own: the program's own function that matters.
        lost_by: clients on this machine that wait for it.
        servers: processes whose answer is waited for; set by rules about waits only.
        is_busy: CPU time that nobody is seen to wait for, or a heap of which nobody knows yet how
            much is garbage: no finding, but worth a line.
        place: the endpoint, file or lock that it is about.
        each_s: the mean length of a wait for a server.
    """

    kind: str
    name: str
    pids: tuple[int, ...]
    cost: float
    text: str
    evidence: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    own: Source | None = None
    unit: str = ""
    lost_by: tuple[Loss, ...] = ()
    servers: tuple[int, ...] = ()
    is_busy: bool = False
    place: str = ""
    each_s: float = 0.0

    @property
    def pid(self) -> int:
        """The process that matters most; 0: none that lives."""
        return self.pids[0] if self.pids else 0
