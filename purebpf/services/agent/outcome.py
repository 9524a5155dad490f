"""What becomes of a window that is sent, and what sends one. Pure."""

from __future__ import annotations

from typing import NamedTuple, Protocol

__all__ = ["Delivery", "Outcome"]


class Outcome(NamedTuple):
    """What became of a window.

    `is_done`: the sink has it; `is_refused`: it will never take it; else try again, not before
    `after_s`. `why` says what happened otherwise.
    """

    is_done: bool = False
    is_refused: bool = False
    after_s: float = 0.0
    why: str = ""


class Delivery(Protocol):
    """Sends windows to one sink."""

    def send(self, name: str, data: bytes) -> Outcome:
        """Send a window: its gzipped OTLP message, called `name`. Raises FormatError."""
