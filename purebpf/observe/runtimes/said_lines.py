"""`SAID_LINES`: the lines of frames whose words have the line itself."""

from __future__ import annotations

from purebpf.runtimes.cpython.lines import LineTable

__all__ = ["SAID_LINES"]


class _SaidLines(LineTable):
    """Lines that are in the words of frames themselves."""

    def __init__(self) -> None:
        super().__init__((3, 0), b"", 0)

    def at(self, offset: int) -> int:
        """Return the line: the offset is one."""
        return offset


SAID_LINES = _SaidLines()
