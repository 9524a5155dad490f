"""The multi-line layout of bcc's profile: a block per stack, the heaviest last.

kernel frames, leaf first, four spaces in
--                        (with a delimiter, between two stacks)
user frames, leaf first
-                comm (pid)
    count
                          (an empty line ends the block)

Time has its kind and its state behind (pid); `~` before the count
when it was not over. A waker comes between: `woken by comm (pid)`, and its stack.
"""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.results.build.interrupts import INTERRUPT
from purebpf.results.model.profile import Profile, Row, Stack, Waker
from purebpf.results.model.spelling import MISSED_KERNEL, MISSED_USER, printable, spell_location
from purebpf.results.shape.per_frame_cache import Entries
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["blocks"]


def blocks(
    profile: Profile,
    *,
    delimiter: bool = False,
    addresses: bool = False,
    offsets: bool = True,
    scale: int = 1,
) -> Iterator[str]:
    """One string a row, the empty line behind it included.

    Args:
        profile: the profile to print; its title is not part of the layout.
        delimiter: print `--` between a kernel and a user stack.
        addresses: print the address before each name.
        offsets: print the offset behind it.
        scale: divide the weights by this.
    """
    lines = _Lines(addresses=addresses, offsets=offsets)
    for row in profile.rows():
        yield _block(row, lines, delimiter=delimiter, scale=scale)


def _block(row: Row, lines: _Lines, *, delimiter: bool, scale: int) -> str:
    kernel = lines.of(row.kernel, MISSED_KERNEL)
    user = lines.of(row.user, MISSED_USER)
    between = "    --\n" if delimiter and row.kernel and row.user else ""
    comm, pid, tid, *_ = row.labels
    marks = row.marks
    how = "".join(f" {printable(word)}" for word in (marks.kind, row.labels.state) if word)
    owner = f"    {'-':<16s} {printable(comm)} ({_who(pid, tid)}){how}\n"
    waker = _waker(marks.waker, lines) if marks.waker else ""
    still = "~" if marks.is_open else ""
    split = ""
    if marks.runnable >= 0:
        blocked = (row.weight - marks.runnable) // scale
        split = f"  ({blocked} blocked, {marks.runnable // scale} run queue)"
    return f"{kernel}{between}{user}{owner}{waker}        {still}{row.weight // scale}{split}\n\n"


def _who(pid: int, tid: int) -> str:
    return f"{pid}/{tid}" if tid else str(pid)


def _waker(waker: Waker, lines: _Lines) -> str:
    kernel = lines.of(waker.kernel, MISSED_KERNEL)
    user = lines.of(waker.user, MISSED_USER)
    who = f" ({_who(waker.pid, waker.tid)})" if waker.pid or waker.comm != INTERRUPT else ""
    return f"    {'woken by':<16s} {printable(waker.comm)}{who}\n{kernel}{user}"


class _Lines:
    """The lines of a stack, leaf first."""

    def __init__(self, *, addresses: bool, offsets: bool) -> None:
        self._addresses = addresses
        self._offsets = offsets
        self._lines = Entries(self._line)

    def of(self, stack: Stack | None, missed: str) -> str:
        return f"    {missed}\n" if stack is None else "".join(self._lines.of(stack))

    def _line(self, entry: Frame | Unknown) -> str:
        name = spell_location(entry, offset=self._offsets)
        if self._addresses:
            return f"    0x{entry.address:016x} {name}\n"
        return f"    {name}\n"
