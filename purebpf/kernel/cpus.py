"""Which CPUs there are, by number: the numbers may have holes."""

from __future__ import annotations

from purebpf.errors import FormatError, NotSupportedError
from purebpf.syscall import proc

__all__ = ["online", "parse", "possible"]


def parse(text: str) -> tuple[int, ...]:
    """The numbers in a CPU list: `"0-3,8"` is (0, 1, 2, 3, 8); an empty list is ().

    Raises FormatError for anything else (Documentation/admin-guide/cputopology.rst).
    """
    found: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        if not (first.isdecimal() and (last.isdecimal() if dash else not last)):
            raise FormatError("CPU list", repr(text), f"{part!r} is no number and no range")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def online() -> tuple[int, ...]:
    """The CPUs that run now."""
    return _read("online")


def possible() -> tuple[int, ...]:
    """The CPUs that may ever run: what per-CPU map values have room for."""
    return _read("possible")


def _read(kind: str) -> tuple[int, ...]:
    text = proc.cpu_list(kind)
    if not text:
        raise NotSupportedError(f"the {kind} CPUs", f"/sys/devices/system/cpu/{kind} is not there")
    return parse(text)
