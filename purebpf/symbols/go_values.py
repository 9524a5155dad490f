"""The tables of Go's functions that have a number for each instruction.

Layout: Go's src/runtime/symtab.go, pcvalue: a list of pairs (change of the value, zigzag;
instructions it holds for), in LEB128, from -1 on.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["go_values"]


def go_values(data: bytes, quantum: int) -> Iterator[tuple[int, int]]:
    """Yield the offset in the function at which a value begins, and the value; -1 at the end."""
    value, reached, at = -1, 0, 0
    while True:
        change, at = _uleb(data, at)
        if at < 0 or (not change and reached):
            break
        step, at = _uleb(data, at)
        if at < 0:
            break
        value += ~(change >> 1) if change & 1 else change >> 1
        if not step:
            break
        yield reached, value
        reached += step * quantum
    yield reached, -1


def _uleb(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to 32 bits and where it ends; -1 if it is not well formed."""
    number = shift = 0
    for byte in data[at : at + 5]:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at + shift // 7
    return 0, -1
