"""The processes that read and write most on disks during a measurement."""

from __future__ import annotations

import time

from purebpf.measure.proc_files import entries, read_text, words
from purebpf.results.model.spelling import printable

__all__ = ["DiskUsers"]

_LEAST = 1e6
"""Bytes a second that are worth a name."""
_MOST = 3


class DiskUsers:
    """Reads what each process has moved, when it is made and when it is asked."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._before = _moved()

    def sentence(self) -> str:
        """Return `the disk is used by backup (7) 200 MB/s` of the time since then; "" for nobody.

        Bytes of a process that has ended count for its parent, when that has waited for it.
        """
        elapsed_s = max(0.1, time.monotonic() - self._since)
        rates = {
            pid: (moved - self._before.get(pid, 0)) / elapsed_s for pid, moved in _moved().items()
        }
        heaviest = sorted(rates, key=lambda pid: -rates[pid])[:_MOST]
        names = [
            f"{_name(pid)} ({pid}) {rates[pid] / 1e6:.0f} MB/s"
            for pid in heaviest
            if rates[pid] >= _LEAST
        ]
        return f"the disk is used by {', '.join(names)}" if names else ""


def _moved() -> dict[int, int]:
    """Bytes that each process has read from disks and written to them."""
    moved = {}
    for entry in entries("/proc"):
        if entry.isdigit():
            counters = dict(words(f"/proc/{entry}/io"))
            if "read_bytes" in counters:
                moved[int(entry)] = int(counters["read_bytes"]) + int(counters["write_bytes"])
    return moved


def _name(pid: int) -> str:
    return printable(read_text(f"/proc/{pid}/comm").strip()) or "?"
