"""The outcome of sending a window, and the interface of a sink. Pure."""

from __future__ import annotations

from typing import NamedTuple, Protocol

__all__ = ["Delivery", "Outcome"]


class Outcome(NamedTuple):
    """The outcome of sending a window.

    `is_done`: the sink has it; `is_refused`: it will never take it; else try again, not before
    `after_s`. `why` is the reason otherwise.
    """

    is_done: bool = False
    is_refused: bool = False
    after_s: float = 0.0
    why: str = ""


class Delivery(Protocol):
    """Sends windows to one sink."""

    def send(self, name: str, data: bytes) -> Outcome:
        """Send a window: its gzipped OTLP message, called `name`. Raises FormatError."""
