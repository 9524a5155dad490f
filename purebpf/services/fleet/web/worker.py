"""The databases of one answer, which end with it."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from purebpf.closable import Closing
from purebpf.services.fleet import duck
from purebpf.services.fleet.answers import Question
from purebpf.services.fleet.web.turns import BusyError

if TYPE_CHECKING:
    import duckdb

    from purebpf.services.fleet.selection import Selection
    from purebpf.services.fleet.stores.store import Store

__all__ = ["Worker"]


class Worker(Closing):
    """Opens questions, which end with it. `give_up` may be called from another thread.

    Args:
        store: where.
        memory, most: the memory of its questions together, as in `duck.connect`.

    Attributes:
        gave_up: whether that was called.
        is_over: whether it was closed.
    """

    def __init__(self, store: Store, memory: str, most: str) -> None:
        self._store = store
        self._limits = memory, most
        self._open: list[duckdb.DuckDBPyConnection] = []
        self._asked: dict[tuple[Selection, bool], Question] = {}
        self._closing = ExitStack()
        self.gave_up = self.is_over = False

    def close(self) -> None:
        """Close the questions; again is harmless."""
        self.is_over = True
        self._open.clear()
        self._asked.clear()
        self._closing.close()

    def ask(self, selection: Selection, *, by_host: bool = False) -> Question:
        """Return a question of the store, the same one for the same selection; `by_host` as in
        `Question`.
        """
        if (selection, by_host) in self._asked:
            self.check()
            return self._asked[selection, by_host]
        memory, most = self._limits
        opened = (
            duck.beside(self._open[0], most)
            if self._open
            else duck.connect(self._store, memory, most, threads=duck.half_of_the_cpus())
        )
        connection = self._closing.enter_context(opened)
        self._open.append(connection)
        self.check()
        question = Question(self._store, selection, connection, by_host=by_host)
        self._asked[selection, by_host] = question
        return question

    def check(self) -> None:
        """Raise BusyError if nobody waits for the answer any more: call it between long steps."""
        if self.gave_up:
            raise BusyError("the reader went away")

    def give_up(self) -> None:
        """End the statement that runs. One that begins later is not ended: call it again."""
        self.gave_up = True
        import duckdb

        for connection in list(self._open):
            with suppress(duckdb.Error):  # it was closed in this moment
                connection.interrupt()
