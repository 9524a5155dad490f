"""The interface of readers of frames of generated code, which other packages implement."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from typing import TYPE_CHECKING, Protocol

from purebpf.symbols.java_words import JavaNames

if TYPE_CHECKING:
    from purebpf.observe.unwind.stack_finisher import CopiedWalk
    from purebpf.results.model.loss import Cause
    from purebpf.symbols.proc_maps import Mapping as CodePlace

__all__ = ["GeneratedStacks"]


class GeneratedStacks(JavaNames, Protocol):
    """The reader of frames of generated code:
    `purebpf.observe.runtimes.hotspot.java_processes.JavaProcesses`.
    """

    @property
    def fds(self) -> tuple[int, ...]:
        """Readable when `drain()` is due."""

    @property
    def published(self) -> Container[int]:
        """Processes whose records `feed` needs."""

    def publish_running(self, pids: Iterable[int] = ()) -> None:
        """Look at these processes, or all."""

    def publish(
        self, tgid: int, process: int, identity: int = 0, mappings: list[CodePlace] | None = None
    ) -> None:
        """Look at a process, see `UserStacks.on_missed`."""

    def feed(self, record: object) -> None:
        """Handle a record of a process."""

    def drain(self) -> None:
        """Read the names that came."""

    def look_again_s(self) -> float:
        """Seconds until `drain` is due without a record."""

    def of_copy(self, tgid: int, time_ns: int) -> CopiedWalk | None:
        """Return a walk through such frames of a copied stack; None: the process has none."""

    def counts(self) -> dict[str, int]:
        """Return the counters; {} if no process has such frames."""

    def causes(self) -> tuple[Cause, ...]:
        """Return the losses of these frames, zero or not; () if no process has such frames."""

    def hints(self, pids: Collection[int]) -> list[str]:
        """Return the reasons why some of these processes have no such frames."""
