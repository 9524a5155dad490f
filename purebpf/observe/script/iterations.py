"""`Iterations`: runs the programs of `iter` blocks over the objects of the kernel, once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence

from purebpf.closable import Closing
from purebpf.loader.attach.iterator import IteratorLink

__all__ = ["Iterations"]

_CHUNK = 4096


def _goes_on(descriptor: int) -> bool:
    """Run the program for many objects; return False after the last one.

    The kernel breaks off after a million objects for which nothing was written: EAGAIN.
    """
    try:
        return bool(os.read(descriptor, _CHUNK))
    except BlockingIOError:
        return True


class Iterations(Closing):
    """Reads iterators in a thread, so that their events can be taken at the same time.

    Args:
        links: the iterators; they run one after the other.
        leave: makes their programs do nothing more; called before a run is waited for.

    Attributes:
        error: the error that ended a run, None if there was none.
    """

    def __init__(self, links: Sequence[IteratorLink], leave: Callable[[], object]) -> None:
        self.error: OSError | None = None
        self._links, self._leave = tuple(links), leave
        self._ended = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name="iterators", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for link in self._links:
                with link.open_file() as file:
                    while _goes_on(file.fileno()):
                        pass
        except OSError as error:
            self.error = error
        finally:
            os.eventfd_write(self._ended, 1)

    def fileno(self) -> int:
        """The descriptor that is readable once all have ended."""
        return self._ended

    @property
    def is_over(self) -> bool:
        """True once all have ended."""
        return not self._thread.is_alive()

    def close(self) -> None:
        """Wait for the run that goes on, which has nothing more to do."""
        self._leave()
        self._thread.join()
        if self._ended >= 0:
            os.close(self._ended)
            self._ended = -1
