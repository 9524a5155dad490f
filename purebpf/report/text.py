"""The multi-line layout of bcc's profile: a block per stack, the heaviest last.

kernel frames, leaf first, four spaces in
--                        (with a delimiter, between two stacks)
user frames, leaf first
-                comm (pid)
    count
                          (an empty line ends the block)
"""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.report.names import MISSED_KERNEL, MISSED_USER, located, printable
from purebpf.report.profile import Profile, Row, Stack
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["blocks"]


def blocks(profile: Profile, *, delimiter: bool = False, addresses: bool = False) -> Iterator[str]:
    """One string a row, the empty line behind it included.

    Args:
        profile: what to print; its title is not part of the layout.
        delimiter: print `--` between a kernel and a user stack.
        addresses: print the address before each name.
    """
    lines = _Lines(addresses=addresses)
    for row in profile.rows():
        yield _block(row, lines, delimiter=delimiter)


def _block(row: Row, lines: _Lines, *, delimiter: bool) -> str:
    kernel = lines.of(row.kernel, MISSED_KERNEL)
    user = lines.of(row.user, MISSED_USER)
    between = "    --\n" if delimiter and row.kernel and row.user else ""
    comm, pid, tid, *_ = row.labels
    who = f"{pid}/{tid}" if tid else str(pid)
    owner = f"    {'-':<16s} {printable(comm)} ({who})\n"
    return f"{kernel}{between}{user}{owner}        {row.weight}\n\n"


class _Lines:
    """The lines of a stack, remembered by entry: most addresses occur in many stacks."""

    def __init__(self, *, addresses: bool) -> None:
        self._addresses = addresses
        self._known: dict[Frame | Unknown, str] = {}

    def of(self, stack: Stack | None, missed: str) -> str:
        if stack is None:
            return f"    {missed}\n"
        known = self._known
        text = []
        for entry in stack:
            line = known.get(entry)
            if line is None:
                line = known[entry] = self._line(entry)
            text.append(line)
        return "".join(text)

    def _line(self, entry: Frame | Unknown) -> str:
        if self._addresses:
            return f"    0x{entry.address:016x} {located(entry)}\n"
        return f"    {located(entry)}\n"
