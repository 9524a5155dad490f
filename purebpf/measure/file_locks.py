"""Processes that wait for locks of files, and the holders: /proc/locks, proc_locks(5)."""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.findings.facts import FileLock
from purebpf.measure.proc_files import read_text

__all__ = ["file_locks", "parse_locks"]

_ARROW, _FIELDS = "->", 5
"""The mark of a lock that is waited for, and the fields up to the process ID."""


def file_locks() -> Iterator[FileLock]:
    """Yield the waits of this moment for flock(2) and for the record locks of fcntl(2)."""
    return parse_locks(read_text("/proc/locks"))


def parse_locks(text: str) -> Iterator[FileLock]:
    """Yield the waits in the text of /proc/locks.

    A line without an arrow is a lock that is held; the ones with an arrow and the same number wait
    for it. Holders in other PID namespaces have no number here, nor have locks of open file
    descriptions an owner: they are left out.
    """
    holders: dict[str, int] = {}
    for line in text.splitlines():
        number, *fields = line.split()
        is_wait = fields[:1] == [_ARROW]
        fields = fields[is_wait:]
        if len(fields) < _FIELDS - 1 or not fields[3].isdigit():
            continue
        pid = int(fields[3])
        if not is_wait:
            holders[number] = pid
        elif pid and holders.get(number):
            yield FileLock(pid, holders[number])
