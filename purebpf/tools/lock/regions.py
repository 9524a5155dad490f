"""The place of a lock in a process. Pure."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from functools import cache

__all__ = ["Regions"]

_Region = tuple[int, int, str, int]
"""Start, end, what is mapped, and where that was mapped first."""


class Regions:
    """Names addresses of data.

    Args:
        read: the text of /proc/PID/maps; None where the process is gone.
        variable: returns the name of a file's variable at an address of a process; "" where there
            is none.
        of_ended: the same of a process that is gone, with the file.
    """

    def __init__(
        self,
        read: Callable[[int], str | None],
        variable: Callable[[int, str, int], str] = lambda *_: "",
        of_ended: Callable[[int, int], str] = lambda *_: "",
    ) -> None:
        self._of_ended = of_ended
        self._variable = variable
        self._regions: Callable[[int], list[_Region]] = cache(lambda pid: _parse(read(pid) or ""))

    def name(self, pid: int, address: int) -> str:
        """`cache_lock in app`, `0x7f10 in libfoo.so+0x4040`, `0x55d0 in [heap]`, or the address."""
        regions = self._regions(pid)
        if not regions and (ended := self._of_ended(pid, address)):
            return ended
        at = bisect.bisect_right(regions, address, key=lambda region: region[0]) - 1
        if at < 0 or address >= regions[at][1] or not regions[at][2]:
            return f"{address:#x}"
        _, _, module, base = regions[at]
        if module.startswith("["):
            return f"{address:#x} in {module}"
        file = module.rpartition("/")[2]
        if variable := self._variable(pid, module, address):
            return f"{variable} in {file}"
        return f"{address:#x} in {file}+{address - base:#x}"


def _parse(text: str) -> list[_Region]:
    regions: list[_Region] = []
    module, base, end = "", 0, 0
    for line in text.split("\n"):
        fields = line.split(maxsplit=5)
        if len(fields) < 5:
            continue
        start, stop = (int(word, 16) for word in fields[0].split("-"))
        name = fields[5] if len(fields) > 5 else ""
        if name and name != module:
            module, base = name, start
        elif not name and start != end:  # what follows a file without a gap is its .bss
            module = ""
        regions.append((start, stop, module, base))
        end = stop
    return regions
