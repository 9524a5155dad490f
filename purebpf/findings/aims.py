"""The aim of a recommended command: a process that lives, or the whole machine. Pure.

A command fails if its process has ended, and a finding may well be about such processes: a storm
of short programs, a compiler, a job that has just begun. Then the command looks at another process
of the finding, at the closest ancestor that stays with its children, or at the whole machine.
"""

from __future__ import annotations

from itertools import pairwise

from purebpf.findings.evidence import Evidence
from purebpf.findings.finding import Finding

__all__ = ["aim"]

_AIM = "-p"
"""The word before a process ID; that of `dump` is its last word."""
_TREE = "--tree"
"""The option by which a command also looks at children."""
_WHOLE_MACHINE = {
    "dump": ("offcpu",),
    "lock": ("offcpu",),
    "open": ("open", "--summary"),
    "trace": ("summary", "-x"),
    "wall": ("top",),
}
"""Commands whose output for the whole machine is too much or means something else."""
_STARTS = 3
"""A program that was started so often in one look is a short one."""
_INIT = 1


def aim(evidence: Evidence, finding: Finding) -> Finding:
    """Return the finding with a command that does not fail for want of its process."""
    pid = _aimed_at(finding.command)
    if not pid or _is_settled(evidence, pid):
        return finding
    other = next((one for one in finding.pids if _is_settled(evidence, one)), 0)
    if other:
        return finding._replace(command=_replaced(finding.command, pid, other))
    ancestor = _settled_ancestor(evidence, pid)
    if ancestor:
        command = _with_children(_replaced(finding.command, pid, ancestor))
        return finding._replace(command=command)
    if _stays(evidence, pid):
        return finding
    return finding._replace(command=_of_whole_machine(finding.command))


def _aimed_at(command: tuple[str, ...]) -> int:
    """The process ID in a command, or 0."""
    words = [word for before, word in pairwise(command) if before == _AIM]
    words += command[-1:] if _is_dump(command) else ()
    return next((int(word) for word in words if word.isdecimal()), 0)


def _is_dump(command: tuple[str, ...]) -> bool:
    """Return True for `dump PID`, the one command whose process has no option before it."""
    return bool(command) and command[0] == "dump"


def _stays(evidence: Evidence, pid: int) -> bool:
    """Return True if a process lives, and is likely to live for a while."""
    process = evidence.process(pid)
    if not process.pid or process.is_gone or process.state in ("Z", "X"):
        return False
    started = sum(
        start.times
        for start in evidence.facts.starts
        if start.parent == process.ppid and (start.is_fork or start.comm == process.comm)
    )
    return not process.is_new or started < _STARTS


def _is_settled(evidence: Evidence, pid: int) -> bool:
    """Return True if a process lives that began before the measurement."""
    return _stays(evidence, pid) and not evidence.is_new(pid)


def _settled_ancestor(evidence: Evidence, pid: int) -> int:
    """The closest ancestor that is settled, init left out; 0 if none is known."""
    seen = {pid}
    while (pid := evidence.process(pid).ppid) > _INIT and pid not in seen:
        if _is_settled(evidence, pid):
            return pid
        seen.add(pid)
    return 0


def _with_children(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command, about the children of its process, too."""
    if command[0] == "dump":
        *words, pid = command
        return (*words, _TREE, "-p", pid)
    return command if _TREE in command else (command[0], _TREE, *command[1:])


def _replaced(command: tuple[str, ...], pid: int, other: int) -> tuple[str, ...]:
    return tuple(str(other) if word == str(pid) else word for word in command)


def _of_whole_machine(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command without its process."""
    if command[0] in _WHOLE_MACHINE:
        return _WHOLE_MACHINE[command[0]]
    at = command.index("-p")
    return tuple(word for word in (*command[:at], *command[at + 2 :]) if word != _TREE)
