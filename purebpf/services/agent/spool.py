"""Windows on disk, until each sink has them: whole or absent, bounded, the oldest dropped first.

    STATE/spool/new/NAME                  being written
    STATE/spool/SINK/NAME                 not sent to this sink yet: links to one file
    STATE/spool/corrupt/SINK-NAME         could not be read back

A name is the begin of the window, its kind, the start id of the agent and a number, so that names
sort by time, and a file that is sent twice is recognised by its name.
"""

from __future__ import annotations

import errno
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from purebpf.syscall.folder import Folder

__all__ = ["Spool", "file_name"]

_NAME = re.compile(r"\d{8}T\d{6}Z-[a-z]+-[0-9a-f]{8}-\d+\.otlp\.gz")
_MOST_CORRUPT = 16


def file_name(started_ns: int, kind: str, start_id: str, number: int) -> str:
    """The name of a window."""
    when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(started_ns // 10**9))
    return f"{when}-{kind}-{start_id}-{number}.otlp.gz"


class Spool:
    """The windows that wait for the sinks. Safe to use from several threads.

    Args:
        directory: made if it is not there; leftovers of earlier runs are sent as well.
        sinks: names of those that get every window.
        max_bytes, max_age_s: windows beyond that are dropped.

    Attributes:
        dropped: windows that some sink never got: too old, no room, too many.
        corrupt: files that could not be read back.

    Raises:
        KernelError: the agent may not create the directory, or another user may exchange a part of
            its path.
    """

    def __init__(
        self, directory: str, sinks: Sequence[str], *, max_bytes: int, max_age_s: float
    ) -> None:
        self.dropped = self.corrupt = 0
        self._directory = directory
        self._sinks = list(sinks)
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._changed = threading.Condition()
        for name in ("new", "corrupt", *self._sinks):
            Folder.prepare(os.path.join(directory, name))
        for name in os.listdir(self._path("new")):  # an agent was killed while it wrote
            os.unlink(self._path("new", name))

    def add(self, name: str, data: bytes) -> bool:
        """Keep a window for every sink; whether there was room for it.

        Raises:
            OSError: it cannot be written, for another reason than a full disk.
        """
        with self._changed:
            if not self._sinks:
                return True
            while True:
                try:
                    self._write(name, data)
                    break
                except OSError as error:
                    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                        raise
                    if not self._drop_oldest():
                        self.dropped += 1
                        return False
            self._shrink()
            self._changed.notify_all()
        return True

    def _write(self, name: str, data: bytes) -> None:
        """Write it under another name, and link it to where the sinks look when it is on disk."""
        new = self._path("new", name)
        try:
            with open(new, "wb", opener=_private) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            for sink in self._sinks:
                os.link(new, self._path(sink, name))
            for sink in self._sinks:
                _sync(self._path(sink))
        except OSError:
            for sink in self._sinks:
                with suppress(FileNotFoundError):
                    os.unlink(self._path(sink, name))
            raise
        finally:
            with suppress(FileNotFoundError):
                os.unlink(new)

    def newest(self, sink: str) -> str | None:
        """The newest window that a sink does not have yet."""
        return max(self._names(sink), default=None)

    def waiting(self, sink: str) -> int:
        """Return how many windows wait for a sink."""
        return len(self._names(sink))

    def wait(self, sink: str, is_over: Callable[[], bool]) -> None:
        """Sleep until a window waits for a sink, or `wake` was called and it is over."""
        with self._changed:  # one that comes between a look and the sleep must not be missed
            self._changed.wait_for(lambda: is_over() or self.newest(sink) is not None)

    def wake(self) -> None:
        """Have every `wait` ask whether it is over."""
        with self._changed:
            self._changed.notify_all()

    def read(self, sink: str, name: str) -> bytes | None:
        """A window; None if it was dropped in between."""
        try:
            with open(self._path(sink, name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def done(self, sink: str, name: str, *, dropped: bool = False) -> None:
        """A sink has a window, or will never have it."""
        with self._changed:
            self.dropped += dropped
            with suppress(FileNotFoundError):
                os.unlink(self._path(sink, name))

    def set_aside(self, sink: str, name: str) -> None:
        """Set a damaged file aside: no sink gets it, and it stays for inspection."""
        with self._changed:
            self.corrupt += 1
            with suppress(FileNotFoundError):
                os.rename(self._path(sink, name), self._path("corrupt", f"{sink}-{name}"))
            for old in sorted(os.listdir(self._path("corrupt")))[:-_MOST_CORRUPT]:
                os.unlink(self._path("corrupt", old))

    @property
    def nbytes(self) -> int:
        """Bytes of all files that wait; one that waits for several sinks counts once."""
        return sum(self._sizes().values())

    def _sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for sink in self._sinks:
            with os.scandir(self._path(sink)) as entries:
                for entry in entries:
                    if entry.name not in sizes and _NAME.fullmatch(entry.name):
                        with suppress(FileNotFoundError):
                            sizes[entry.name] = entry.stat(follow_symlinks=False).st_size
        return sizes

    def _shrink(self) -> None:
        """Drop windows that are too old, and the oldest of too many; never the last window."""
        sizes = self._sizes()
        total = sum(sizes.values())
        oldest = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() - self._max_age_s))
        for name in sorted(sizes)[:-1]:
            if total <= self._max_bytes and name >= oldest:
                break
            total -= sizes[name]
            self._drop(name)

    def _drop_oldest(self) -> bool:
        name = min(self._sizes(), default=None)
        if name is not None:
            self._drop(name)
        return name is not None

    def _drop(self, name: str) -> None:
        self.dropped += 1
        for sink in self._sinks:
            with suppress(FileNotFoundError):
                os.unlink(self._path(sink, name))

    def _names(self, sink: str) -> list[str]:
        return [name for name in os.listdir(self._path(sink)) if _NAME.fullmatch(name)]

    def _path(self, *parts: str) -> str:
        return os.path.join(self._directory, *parts)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _sync(directory: str) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
