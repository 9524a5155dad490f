"""Lines that wait until a table stands above them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator

from purebpf.closable import Closing

__all__ = ["HeldLines"]

_IN_MEMORY = 4 << 20


class HeldLines(Closing):
    """Lines in the order of their arrival; beyond 4 MiB, in a file without a name.

    Raises:
        OSError: the file cannot be created or written.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(  # noqa: SIM115 - closed by close()
            _IN_MEMORY, mode="w+", encoding="utf-8", errors="surrogateescape", newline=""
        )

    def add(self, lines: Iterable[str]) -> None:
        """Keep lines."""
        self._file.writelines(lines)

    def lines(self) -> Iterator[str]:
        """All of them, from the first."""
        self._file.seek(0)
        yield from self._file

    def close(self) -> None:
        """Forget them; again is harmless."""
        self._file.close()
