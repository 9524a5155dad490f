"""The losses of a measurement, by cause, zero included."""

from __future__ import annotations

from purebpf.results.model.spelling import count_text
from purebpf.tuples import NamedTuple

__all__ = ["Cause", "Loss", "count_cause"]


class Cause(NamedTuple):
    """One way to lose something.

    `name` is a machine-readable word ("map_full"), `lost` its cost, `what` a sentence about it
    with the fix, printed when the count is not zero. A note does not make the result
    incomplete: `--verbose` prints it, and it is not an alarm.
    """

    name: str
    lost: int
    what: str
    is_note: bool = False


def count_cause(name: str, lost: int, text: str, is_note: bool = False) -> Cause:
    """A cause with a sentence that begins with its number: `text` goes on, with a plural."""
    return Cause(name, lost, count_text(lost, text), is_note)


class Loss(NamedTuple):
    """The expected and the seen samples, and the losses after that, by cause.

    `expected` is None if it is unknown. `tolerance` is by how much an honest run may miss it:
    the last, unfinished period of each event.
    """

    expected: int | None = None
    seen: int = 0
    tolerance: int = 0
    causes: tuple[Cause, ...] = ()

    @property
    def missed(self) -> int:
        """Expected and never seen."""
        return max(0, (self.expected or 0) - self.seen)

    @property
    def any(self) -> bool:
        """True if the result is incomplete, for `--strict`."""
        return self.missed > self.tolerance or any(
            cause.lost for cause in self.causes if not cause.is_note
        )
