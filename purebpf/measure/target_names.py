"""The command lines of the processes that a person measures."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.measure.proc_files import read_text
from purebpf.results.model.spelling import printable
from purebpf.results.model.width import cut

__all__ = ["name_commands"]

_WIDTH, _MOST = 60, 3


def name_commands(pids: Iterable[int]) -> list[str]:
    """Return `185: sh collect.sh` for each of the first processes; nothing for one that ended."""
    commands = ((pid, read_text(f"/proc/{pid}/cmdline")) for pid in [*pids][:_MOST])
    return [
        f"{pid}: {cut(printable(text.strip(chr(0)).replace(chr(0), ' ')), _WIDTH)}"
        for pid, text in commands
        if text
    ]
