"""`ScriptOutput`: standard output or a file, with the buffering that the user asked for."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from purebpf.cli.output import Output
from purebpf.closable import SoleOwner

__all__ = ["ScriptOutput"]

_MOST_PIECES = 4096


class ScriptOutput(SoleOwner):
    """Takes the text of a script.

    Args:
        path: of a file, None for standard output.
        buffering: "full": write only when much has come; else after each batch of events.

    Raises:
        KernelError: the file cannot be opened or written.
    """

    def __init__(self, path: str | None, buffering: str) -> None:
        self._output = Output(path)
        self._is_full = buffering == "full"
        self._pieces: list[str] = []

    def __enter__(self) -> Self:
        return self

    def write(self, text: str) -> None:
        """Add text."""
        self._pieces.append(text)
        if len(self._pieces) >= _MOST_PIECES:
            self._write()

    def flush(self) -> None:
        """Write the text that has come, unless the buffering is full."""
        if self._pieces and not self._is_full:
            self._write()

    def _write(self) -> None:
        pieces, self._pieces = self._pieces, []
        self._output.write(["".join(pieces)])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._write()
        finally:
            self._output.__exit__(kind, error, traceback)
