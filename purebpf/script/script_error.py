"""`ScriptError`: the refusal of a script, with its place in the text."""

from __future__ import annotations

from purebpf.errors import PurebpfError
from purebpf.tuples import NamedTuple

__all__ = ["Location", "OptionError", "ScriptError", "locate"]


class Location(NamedTuple):
    """Line and column, both from 1, and the text of the line."""

    line: int
    column: int
    text: str


class ScriptError(PurebpfError):
    """A script that cannot be compiled.

    Attributes:
        message: the reason.
        start: the place of the refused part: its first character.
        end: the place behind it.
        hint: a remedy, or "".
    """

    def __init__(self, message: str, start: int = 0, end: int = -1, hint: str = "") -> None:
        super().__init__(message, start, end, hint)
        self.message, self.start, self.hint = message, start, hint
        self.end = max(start, end)

    def __str__(self) -> str:
        return self.message

    def render(self, text: str, name: str, word: str = "ERROR") -> str:
        """Show the message with the source line and a mark below the refused part."""
        line, column, source = locate(text, self.start)
        length = min(self.end - self.start, len(source) - column + 1)
        span = f"{column}-{locate(text, self.end).column}" if self.end > self.start else f"{column}"
        mark = " " * (column - 1) + "~" * max(1, length)
        hint = f"\nHINT: {self.hint}" if self.hint else ""
        return f"{name}:{line}:{span}: {word}: {self.message}\n{source}\n{mark}{hint}"


class OptionError(ScriptError):
    """An option of the command line that the script does not have, or that it cannot read."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, 0, -1, hint)

    def render(self, text: str, name: str, word: str = "ERROR") -> str:
        """Show the message; it has no place in the script."""
        del text, name
        return f"{word}: {self.message}" + (f"\nHINT: {self.hint}" if self.hint else "")


def locate(text: str, position: int) -> Location:
    """Find the line of a position in the text."""
    position = min(position, len(text))
    begin = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    source = text[begin : end if end >= 0 else len(text)]
    return Location(text.count("\n", 0, position) + 1, position - begin + 1, source)
