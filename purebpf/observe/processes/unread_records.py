"""`UnreadRecords`: the records of processes that no caller has needed yet. Pure.

Most processes of a busy machine come and go without a sample. Their records are stored raw, some
700 bytes each, until a caller needs the process, or none can any more.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from purebpf.wire.process_runs import Happened

__all__ = ["UnreadRecords"]

_KEEP_ENDED = 8192
_MOST_PIECES = 64
"""Of a process: who has more of them is read, as it would be with each of them."""
_GENERATIONS = 16


class UnreadRecords:
    """Records by process, and who forked whom.

    Attributes:
        pieces: of `purebpf.wire.process_runs`; processes without any are not in it.
        parents: of processes that were seen to be forked.
        ended: those with pieces that have ended, in the order of their ends.
        forgotten: how many were, as too many had ended.
    """

    def __init__(self) -> None:
        self.pieces: dict[int, list[bytes]] = {}
        self.parents: dict[int, int] = {}
        self.ended: dict[int, None] = {}
        self.forgotten = 0

    def add(self, happened: Happened) -> list[int]:
        """Add records; return the ones beyond the room for them."""
        pieces, ended = self.pieces, self.ended
        for pid, _ in happened.forks:
            ended.pop(pid, None)
        self.parents.update(happened.forks)
        large = []
        for pid, new in happened.runs.items():
            records = pieces.get(pid)
            if records is None:
                pieces[pid] = new
            else:
                records += new
                if len(records) > _MOST_PIECES:
                    large.append(pid)
        ended.update(happened.ended)
        while len(ended) > _KEEP_ENDED:
            self.drop(next(iter(ended)))
            self.forgotten += 1
        return large

    def take(self, pids: Iterable[int]) -> list[bytes]:
        """Return the undecoded records of processes, and of their ancestors: children begin as they
        were.

        It is not unread any more.
        """
        taken: list[bytes] = []
        for asked in pids:
            pid = asked
            for _ in range(_GENERATIONS):
                own = self.pieces.pop(pid, None)
                if own is None:
                    break
                self.ended.pop(pid, None)
                taken += own
                pid = self.parents.get(pid, 0)
        return taken

    def drop(self, pid: int) -> None:
        """Forget a process."""
        self.ended.pop(pid, None)
        self.pieces.pop(pid, None)
        self.parents.pop(pid, None)

    def note_living(self, living: Container[int]) -> None:
        """All other processes have ended: records of it may have been lost."""
        for pid in self.pieces:
            if pid not in living:
                self.ended.setdefault(pid)

    def orphans(self, has_ended: Container[int]) -> list[int]:
        """Return processes that outlive their parents, which may have mapped the same files."""
        return [
            pid
            for pid in self.pieces
            if pid not in self.ended
            and ((parent := self.parents.get(pid)) in self.ended or parent in has_ended)
        ]

    def forget_ended(self, keep: Container[int]) -> list[int]:
        """Forget those that have ended, but those to keep; who they were."""
        gone = [pid for pid in self.ended if pid not in keep]
        for pid in gone:
            self.drop(pid)
        return gone
